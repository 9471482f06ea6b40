import type { Owner } from "../../shared/cni/types.ts";
import { formatRangeSet, type RangeSet } from "../config/ranges.ts";

/** Under which names the store keeps what the allocator goes on from. */

/** The generation that was given last, of all networks. */
export const generationMark = "generation";

/** The address that was given last out of this range set, from which the next is looked for. */
export const cursorMark = (network: string, set: RangeSet): string => `last ${network} ${formatRangeSet(set)}`;

/** The same as it came along from host-local, which knows sets by their places: counts while the set has no cursor of its own. */
export const inheritedCursorMark = (network: string, rangeSet: number): string => `last ${network} #${rangeSet}`;

/** What tells that a network was used, also when all its leases have gone; a network's name has no blanks. */
const marksOfUse = ["last", "host-local"];

/** The networks that marks of these names tell of. */
export const networksUsed = (names: Iterable<string>): readonly string[] =>
  [...names].flatMap((name) => {
    const [what = "", network = ""] = name.split(" ");
    return marksOfUse.includes(what) && network !== "" ? [network] : [];
  });

/** That an interface of the agent's stands on the owner's leases, or was about to. */
export const interfaceMark = ({ network, sandboxId, ifname }: Owner): string =>
  `wired ${network} ${sandboxId} ${ifname}`;
