import type { Owner } from "../../shared/cni/types.ts";
import { formatRangeSet, type RangeSet } from "../config/ranges.ts";

/** The names of the marks in which the store keeps the allocator's counters and cursors. */

/** The generation that was given last, of all networks. */
export const generationMark = "generation";

/** The address that was given last out of this range set, from which the next is looked for. */
export const cursorMark = (network: string, set: RangeSet): string => `last ${network} ${formatRangeSet(set)}`;

/**
 * The cursor taken over from host-local, which names sets by their index; it counts until the set has a cursor of its
 * own.
 */
export const inheritedCursorMark = (network: string, rangeSet: number): string => `last ${network} #${rangeSet}`;

/** Marks that show that a network was used, also after all its leases have gone; a network's name has no blanks. */
const marksOfUse = ["last", "host-local"];

/** The networks that marks of these names tell of. */
export const networksUsed = (names: Iterable<string>): readonly string[] =>
  [...names].flatMap((name) => {
    const [what = "", network = ""] = name.split(" ");
    return marksOfUse.includes(what) && network !== "" ? [network] : [];
  });

/** The mark of an owner whose leases have an interface of the agent, or were about to get one. */
export const interfaceMark = ({ network, sandboxId, ifname }: Owner): string =>
  `wired ${network} ${sandboxId} ${ifname}`;
