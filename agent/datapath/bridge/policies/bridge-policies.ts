import { ownerKey } from "../../../../shared/cni/owner-key.ts";
import type { Owner } from "../../../../shared/cni/types.ts";
import { CniCode, CniError } from "../../../../shared/errors.ts";
import type { Family } from "../../../../shared/net/ip.ts";
import {
  askForChain,
  Errno,
  isErrno,
  listCounters,
  listElements,
  listRules,
  type NetlinkSocket,
  readChainOfRule,
  readCounter,
  readElementKeys,
  readRuleCount,
  type Table,
} from "../../../protocols/netlink/mod.ts";
import { interfaceError } from "../../linux/kernel-errors.ts";
import { unlessMissing } from "../../linux/set-elements.ts";
import type { DeniedCount, NodePolicies, PolicyEnforcement, RefusedRule, RuleCount } from "../../policies.ts";
import type { PolicedBridge } from "./node-chains.ts";
import { changesBetween, type FilledSet, installation, type PacketProgram } from "./packet-program.ts";
import { deniedCounter, type PolicedPod, policyProgram } from "./policy-program.ts";
import { RuleChains, shortName } from "./rule-chains.ts";

interface BridgePoliciesOptions {
  /** For packet filters; it lives as long. */
  readonly socket: NetlinkSocket;
  /** Of the pods' addresses. */
  readonly families: readonly Family[];
  /** As they are now. */
  bridges(): readonly PolicedBridge[];
}

/** In a table of its own, by which an agent with other bridges is left alone. */
export const policyTable = (bridge: string): Table => ({ family: "inet", name: `pipette-policies-${bridge}` });

const nothing: NodePolicies = { rules: new Map(), isolated: new Map() };

/**
 * Policies on kernel bridges, by nftables. Before `enforce` is called for the first time nothing stands, and pods talk
 * past the node as they would without policies; then every packet between them passes the node, so that it knows of
 * each connection who has opened it.
 */
export class BridgePolicies implements PolicyEnforcement {
  readonly #table: Table;
  readonly #options: BridgePoliciesOptions;
  readonly #ruleChains: RuleChains;
  /** By owners' keys, those last that came last. */
  readonly #pods = new Map<string, PolicedPod>();
  #wanted: NodePolicies | undefined;
  /** What the kernel has, as far as known. */
  #standing: PacketProgram | undefined;
  #refused: readonly RefusedRule[] = [];

  constructor(bridge: string, options: BridgePoliciesOptions) {
    this.#table = policyTable(bridge);
    this.#options = options;
    this.#ruleChains = new RuleChains(this.#table, options.families);
  }

  async enforce(wanted: NodePolicies): Promise<readonly RefusedRule[]> {
    this.#wanted = wanted;
    this.#apply();
    return this.#refused;
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

  /** Puts back what somebody has deleted, and follows bridges that are others than before. @throws {CniError} 102 */
  repair(): void {
    if (this.#wanted === undefined) return;
    if (this.#asking("compare", () => this.#differences()).length > 0) this.#standing = undefined;
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
        ...of(shortName("rule", id)),
        sessions: of(shortName("opened", id)).packets,
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
    if (this.#standing === undefined) return [];
    const { socket } = this.#options;
    const bases = this.#standing.parts
      .flatMap((part) => [...part.chains.values()])
      .filter(({ hook }) => hook !== undefined);
    const isWhole = bases.every(({ table, name, rules }) => {
      const uses = unlessMissing(0, () => socket.get(askForChain(table.name, name, table.family), readRuleCount));
      return uses === rules().length;
    });
    return isWhole ? [] : ["the packet rules of network policies are not all there"];
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

  #put(socket: NetlinkSocket, program: PacketProgram): void {
    if (this.#standing === undefined) {
      socket.transact(installation(program));
      return;
    }
    try {
      socket.transact(changesBetween(this.#standing, program));
    } catch (caught) {
      // Somebody has deleted something of it, or added to it.
      if (![Errno.ENOENT, Errno.EBUSY, Errno.EEXIST].some((errno) => isErrno(caught, errno))) throw caught;
      socket.transact(installation(program));
    }
  }

  #differences(): readonly string[] {
    const standing = this.#standing;
    if (standing === undefined)
      return this.#wanted === undefined ? [] : ["no packet rules of network policies are in force"];
    const { socket } = this.#options;
    const differences: string[] = [];
    const chains = standing.parts.flatMap((part) => [...part.chains.values()]);
    const sets = standing.parts.flatMap((part) => [...part.sets.values()]);
    for (const table of new Map(chains.map(({ table }) => [`${table.family} ${table.name}`, table])).values()) {
      const found = new Map<string, number>();
      for (const name of unlessMissing([], () => socket.dump(listRules(table), readChainOfRule)))
        found.set(name, (found.get(name) ?? 0) + 1);
      for (const { name, rules } of chains.filter(
        (chain) => chain.table.family === table.family && chain.table.name === table.name,
      )) {
        const [wanted, is] = [rules().length, found.get(name) ?? 0];
        if (wanted !== is)
          differences.push(
            `the chain "${name}" of the table "${table.family} ${table.name}" has ${is} rules, wanted ${wanted}`,
          );
      }
    }
    return [...differences, ...sets.flatMap((set) => this.#differenceOf(set))];
  }

  #differenceOf({ set, elements }: FilledSet): readonly string[] {
    const { socket } = this.#options;
    const keys = unlessMissing([], () => socket.dump(listElements(set), readElementKeys)).flat();
    const found = new Set(keys.map((key) => key.toHex()));
    const lacking = [...elements.keys()].filter((key) => !found.has(key)).length;
    // The kernel tells the ends of ranges too.
    const extra = set.hasRanges ? 0 : [...found].filter((key) => !elements.has(key)).length;
    if (lacking === 0 && extra === 0) return [];
    const name = `the set "${set.name}" of the table "${set.table.family} ${set.table.name}"`;
    return [`${name} lacks ${lacking} elements and has ${extra} that are not ours`];
  }

  #asking<T>(action: string, ask: () => T): T {
    try {
      return ask();
    } catch (caught) {
      throw new CniError(CniCode.tryAgainLater, `Cannot ${action}: ${interfaceError(action, caught).message}`);
    }
  }
}
