import {
  addFlow,
  addOrModifyGroup,
  deleteFlow,
  deleteFlows,
  deleteGroup,
  type OpenFlowRequest,
  setConfig,
} from "../../../protocols/openflow/mod.ts";
import { cookieOf, learnedBit, roundMask } from "../pipeline/cookie.ts";
import type { Difference } from "./parts.ts";
import type { PlacedPart } from "./placed-part.ts";

/** Groups are there before the flows that name them, and go after: with a group the switch deletes those that still do. */
export const changeRequests = (difference: Omit<Difference, "back">): readonly OpenFlowRequest[] => [
  ...difference.setGroups.map(addOrModifyGroup),
  ...difference.deletedFlows.map(deleteFlow),
  ...difference.addedFlows.map(addFlow),
  ...difference.deletedGroups.map(deleteGroup),
];

export const wholeRequests = (parts: readonly PlacedPart[]): readonly OpenFlowRequest[] => [
  ...parts.flatMap(({ groups }) => [...groups.values()].map(addOrModifyGroup)),
  ...parts.flatMap(({ flows }) => [...flows.values()].map(addFlow)),
];

/**
 * Flows are to see the ports and the type of a packet in its first fragment. By itself the switch hides them there too,
 * so that whoever cuts a packet gets it past every guard that asks for them. No packet is for a controller, but a
 * connection that wants no byte of them is told of nothing else that others do either.
 */
export const readFragments: OpenFlowRequest = setConfig("nx-match", 1);

/** The flows of one round. */
export const forgetRound = (round: number): OpenFlowRequest =>
  deleteFlows({ cookie: { value: cookieOf(round, 0), mask: roundMask } });

/**
 * The flows of all other rounds, whichever those are: a number that is not this one differs from it in one of 16 bits.
 * That takes those without a cookie too, which nobody of ours has put there. What flows have learned stays.
 */
export function forgetOtherRounds(round: number): readonly OpenFlowRequest[] {
  return Array.from({ length: 16 }, (_, i) => {
    const bit = 1n << BigInt(48 + i);
    return deleteFlows({ cookie: { value: ~cookieOf(round, 0) & bit, mask: bit | learnedBit } });
  });
}
