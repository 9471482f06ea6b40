import { CniCode, CniError } from "../../../../shared/errors.ts";
import {
  addFlow,
  addOrModifyGroup,
  deleteFlow,
  deleteFlows,
  deleteGroup,
  type OpenFlowClient,
  OpenFlowError,
  type OpenFlowRequest,
  setConfig,
} from "../../../protocols/openflow/mod.ts";
import { Category, cookieOf, learnedBit, roundMask } from "../pipeline/cookie.ts";
import type { ProgramBounds } from "./connection.ts";
import { type Drift, driftOf } from "./drift.ts";
import { type KeyedFlowSet, messagesOf } from "./flow-set.ts";
import { type Difference, FlowSets, type KeyedChanges } from "./flow-sets.ts";
import { Meters } from "./meters.ts";

/**
 * What the switch is to have, and the bundles that bring it there. Between `fill` and the end of the connection the
 * switch has just that; a bundle whose outcome is not known ends the connection.
 */
export class SwitchState {
  readonly flowSets = new FlowSets();
  /** Flow sets that the switch refused when it was filled, and why; out of `flowSets` until they are set again. */
  readonly leftOut = new Map<string, string>();
  readonly #round: number;
  readonly #bounds: ProgramBounds;
  /** Groups of ours that the switch may have. */
  readonly #groups = new Set<number>();
  readonly #meters = new Meters();

  constructor(round: number, bounds: ProgramBounds) {
    this.#round = round;
    this.#bounds = bounds;
  }

  /**
   * Puts everything in, in place of what this round had put in before: packets see the one or the other. A flow set that
   * the switch refuses is left out, so that it costs the others nothing. @throws {OpenFlowError} where the connection is lost
   */
  async fill(client: OpenFlowClient): Promise<void> {
    await this.configure(client);
    for (const flowSet of this.flowSets.all.values()) for (const id of flowSet.groups.keys()) this.#groups.add(id);
    await this.#meters.learn(client);
    for (const flowSet of this.flowSets.all.values()) await this.#meters.ensure(client, flowSet.flows.values());
    const forget = [deleteRound(this.#round)];
    const pieces = this.#pieces();
    const isWhole =
      pieces.length === 1 &&
      (await this.#tryAll(client, [...forget, ...wholeRequests([...this.flowSets.all.values()])]));
    if (!isWhole) {
      await client.bundle(forget, this.#bounds.bundleMs);
      for (const piece of pieces) await this.#fillPiece(client, piece);
    }
    await this.#dropGroups(
      client,
      [...this.#groups].filter((id) => !this.flowSets.hasGroup(id)),
    );
  }

  /** @returns why the switch refused, and has what it had before. @throws {OpenFlowError} where the connection is lost */
  async put(client: OpenFlowClient, changes: KeyedChanges): Promise<CniError | undefined> {
    const difference = this.keep(changes);
    if (difference instanceof CniError) return difference;
    for (const { id } of difference.setGroups) this.#groups.add(id);
    const areFree = comeOrGo(changes, difference);
    const requests = areFree ? oneByOne(difference) : changeRequests(difference);
    // Meters go out before the flows that name them, and nobody waits in between.
    const [, refusal] = await Promise.all([
      this.#meters.ensure(client, difference.addedFlows),
      areFree ? this.#tryEach(client, requests) : this.#try(client, requests),
    ]);
    if (refusal === undefined) for (const id of difference.deletedGroups) this.#groups.delete(id);
    else await this.#takeBack(client, changes, difference, areFree);
    return refusal;
  }

  async #takeBack(
    client: OpenFlowClient,
    changes: KeyedChanges,
    { back }: Difference,
    areFree: boolean,
  ): Promise<void> {
    const undone = this.flowSets.apply(back);
    if (!areFree) return;
    try {
      await client.bundle(changeRequests(undone), this.#bounds.bundleMs);
    } catch (caught) {
      // Whoever waits for the change is told by the next connection, which tries it again and hears why not.
      this.flowSets.apply(changes);
      throw caught;
    }
  }

  /** KeyedChanges what is to be there, without a word to the switch. */
  keep(changes: KeyedChanges): Difference | CniError {
    try {
      const difference = this.flowSets.apply(changes);
      for (const key of changes.keys()) this.leftOut.delete(key);
      return difference;
    } catch (caught) {
      if (caught instanceof CniError) return caught;
      throw caught;
    }
  }

  /** Takes out the flows of all other rounds, and all groups that no flow set has. @throws {OpenFlowError} */
  async finish(client: OpenFlowClient): Promise<void> {
    const stale = (await client.groups()).filter(({ id }) => !this.flowSets.hasGroup(id));
    const requests = [...deleteOtherRounds(this.#round), ...stale.map(({ id }) => deleteGroup(id))];
    await client.bundle(requests, this.#bounds.bundleMs);
  }

  /** Looks what others have made of the switch. What flows have learned is nobody's work. @throws {OpenFlowError} */
  async compare(client: OpenFlowClient): Promise<Drift> {
    const [flows, groups, meters] = await Promise.all([client.flows(), client.groups(), client.meters()]);
    return driftOf(this.flowSets, this.#round, { flows: flows.map(({ flow }) => flow), groups, meters });
  }

  /** What no look at the flows shows, as somebody else may have set it: cheap, and right in any case. @throws {OpenFlowError} */
  async configure(client: OpenFlowClient): Promise<void> {
    await client.do(readFragments);
  }

  /** Puts that right, and touches nothing else: what goes on by other flows goes on. @throws {OpenFlowError} */
  async undo(client: OpenFlowClient, { missing, foreign, groups, foreignGroups }: Drift): Promise<void> {
    const changes = { setGroups: groups, deletedFlows: foreign, addedFlows: missing, deletedGroups: foreignGroups };
    // With a meter the switch deletes the flows that name it.
    await this.#meters.learn(client);
    await this.#meters.ensure(client, missing);
    await client.bundle(changeRequests(changes), this.#bounds.bundleMs);
  }

  /** Flow sets that go into one bundle, one after the other. */
  #pieces(): readonly ReadonlyMap<string, KeyedFlowSet>[] {
    const pieces: Map<string, KeyedFlowSet>[] = [new Map()];
    let messages = 0;
    for (const [key, flowSet] of this.flowSets.all) {
      const own = messagesOf(flowSet);
      if (messages > 0 && messages + own > this.#bounds.bundleMessages) {
        pieces.push(new Map());
        messages = 0;
      }
      pieces.at(-1)?.set(key, flowSet);
      messages += own;
    }
    return pieces;
  }

  async #fillPiece(client: OpenFlowClient, piece: ReadonlyMap<string, KeyedFlowSet>): Promise<void> {
    if (await this.#tryAll(client, wholeRequests([...piece.values()]))) return;
    for (const [key, flowSet] of piece) {
      const refusal = await this.#try(client, wholeRequests([flowSet]));
      if (refusal === undefined) continue;
      this.flowSets.apply(new Map([[key, undefined]]));
      this.leftOut.set(key, refusal.message);
    }
  }

  async #dropGroups(client: OpenFlowClient, ids: readonly number[]): Promise<void> {
    if (ids.length > 0) await client.bundle(ids.map(deleteGroup), this.#bounds.bundleMs);
    for (const id of ids) this.#groups.delete(id);
  }

  async #tryAll(client: OpenFlowClient, requests: readonly OpenFlowRequest[]): Promise<boolean> {
    return (await this.#try(client, requests)) === undefined;
  }

  async #try(client: OpenFlowClient, requests: readonly OpenFlowRequest[]): Promise<CniError | undefined> {
    if (requests.length === 0) return undefined;
    return whyNot(() => client.bundle(requests, this.#bounds.bundleMs));
  }

  /** @returns what the switch said against one of them; it has the others */
  async #tryEach(client: OpenFlowClient, requests: readonly OpenFlowRequest[]): Promise<CniError | undefined> {
    return whyNot(async () => {
      const [refusal] = await client.run(requests, this.#bounds.bundleMs);
      if (refusal !== undefined) throw refusal;
    });
  }
}

/** @returns what the switch said against it @throws {OpenFlowError} where the connection is lost */
async function whyNot(work: () => Promise<void>): Promise<CniError | undefined> {
  try {
    await work();
    return undefined;
  } catch (caught) {
    if (!isRefusal(caught)) throw caught;
    return new CniError(CniCode.interfaceFailure, caught.message, { cause: caught });
  }
}

/** Pods that come and go, and none that changes. */
const comeOrGo = (changes: KeyedChanges, { back }: Difference): boolean =>
  [...changes].every(([key, flowSet]) => {
    const before = back.get(key);
    return (flowSet === undefined || before === undefined) && (flowSet ?? before)?.category === Category.pod;
  });

/**
 * Without a bundle: the switch answers for these once, and for a bundle twice, which a pod's ADD waits for. Flows come from
 * the last table to the first and go from the first to the last, so that a packet that meets one of them meets all behind it.
 */
const oneByOne = ({ deletedFlows, addedFlows }: Difference): readonly OpenFlowRequest[] => [
  ...deletedFlows.toSorted((a, b) => a.table - b.table).map(deleteFlow),
  ...addedFlows.toSorted((a, b) => b.table - a.table).map(addFlow),
];

/** Whether it says something of what was asked for, and not of the connection. */
export const isRefusal = (caught: unknown): caught is OpenFlowError =>
  caught instanceof OpenFlowError && ["refused", "unsupported", "full"].includes(caught.kind);

/** Groups are there before the flows that name them, and go after: with a group the switch deletes those that still do. */
export const changeRequests = (difference: Omit<Difference, "back">): readonly OpenFlowRequest[] => [
  ...difference.setGroups.map(addOrModifyGroup),
  ...difference.deletedFlows.map(deleteFlow),
  ...difference.addedFlows.map(addFlow),
  ...difference.deletedGroups.map(deleteGroup),
];

export const wholeRequests = (flowSets: readonly KeyedFlowSet[]): readonly OpenFlowRequest[] => [
  ...flowSets.flatMap(({ groups }) => [...groups.values()].map(addOrModifyGroup)),
  ...flowSets.flatMap(({ flows }) => [...flows.values()].map(addFlow)),
];

/**
 * Flows are to see the ports and the type of a packet in its first fragment. By itself the switch hides them there too,
 * so that whoever cuts a packet gets it past every guard that asks for them. No packet is for a controller, but a
 * connection that wants no byte of them is told of nothing else that others do either.
 */
export const readFragments: OpenFlowRequest = setConfig("nx-match", 1);

/** The flows of one round. */
export const deleteRound = (round: number): OpenFlowRequest =>
  deleteFlows({ cookie: { value: cookieOf(round, 0), mask: roundMask } });

/**
 * The flows of all other rounds, whichever those are: a number that is not this one differs from it in one of 16 bits.
 * That takes those without a cookie too, which nobody of ours has put there. What flows have learned stays.
 */
export function deleteOtherRounds(round: number): readonly OpenFlowRequest[] {
  return Array.from({ length: 16 }, (_, i) => {
    const bit = 1n << BigInt(48 + i);
    return deleteFlows({ cookie: { value: ~cookieOf(round, 0) & bit, mask: bit | learnedBit } });
  });
}
