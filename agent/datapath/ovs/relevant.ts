import type { RowChange } from "../../protocols/ovsdb/mod.ts";
import { roleOf } from "./port-identity.ts";

const bridgeColumns = ["name", "datapath_type", "fail_mode", "protocols", "other_config"] as const;

/**
 * Whether a change of the database asks for anything: not what a call of this agent has brought about, and not what the
 * switch tells of a port that stands as it should.
 * @param isSeenTo says of a port's name whether it is no pod's, or a call is under way that sees to it
 */
export function isRelevant(
  { table, before, after }: RowChange,
  nodePorts: ReadonlySet<string>,
  isSeenTo: (port: string) => boolean,
): boolean {
  const isOther = (column: string): boolean => before?.[column] !== after?.[column];
  if (table === "Bridge") return bridgeColumns.some(isOther);
  if (table !== "Port" && table !== "Interface") return false;
  // The node's interface may have come to a bridge of somebody's, or left it.
  if (table === "Port" && isOther("name") && isOthers(after ?? before)) return true;
  const name = String((after ?? before)?.["name"]);
  if (nodePorts.has(name)) return true;
  return !isSeenTo(name) && (isOther("name") || isOther("ofport"));
}

function isOthers(row: RowChange["after"]): boolean {
  const ids = row?.["external_ids"];
  return ids instanceof Map && roleOf(ids) === undefined;
}
