import { CniError } from "../../../shared/errors.ts";
import type { AgentSamples } from "../../metrics/meter.ts";
import type { OvsNodeOptions } from "./options.ts";
import { tables } from "./pipeline/tables.ts";
import type { OpenFlowProgram } from "./program/mod.ts";
import { crowdedSwitch } from "./switch-control.ts";
import { answeredWithin } from "./switch-presence.ts";

/** How long each part of `degradedSwitch` may take; a slow part does not hold up the others. */
const lookMs = 2_000;

/** The key of the base flow set, without which no pod has a network. */
export const baseKey = "base";

/**
 * What the switch lacks or is short of, in sentences: what it refuses, and then what others have changed there and how
 * full it is.
 * @param alsoRefused keys of flow sets that were refused elsewhere, with the reason
 */
export async function degradedSwitch(
  program: OpenFlowProgram,
  { kind, database, policies }: Pick<OvsNodeOptions, "kind" | "database" | "policies">,
  alsoRefused: Iterable<readonly [string, string]>,
): Promise<{ readonly refused: readonly string[]; readonly others: readonly string[] }> {
  const refused = new Map([...program.status.refused, ...alsoRefused]);
  refused.delete(baseKey);
  const orWhyNot = (sentences: Promise<readonly string[]>, action: string): Promise<readonly string[]> =>
    answeredWithin(lookMs, action, sentences).catch((caught: unknown) => [CniError.from(caught).message]);
  const others = await Promise.all([
    orWhyNot(program.compare(false, policies.otherParts), "compare the switch with what it should have"),
    orWhyNot(crowdedSwitch(kind, database), "look how full connection tracking is"),
  ]);
  return { refused: [...refused].map(([key, why]) => `the switch refuses "${key}" (${why})`), others: others.flat() };
}

/**
 * Tells a scrape of flows and connections.
 * @param program absent: the node has not been started
 */
export function measureSwitch(samples: AgentSamples, databaseConnections: number, program?: OpenFlowProgram): void {
  const reconnects = (target: string, connections: number): void =>
    samples.set("pipette_datapath_reconnects_total", { target }, Math.max(0, connections - 1));
  reconnects("ovsdb", databaseConnections);
  if (program === undefined) return;
  reconnects("openflow", program.connections);
  const { sizes } = program;
  for (const [table, number] of Object.entries(tables))
    samples.set("pipette_datapath_flows", { table }, sizes.get(number) ?? 0);
}
