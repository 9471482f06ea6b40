import { networkNameRule, wrongNetworkName } from "../../shared/cni/names.ts";
import { paths } from "../../shared/os/paths.ts";
import type { OptionSpec } from "../../shared/terminal/command.ts";

/** What a completion can ask the database for; `holders` are addresses, pods and sandboxes together. */
export const nameKinds = ["networks", "addresses", "pods", "sandboxes", "holders"] as const;
export type NameKind = (typeof nameKinds)[number];

/** For an option or operand whose values a completion asks for. */
export const namesOf = (kind: NameKind): { readonly ask: NameKind } => ({ ask: kind });

/** Options that several commands have, told once. */

export const dataDirOption = {
  value: "DIR",
  of: "directory",
  help: `where leases.db lies (default: what --conf says, or PIPETTE_DATA_DIR, or ${paths.dataDir})`,
} as const satisfies OptionSpec;

export const networkOption = {
  value: "NAME",
  of: namesOf("networks"),
  help: "only this network's",
  rule: { wrong: wrongNetworkName, wanted: networkNameRule },
} as const satisfies OptionSpec;

export const confOption = {
  value: "FILE",
  of: "file",
  help: 'a network configuration, .conf or .conflist ("-": standard input)',
} as const satisfies OptionSpec;

export const jsonOption = {
  help: "JSON for programs; conf/ipam-output.schema.json describes it",
} as const satisfies OptionSpec;

export const progressOption = {
  help: "says how far it has come on stderr, also where that is no terminal",
} as const satisfies OptionSpec;
