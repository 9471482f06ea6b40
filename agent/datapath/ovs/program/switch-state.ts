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
 * The wanted content of the switch, and the bundles that apply it. From `fill` to the end of the connection the switch
 * has exactly that; a bundle with an unknown outcome ends the connection.
 */
export class SwitchState {
  readonly flowSets = new FlowSets();
  /** Flow sets that the switch refused during the fill, and why; not in `flowSets` until they are set again. */
  readonly refused = new Map<string, string>();
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
   * Installs everything in place of this round's earlier flows, atomically for packets. A flow set that the switch
   * refuses is left out, so that it does not affect the others.
   * @throws {OpenFlowError} where the connection is lost
   */
  async fill(client: OpenFlowClient): Promise<void> {
    await this.configure(client);
    for (const flowSet of this.flowSets.all.values()) for (const id of flowSet.groups.keys()) this.#groups.add(id);
    await this.#meters.sync(client);
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

  /**
   * @returns why the switch refused; then it has its earlier state.
   * @throws {OpenFlowError} where the connection is lost
   */
  async put(client: OpenFlowClient, changes: KeyedChanges): Promise<CniError | undefined> {
    const difference = this.keep(changes);
    if (difference instanceof CniError) return difference;
    for (const { id } of difference.setGroups) this.#groups.add(id);
    const areFree = comeOrGo(changes, difference);
    const requests = areFree ? oneByOne(difference) : changeRequests(difference);
    // Meters are sent before the flows that refer to them, without waiting in between.
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
      // The next connection tries the change again, and fails the call with the reason.
      this.flowSets.apply(changes);
      throw caught;
    }
  }

  /** Changes only the wanted state, not the switch. */
  keep(changes: KeyedChanges): Difference | CniError {
    try {
      const difference = this.flowSets.apply(changes);
      for (const key of changes.keys()) this.refused.delete(key);
      return difference;
    } catch (caught) {
      if (caught instanceof CniError) return caught;
      throw caught;
    }
  }

  /**
   * Deletes the flows of all other rounds, and unused groups.
   * @param spared a category of which all flows stay, and with them the groups
   * @throws {OpenFlowError}
   */
  async finish(client: OpenFlowClient, spared?: Category): Promise<void> {
    const stale = spared === undefined ? (await client.groups()).filter(({ id }) => !this.flowSets.hasGroup(id)) : [];
    const requests = [...deleteOtherRounds(this.#round, spared), ...stale.map(({ id }) => deleteGroup(id))];
    await client.bundle(requests, this.#bounds.bundleMs);
  }

  /** Compares the switch with the wanted state. Learned flows are ignored. @throws {OpenFlowError} */
  async compare(client: OpenFlowClient): Promise<Drift> {
    const [flows, groups, meters] = await Promise.all([client.flows(), client.groups(), client.meters()]);
    return driftOf(this.flowSets, this.#round, { flows: flows.map(({ flow }) => flow), groups, meters });
  }

  /**
   * Sets options that a comparison of flows does not show, since others may have changed them; cheap and always safe.
   * @throws {OpenFlowError}
   */
  async configure(client: OpenFlowClient): Promise<void> {
    await client.do(readFragments);
  }

  /** Repairs the differences and changes nothing else, so other traffic is not affected. @throws {OpenFlowError} */
  async repair(client: OpenFlowClient, { missing, foreign, groups, foreignGroups }: Drift): Promise<void> {
    const changes = { setGroups: groups, deletedFlows: foreign, addedFlows: missing, deletedGroups: foreignGroups };
    // Deleting a meter makes the switch delete the flows that refer to it.
    await this.#meters.sync(client);
    await this.#meters.ensure(client, missing);
    await client.bundle(changeRequests(changes), this.#bounds.bundleMs);
  }

  /** Flow sets grouped by bundle: policies first, so that no pod's packets pass without them. */
  #pieces(): readonly ReadonlyMap<string, KeyedFlowSet>[] {
    const pieces: Map<string, KeyedFlowSet>[] = [new Map()];
    let messages = 0;
    const { true: policies = [], false: others = [] } = Object.groupBy(
      this.flowSets.all,
      ([, { category }]) => `${category === Category.policy}`,
    );
    for (const [key, flowSet] of [...policies, ...others]) {
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
    const all = [...piece];
    const isWhole = all.every(([, { needs = "" }]) => !this.refused.has(needs));
    if (isWhole && (await this.#tryAll(client, wholeRequests([...piece.values()])))) return;
    for (const [key, flowSet] of all) {
      const { needs = "" } = flowSet;
      const refusal = this.refused.has(needs)
        ? `it needs "${needs}", which the switch refuses`
        : (await this.#try(client, wholeRequests([flowSet])))?.message;
      if (refusal === undefined) continue;
      this.flowSets.apply(new Map([[key, undefined]]));
      this.refused.set(key, refusal);
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

  /** @returns why the switch refused one of them; it has the others */
  async #tryEach(client: OpenFlowClient, requests: readonly OpenFlowRequest[]): Promise<CniError | undefined> {
    return whyNot(async () => {
      const [refusal] = await client.run(requests, this.#bounds.bundleMs);
      if (refusal !== undefined) throw refusal;
    });
  }
}

/** @returns why the switch refused it @throws {OpenFlowError} where the connection is lost */
async function whyNot(work: () => Promise<void>): Promise<CniError | undefined> {
  try {
    await work();
    return undefined;
  } catch (caught) {
    if (!isRefusedRequest(caught)) throw caught;
    return new CniError(CniCode.interfaceFailure, caught.message, { cause: caught });
  }
}

/** Whether flow sets are only added or removed, and none is changed. */
const comeOrGo = (changes: KeyedChanges, { back }: Difference): boolean =>
  [...changes].every(([key, flowSet]) => {
    const before = back.get(key);
    return (flowSet === undefined || before === undefined) && (flowSet ?? before)?.category === Category.pod;
  });

/**
 * Without a bundle, which needs two round trips instead of one that a pod's ADD would wait for. Flows are added from
 * the last table to the first and deleted from the first to the last, so that a packet that matches one of them finds
 * all later ones.
 */
const oneByOne = ({ deletedFlows, addedFlows }: Difference): readonly OpenFlowRequest[] => [
  ...deletedFlows.toSorted((a, b) => a.table - b.table).map(deleteFlow),
  ...addedFlows.toSorted((a, b) => b.table - a.table).map(addFlow),
];

/** Whether the error is about the request and not about the connection. */
export const isRefusedRequest = (caught: unknown): caught is OpenFlowError =>
  caught instanceof OpenFlowError && ["refused", "unsupported", "full"].includes(caught.kind);

/**
 * Groups are added before the flows that refer to them, and deleted after: deleting a group deletes the flows that
 * still refer to it.
 */
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
 * Makes ports and ICMP types visible in first fragments. By default the switch hides them, so that fragmented packets
 * would pass every guard that matches them. The miss length is 1 although no packet is sent to a controller, because a
 * connection with 0 gets no reports of others' changes.
 */
export const readFragments: OpenFlowRequest = setConfig("nx-match", 1);

/** The flows of one round. */
export const deleteRound = (round: number): OpenFlowRequest =>
  deleteFlows({ cookie: { value: cookieOf(round, 0), mask: roundMask } });

/**
 * Deletes the flows of all other rounds: any other number differs from this one in at least one of 16 bits, so there is
 * one request per bit. That includes flows without a cookie, which are not ours. Learned flows stay. So do those of a
 * category that is spared, for which each request is made for every bit of the category's number.
 */
export function deleteOtherRounds(round: number, spared?: Category): readonly OpenFlowRequest[] {
  const bits = (from: number, count: number): bigint[] =>
    Array.from({ length: count }, (_, i) => 1n << BigInt(from + i));
  const others = spared === undefined ? [0n] : bits(40, 8);
  return bits(48, 16).flatMap((roundBit) =>
    others.map((bit) => {
      const kept = cookieOf(round, spared ?? 0);
      return deleteFlows({ cookie: { value: ~kept & (roundBit | bit), mask: roundBit | bit | learnedBit } });
    }),
  );
}
