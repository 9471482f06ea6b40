import {
  type Element,
  listCounters,
  listElements,
  listRules,
  listSets,
  type NetlinkSocket,
  type PacketSet,
  readChainOfRule,
  readCounter,
  readElementKeys,
  readSetName,
  type Table,
} from "../../../protocols/netlink/mod.ts";
import { unlessMissing } from "../../linux/set-elements.ts";
import { type FilledSet, type PacketProgram, PartDraft, placeOf } from "./packet-program.ts";

/**
 * What the kernel has of a program, and what else is in the program's table, as from an earlier agent: so that its
 * successor changes only what is otherwise.
 * @throws {NetlinkError}
 */
export function standingProgram(socket: NetlinkSocket, wanted: PacketProgram): PacketProgram {
  const { table } = wanted;
  const rules = ruleCounts(socket, wanted);
  const counters = new Set(
    unlessMissing([], () => socket.dump(listCounters(table), readCounter)).map(({ name }) => name),
  );
  const names = new Set(unlessMissing([], () => socket.dump(listSets(table), readSetName)));
  const parts = wanted.parts.map((part) => {
    const standing = new PartDraft();
    for (const [place, chain] of part.chains) {
      const count = rules.get(place)?.count;
      rules.delete(place);
      if (count === undefined) continue;
      const isSame = chain.isOfContent === true && count === chain.rules().length;
      standing.addChain(isSame ? chain : { ...chain, text: "unknown" });
    }
    for (const filled of part.sets.values()) {
      names.delete(filled.set.name);
      const found = standingSet(socket, filled);
      if (found !== undefined) standing.addSet(found);
    }
    for (const name of part.counters) if (counters.delete(name)) standing.counters.add(name);
    return standing;
  });
  const [first] = parts;
  for (const { table: of, name } of rules.values())
    if (of === table) first?.addChain({ table, name, text: "", rules: () => [] });
  for (const name of names) first?.addSet({ set: { table, name, key: [] }, elements: new Map() });
  for (const name of counters) first?.counters.add(name);
  return { table, parts };
}

interface RuleCount {
  readonly table: Table;
  readonly name: string;
  count: number;
}

/** Chains without rules are left out; to create one that stands changes nothing. */
export function ruleCounts(socket: NetlinkSocket, { table, parts }: PacketProgram): Map<string, RuleCount> {
  const chains = parts.flatMap((part) => [...part.chains.values()]);
  const others = chains.map((chain) => chain.table).filter(({ family }) => family !== table.family);
  const counts = new Map<string, RuleCount>();
  for (const of of [table, ...new Map(others.map((other) => [other.name, other])).values()])
    for (const name of unlessMissing([], () => socket.dump(listRules(of), readChainOfRule))) {
      const place = placeOf({ table: of, name });
      const known = counts.get(place);
      if (known === undefined) counts.set(place, { table: of, name, count: 1 });
      else known.count++;
    }
  return counts;
}

/** `undefined` where there is none. */
function standingSet(socket: NetlinkSocket, wanted: FilledSet): FilledSet | undefined {
  const { set, elements } = wanted;
  const found = standingKeys(socket, set);
  if (found === undefined) return undefined;
  if (set.hasRanges) return hasRanges(found, wanted) ? wanted : { set, elements: new Map(), isSpoilt: true };
  const standing = new Map([...found].map(([hex, key]): [string, Element] => [hex, { set, key }]));
  const isSame =
    !set.leadsToChains && standing.size === elements.size && [...elements.keys()].every((key) => found.has(key));
  return isSame ? wanted : { set, elements: standing };
}

/** The kernel also tells what stands behind the ranges. */
export const hasRanges = (found: ReadonlyMap<string, Uint8Array>, { elements }: FilledSet): boolean =>
  found.size <= 2 * elements.size && [...elements.keys()].every((key) => found.has(key));

export const standingKeys = (socket: NetlinkSocket, set: PacketSet): ReadonlyMap<string, Uint8Array> | undefined =>
  unlessMissing(undefined, () => {
    const keys = socket.dump(listElements(set), readElementKeys).flat();
    return new Map(keys.map((key) => [key.toHex(), key]));
  });
