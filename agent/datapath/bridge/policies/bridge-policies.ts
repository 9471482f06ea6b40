import { ownerKey } from "../../../../shared/cni/owner-key.ts";
import type { Owner } from "../../../../shared/cni/types.ts";
import { CniCode, CniError } from "../../../../shared/errors.ts";
import type { Family } from "../../../../shared/net/ip.ts";
import {
  askForChain,
  deleteChain,
  deleteSet,
  deleteTable,
  Errno,
  isErrno,
  listCounters,
  type Message,
  type NetlinkSocket,
  readCounter,
  readRuleCount,
  type Table,
} from "../../../protocols/netlink/mod.ts";
import { interfaceError } from "../../linux/kernel-errors.ts";
import { unlessMissing } from "../../linux/set-elements.ts";
import type {
  DeniedCount,
  LoggedVerdicts,
  NodePolicies,
  PolicyEnforcement,
  RefusedRule,
  RuleCount,
  Verdict,
} from "../../policies.ts";
import { bridgeChains, closedPorts, type PolicedBridge } from "./node-chains.ts";
import { changesBetween, type FilledSet, type PacketProgram, placeOf } from "./packet-program.ts";
import { deniedCounter, type PolicedPod, policyProgram } from "./policy-program.ts";
import { groupOf, ReportedPackets, type ReportSocket } from "./reported-packets.ts";
import { countersOf, RuleChains } from "./rule-chains.ts";
import { hasRanges, ruleCounts, standingKeys, standingProgram } from "./standing-program.ts";

interface BridgePoliciesOptions {
  /** For packet filters; it lives as long. */
  readonly socket: NetlinkSocket;
  /** Of the pods' addresses. */
  readonly families: readonly Family[];
  /** As they are now. */
  bridges(): readonly PolicedBridge[];
  /** @throws {NetlinkError} */
  openReports(group: number): ReportSocket;
}

/** In a table of its own, by which an agent with other bridges is left alone. */
export const policyTable = (bridge: string): Table => ({ family: "inet", name: `pipette-policies-${bridge}` });

/** Messages of one transaction that need not be one: some MB at most. */
const maxMessages = 1_000;

const isIn = (one: ReadonlyMap<string, unknown>, other: ReadonlyMap<string, unknown>): boolean =>
  [...one.keys()].every((key) => other.has(key));

const nothing: NodePolicies = { rules: new Map(), isolated: new Map() };

/**
 * Policies on kernel bridges, by nftables. Before `enforce` is called for the first time nothing stands, and pods talk
 * past the node as they would without policies; then every packet between them passes the node, so that it knows of
 * each connection who has opened it.
 */
export class BridgePolicies implements PolicyEnforcement, Disposable {
  readonly #table: Table;
  readonly #options: BridgePoliciesOptions;
  #ruleChains: RuleChains;
  #reports: ReportedPackets | undefined;
  #unreported: string | undefined;
  /** By owners' keys, those last that came last. */
  readonly #pods = new Map<string, PolicedPod>();
  #wanted: NodePolicies | undefined;
  #isStarted = false;
  /** What the kernel has, as far as known. */
  #standing: PacketProgram | undefined;
  /** What the last change has left, for the next one. */
  #sweep: readonly Message[] = [];
  #refused: readonly RefusedRule[] = [];

  constructor(bridge: string, options: BridgePoliciesOptions) {
    this.#table = policyTable(bridge);
    this.#options = options;
    this.#ruleChains = new RuleChains(this.#table, options.families);
  }

  async enforce(wanted: NodePolicies): Promise<readonly RefusedRule[]> {
    this.#wanted = wanted;
    // Without its pods it would open those that an earlier agent has closed.
    if (!this.#isStarted) return [];
    this.#apply();
    return this.#refused;
  }

  report(which: Exclude<LoggedVerdicts, "off">, told: (verdict: Verdict) => void): void {
    const { families, openReports } = this.#options;
    try {
      const group = groupOf(this.#table.name);
      const reports = new ReportedPackets(group, openReports(group), {
        which,
        told,
        wanted: () => this.#wanted,
        pods: () => this.#pods.values(),
      });
      this.#reports = reports;
      this.#ruleChains = new RuleChains(this.#table, families, reports);
    } catch (caught) {
      // No rule may name a group then: a kernel that has no such reports takes none.
      this.#unreported = interfaceError("hear of verdicts", caught).message;
    }
  }

  get unreported(): string | undefined {
    return this.#unreported ?? this.#reports?.problem;
  }

  [Symbol.dispose](): void {
    this.#reports?.[Symbol.dispose]();
  }

  /** Pods that are there at the agent's start. */
  restore(pods: Iterable<PolicedPod>): void {
    for (const pod of pods) this.#pods.set(ownerKey(pod.owner), pod);
  }

  /** To be called before the pod's port is up. @throws {CniError} 102 */
  admit(pod: PolicedPod): void {
    const key = ownerKey(pod.owner);
    // Of two pods with one address the one counts that came last.
    this.#pods.delete(key);
    this.#pods.set(key, pod);
    if (this.#concerns(key)) this.#apply();
  }

  /** To be called once its port is down: its addresses may be another pod's then. @throws {CniError} 102 */
  dismiss(owner: Owner): void {
    const key = ownerKey(owner);
    if (this.#pods.delete(key) && this.#concerns(key)) this.#apply();
  }

  /**
   * Puts in force what is wanted, for the pods that were restored, and puts back what somebody has deleted. Repeatable.
   * Where nothing is wanted by then, no policies are to be enforced, and an earlier agent's go.
   * @throws {CniError} 102
   */
  start(): void {
    this.#isStarted = true;
    if (this.#wanted === undefined) {
      this.#asking("take back network policies", () => this.#takeBack());
      return;
    }
    if (this.#asking("compare the packet rules of policies", () => this.#differences()).length > 0)
      this.#standing = undefined;
    this.#apply();
  }

  async counts(): Promise<{ readonly rules: readonly RuleCount[]; readonly denied: readonly DeniedCount[] }> {
    const { socket } = this.#options;
    const { rules, isolated } = this.#wanted ?? nothing;
    const found = this.#asking("read the counters of policies", () => {
      const counters = unlessMissing([], () => socket.dump(listCounters(this.#table), readCounter));
      return new Map(counters.map((counter) => [counter.name, counter]));
    });
    const of = (name: string): { packets: number; bytes: number } => {
      const { packets = 0, bytes = 0 } = found.get(name) ?? {};
      return { packets, bytes };
    };
    return {
      rules: [...rules.keys()].map((id) => ({
        id,
        ...of(countersOf(id).passed),
        sessions: of(countersOf(id).opened).packets,
      })),
      denied: [...isolated.values()].flatMap(({ owner, directions }) =>
        directions.map((direction) => ({ owner, direction, ...of(deniedCounter(owner, direction)) })),
      ),
    };
  }

  async differences(): Promise<readonly string[]> {
    return this.#asking("compare the packet rules of policies", () => this.#differences());
  }

  /**
   * A quick look, for a check that runs often: whether packets are still led to the pods' rules.
   * @throws {NetlinkError}
   */
  problems(): readonly string[] {
    if (this.#wanted === undefined || !this.#isStarted) return [];
    const { socket } = this.#options;
    const standing = this.#standing?.parts ?? [];
    const bases = standing.flatMap((part) => [...part.chains.values()]).filter(({ hook }) => hook !== undefined);
    const isWhole = bases.every(({ table, name, rules }) => {
      const uses = unlessMissing(0, () => socket.get(askForChain(table.name, name, table.family), readRuleCount));
      return uses === rules().length;
    });
    return isWhole && bases.length > 0 ? [] : ["the packet rules of network policies are not all there"];
  }

  /** Whether anything is in force for the owner, or will be. */
  #concerns(key: string): boolean {
    return this.#wanted?.isolated.has(key) === true;
  }

  #apply(): void {
    const { socket, bridges } = this.#options;
    const { program, refused } = policyProgram(
      this.#table,
      this.#wanted ?? nothing,
      this.#pods.values(),
      bridges(),
      this.#ruleChains,
      this.#reports,
    );
    try {
      this.#put(socket, program);
    } catch (caught) {
      // Unknown, so the next attempt replaces all.
      this.#standing = undefined;
      throw interfaceError("put network policies in force", caught);
    }
    this.#standing = program;
    this.#refused = refused;
  }

  #takeBack(): void {
    const { socket, bridges } = this.#options;
    const isGone = unlessMissing(true, () => {
      socket.transact([deleteTable(this.#table)]);
      return false;
    });
    if (isGone) return;
    for (const bridge of bridges()) {
      const closed = closedPorts(bridge.name);
      const chains = bridgeChains(bridge, closed);
      for (const message of [
        ...chains.map(({ table, name }) => deleteChain(table, name)),
        ...Object.values(closed).map(deleteSet),
      ])
        unlessMissing(undefined, () => socket.transact([message]));
    }
  }

  #put(socket: NetlinkSocket, program: PacketProgram): void {
    if (this.#standing !== undefined)
      try {
        this.#change(socket, this.#standing, program);
        return;
      } catch (caught) {
        // Somebody has deleted something of it, or added to it.
        if (![Errno.ENOENT, Errno.EBUSY, Errno.EEXIST].some((errno) => isErrno(caught, errno))) throw caught;
      }
    // What an earlier agent has left to be swept is found too.
    this.#sweep = [];
    this.#change(socket, standingProgram(socket, program), program);
  }

  #change(socket: NetlinkSocket, before: PacketProgram, after: PacketProgram): void {
    const { prepare, put, sweep } = changesBetween(before, after);
    const first = [...this.#sweep, ...prepare];
    for (let at = 0; at < first.length; at += maxMessages) socket.transact(first.slice(at, at + maxMessages));
    this.#sweep = [];
    socket.transact(put);
    this.#sweep = sweep;
  }

  #differences(): readonly string[] {
    const standing = this.#standing;
    if (standing === undefined)
      return this.#wanted === undefined ? [] : ["no packet rules of network policies are in force"];
    const counts = ruleCounts(this.#options.socket, standing);
    const chains = standing.parts.flatMap((part) => [...part.chains]);
    const sets = standing.parts.flatMap((part) => [...part.sets.values()]);
    return [
      ...chains.flatMap(([place, { rules }]) => {
        const [wanted, is] = [rules().length, counts.get(place)?.count ?? 0];
        return wanted === is ? [] : [`the chain "${place}" has ${is} rules, wanted ${wanted}`];
      }),
      ...sets.flatMap((set) => this.#differenceOf(set)),
    ];
  }

  #differenceOf(filled: FilledSet): readonly string[] {
    const { set, elements } = filled;
    const found = standingKeys(this.#options.socket, set) ?? new Map<string, Uint8Array>();
    if (set.hasRanges ? hasRanges(found, filled) : found.size === elements.size && isIn(elements, found)) return [];
    const lacking = [...elements.keys()].filter((key) => !found.has(key)).length;
    return [`the set "${placeOf(set)}" has ${found.size} elements and lacks ${lacking} of ours`];
  }

  #asking<T>(action: string, ask: () => T): T {
    try {
      return ask();
    } catch (caught) {
      throw new CniError(CniCode.tryAgainLater, `Cannot ${action}: ${interfaceError(action, caught).message}`);
    }
  }
}
