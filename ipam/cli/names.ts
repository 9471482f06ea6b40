import { formatIp } from "../../shared/net/ip.ts";
import { defineCommand } from "../../shared/terminal/command.ts";
import { exitStatus } from "../../shared/terminal/exit-status.ts";
import { printable } from "../../shared/terminal/printable.ts";
import { databaseIn } from "../data-directory.ts";
import type { Lease } from "../lease.ts";
import { StoreSnapshot } from "../store/store-snapshot.ts";
import { podText } from "./lease-view.ts";
import { confOption, dataDirOption, type NameKind, nameKinds, scopeOf } from "./scope.ts";

const addressOf = ({ address }: Lease): readonly string[] => [formatIp(address.ip)];
const podOf = (lease: Lease): readonly string[] => [podText(lease) ?? ""];
const sandboxOf = ({ owner }: Lease): readonly string[] => [owner.sandboxId];

/** The words that a lease offers for each kind of name. */
const wordsOf = {
  networks: ({ owner }: Lease) => [owner.network],
  addresses: addressOf,
  pods: podOf,
  sandboxes: sandboxOf,
  holders: (lease: Lease) => [...addressOf(lease), ...podOf(lease), ...sandboxOf(lease)],
} as const satisfies Readonly<Record<NameKind, (lease: Lease) => readonly string[]>>;

/** More completions than anybody reads at a prompt. */
const maxWords = 500;

/** Called by the completion scripts, which offer nothing if it fails. */
export const names = defineCommand({
  action: "list names",
  about: "Lists networks, addresses, pods or sandboxes that begin with some text, one to a line, for completion.",
  operands: [
    { name: "KIND", help: "what to list", of: nameKinds },
    { name: "PREFIX", help: "how they begin", optional: true, mayBeEmpty: true },
  ],
  options: { conf: confOption, "data-dir": dataDirOption },
  exits: { 3: "there is no database" },
  run: async ({ options, operands: [kind = "", prefix = ""] }, io) => {
    const { dataDir, network } = await scopeOf(options, io);
    using snapshot = await StoreSnapshot.open(databaseIn(dataDir));
    if (snapshot === undefined) return exitStatus.notThere;
    const found = new Set<string>();
    const words =
      kind === "networks" ? [snapshot.networks()] : snapshot.kept(Date.now(), network).map(wordsOf[kind as NameKind]);
    for (const some of words) {
      for (const word of some) if (word !== "" && word.startsWith(prefix)) found.add(word);
      if (found.size >= maxWords) break;
    }
    // A word that needs escaping is not offered: it comes from the database and goes into a command line.
    const harmless = [...found].filter((word) => word === printable(word) && !/[\s'"\\$`;|&<>(){}*?!#~]/.test(word));
    io.stdout(
      harmless
        .sort()
        .map((word) => `${word}\n`)
        .join(""),
    );
    return exitStatus.done;
  },
});
