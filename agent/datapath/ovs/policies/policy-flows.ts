import { ownerKey } from "../../../../shared/cni/owner-key.ts";
import type { Owner } from "../../../../shared/cni/types.ts";
import { formatCidr, type Ip, sameIp } from "../../../../shared/net/ip.ts";
import type { BlockPeer, Direction } from "../../../../shared/policy/mod.ts";
import type { Flow } from "../../../protocols/openflow/mod.ts";
import type { AddressSet, Isolation, LoggedVerdicts, NodePolicies, PodRule, RefusedRule } from "../../policies.ts";
import type { PipelineContext } from "../pipeline/context.ts";
import { Category } from "../pipeline/cookie.ts";
import { familiesOf } from "../pipeline/families.ts";
import { isolationFlows, policyFlows, ruleFlows } from "../pipeline/mod.ts";
import type { FlowSet, FlowSetChanges } from "../program/flow-set.ts";
import { StableIds } from "../program/mod.ts";
import { ClauseMatches, type PodInterface } from "./clause-matches.ts";
import { policyPrefix, SharedMatches } from "./shared-matches.ts";

/** What the switch takes. */
const policyBounds = {
  /** Of one direction, in one slice of the table: see `ClauseMatches`. */
  rulesOfSlice: 4_000,
  /** The switch looks into each slice for each first packet. */
  slices: 16,
  /** Of all policies: what fits into one bundle, so that every change of them is one. */
  flows: 90_000,
} as const;

type PolicyBounds = Readonly<Record<keyof typeof policyBounds, number>>;

/** Of a rule, beside its matches. */
const flowsOfRule = 4;

/** The key of the flows that there are beside rules and isolated pods. */
const baseKey = `${policyPrefix}base`;

interface AppliedRule {
  readonly rule: PodRule;
  /** Of its conjunctive match: the same after the agent has restarted, so that its flows are too. */
  readonly number: number;
  readonly slice: number;
  /** How many clauses its conjunctions have. */
  readonly clauses: number;
  /** Names of the parts of all of its clauses. */
  readonly parts: ReadonlySet<string>;
}

/** One of those that a clause names. */
interface NamedPart {
  readonly name: string;
  readonly clause: 1 | 2 | 3;
  readonly flows: () => readonly Flow[];
}

export const nothing: NodePolicies = { rules: new Map(), isolated: new Map() };

/**
 * The flow sets that put policies in force, as changes: `take` answers what has become other since the last time. A
 * rule gets another label as soon as it comes to match less, and with each start of the agent.
 */
export class PolicyFlows {
  readonly #bounds: PolicyBounds;
  #context: PipelineContext;
  readonly #reported: LoggedVerdicts;
  readonly #matches = new SharedMatches();
  readonly #numbers = new StableIds();
  readonly #rules = new Map<string, AppliedRule>();
  readonly #byNumber = new Map<number, AppliedRule>();
  /** Rules in each slice. */
  readonly #slices: Readonly<Record<Direction, number[]>> = { ingress: [], egress: [] };
  /** As their parts match them. */
  readonly #sets = new Map<string, AddressSet>();
  readonly #interfaces = new Map<string, PodInterface>();
  #isolated = nothing.isolated;
  /** All flow sets, by their keys in the program. */
  readonly #flowSets = new Map<string, FlowSet>();
  /** Keys of those that the program does not have, or not so. */
  readonly #untold = new Set<string>();
  #label: bigint;

  /** @param firstLabel another one in each start of the agent @param reported which packets are */
  constructor(
    context: PipelineContext,
    firstLabel: bigint,
    bounds: Partial<PolicyBounds> = {},
    reported: LoggedVerdicts = "off",
  ) {
    this.#context = context;
    this.#reported = reported;
    this.#label = firstLabel;
    this.#bounds = { ...policyBounds, ...bounds };
  }

  /** The rule of a conjunctive match. */
  ruleOf(number: number): PodRule | undefined {
    return this.#byNumber.get(number)?.rule;
  }

  /** Whether the switch can bound how many packets are reported. */
  get isMetered(): boolean {
    return this.#context.metered === true;
  }

  /** The isolated pod at a port, or with an address. */
  podAt(at: { readonly ofport: number } | { readonly ip: Ip }): Owner | undefined {
    return this.#at(at)?.owner;
  }

  /** What closes that pod in this direction. */
  isolationAt(direction: Direction, at: Parameters<PolicyFlows["podAt"]>[0]): Isolation | undefined {
    const isolation = this.#at(at);
    return isolation?.directions.includes(direction) ? isolation : undefined;
  }

  #at(at: Parameters<PolicyFlows["podAt"]>[0]): Isolation | undefined {
    for (const [isolation, { ofport, ips }] of this.isolated())
      if ("ofport" in at ? ofport === at.ofport : ips.some((ip) => sameIp(ip, at.ip))) return isolation;
    return undefined;
  }

  /** Isolated pods that have an interface. */
  *isolated(): Iterable<readonly [Isolation, PodInterface]> {
    for (const [key, isolation] of this.#isolated) {
      const found = this.#interfaces.get(key);
      if (found !== undefined) yield [isolation, found];
    }
  }

  follow(context: PipelineContext): void {
    this.#context = context;
    if (this.#flowSets.has(baseKey)) this.#setBase();
  }

  /** Pods' interfaces, by owner's key, in place of earlier ones; `undefined` where there is none any more. */
  connect(interfaces: ReadonlyMap<string, PodInterface | undefined>): void {
    for (const [key, found] of interfaces) {
      if (found === undefined) this.#interfaces.delete(key);
      else this.#interfaces.set(key, found);
      for (const direction of ["egress", "ingress"] as const)
        for (const slice of this.#slices[direction].keys()) {
          const flows = found === undefined ? [] : this.#clauses(direction, slice).target(found);
          this.#matches.define(`${direction}/${slice}/target/${key}`, flows);
        }
      this.#isolate(key);
    }
    this.#relabel(this.#matches.takeNarrowed());
  }

  /**
   * @param tried rules whose flows are to be in the switch, and to match no packet: by ids that no other rule has
   * @returns the rules that the switch could not hold
   */
  want({ rules, isolated }: NodePolicies, tried: readonly PodRule[] = []): readonly RefusedRule[] {
    const refused: RefusedRule[] = [];
    const unmet = new Set(tried.map(({ id }) => id));
    for (const id of [...this.#rules.keys()]) if (!rules.has(id) && !unmet.has(id)) this.#remove(id);
    for (const rule of [...rules.values(), ...tried]) {
      if (this.#rules.get(rule.id)?.rule === rule) continue;
      const reason = this.#apply(rule, unmet.has(rule.id));
      if (reason === undefined) continue;
      this.#remove(rule.id);
      refused.push({ id: rule.id, reason });
    }
    const before = this.#isolated;
    this.#isolated = isolated;
    for (const key of new Set([...before.keys(), ...isolated.keys()]))
      if (before.get(key) !== isolated.get(key)) this.#isolate(key);
    if (rules.size + isolated.size > 0 && !this.#flowSets.has(baseKey)) this.#setBase();
    this.#relabel(this.#matches.takeNarrowed());
    return refused;
  }

  /** What the program is to be told. */
  take(): FlowSetChanges {
    for (const [key, flowSet] of this.#matches.takeChanges()) this.#set(key, flowSet);
    const changes = new Map([...this.#untold].map((key) => [key, this.#flowSets.get(key)]));
    this.#untold.clear();
    return changes;
  }

  /** The program may not have these. Flow sets of others do not count. */
  putBack(changes: FlowSetChanges): void {
    for (const key of changes.keys()) if (key.startsWith(policyPrefix)) this.#untold.add(key);
  }

  /** @param isTried it has a clause that no packet meets @returns why the switch cannot hold it */
  #apply(rule: PodRule, isTried: boolean): string | undefined {
    const { id, direction } = rule;
    const before = this.#rules.get(id);
    const slice = before?.slice ?? this.#sliceFor(direction);
    const { slices, rulesOfSlice, flows } = this.#bounds;
    if (slice >= slices)
      return `there are ${slices * rulesOfSlice} others for this direction, as many as the switch takes`;
    const number = this.#numbers.of(id);
    const parts = this.#partsOf(rule, slice);
    const applied = {
      rule,
      number,
      slice,
      clauses: (rule.ports === undefined ? 2 : 3) + (isTried ? 1 : 0),
      parts: new Set(parts.map(({ name }) => name)),
    };
    const kept = before?.clauses === applied.clauses ? before.parts : new Set();
    for (const { name, clause, flows } of parts)
      if (!kept.has(name))
        this.#matches.use(name, number, { t: "conjunction", id: number, clause, clauses: applied.clauses }, flows);
    for (const name of before?.parts ?? []) if (!applied.parts.has(name)) this.#release(name, number);
    this.#rules.set(id, applied);
    this.#byNumber.set(number, applied);
    if (before === undefined) this.#slices[direction][slice] = (this.#slices[direction][slice] ?? 0) + 1;
    if (before?.clauses !== applied.clauses) this.#relabel([number]);
    const needed = this.#matches.size + flowsOfRule * this.#rules.size;
    if (needed > flows) return `with it the node's policies would take ${needed} flows, wanted ${flows} at the most`;
    return undefined;
  }

  #remove(id: string): void {
    const applied = this.#rules.get(id);
    if (applied === undefined) return;
    const { number, slice, parts, rule } = applied;
    for (const name of parts) this.#release(name, number);
    this.#rules.delete(id);
    this.#byNumber.delete(number);
    this.#numbers.release(id);
    this.#slices[rule.direction][slice] = (this.#slices[rule.direction][slice] ?? 0) - 1;
    this.#set(ruleKey(id), undefined);
  }

  #release(name: string, number: number): void {
    this.#matches.release(name, number);
    if (!this.#matches.has(name)) this.#sets.delete(name);
  }

  /** One that has room; the number of all where none has. */
  #sliceFor(direction: Direction): number {
    const slices = this.#slices[direction];
    const free = slices.findIndex((rules) => rules < this.#bounds.rulesOfSlice);
    return free < 0 ? slices.length : free;
  }

  #partsOf({ direction, targets, peers, ports }: PodRule, slice: number): readonly NamedPart[] {
    const clauses = this.#clauses(direction, slice);
    const part = (clause: 1 | 2 | 3, name: string, flows: NamedPart["flows"]): NamedPart => ({
      name: `${direction}/${slice}/${name}`,
      clause,
      flows,
    });
    const setPart = (set: AddressSet): NamedPart => {
      const made = part(2, `set/${set.name}`, () => clauses.addresses(set.ips));
      // Of other members than before.
      if (this.#sets.has(made.name) && this.#sets.get(made.name) !== set) this.#matches.define(made.name, made.flows());
      this.#sets.set(made.name, set);
      return made;
    };
    return [
      ...targets.map(ownerKey).map((key) =>
        part(1, `target/${key}`, () => {
          const found = this.#interfaces.get(key);
          return found === undefined ? [] : clauses.target(found);
        }),
      ),
      ...(peers === undefined ? [part(2, "anybody", () => clauses.anybody())] : []),
      ...(peers?.sets ?? []).map(setPart),
      ...(peers?.blocks ?? []).map((block) => part(2, `block/${blockName(block)}`, () => clauses.block(block))),
      ...(ports ?? []).map((range) => {
        const name = `${range.protocol}/${range.first}/${range.last ?? range.first}`;
        return part(3, `ports/${name}`, () => clauses.ports(range));
      }),
    ];
  }

  #clauses(direction: Direction, slice: number): ClauseMatches {
    return new ClauseMatches(direction, slice, familiesOf(this.#context));
  }

  /** Connections that these rules have let pass are judged anew. */
  #relabel(numbers: Iterable<number>): void {
    for (const number of numbers) {
      const applied = this.#byNumber.get(number);
      if (applied === undefined) continue;
      this.#label += 1n;
      const { id, direction } = applied.rule;
      const flows = ruleFlows({ direction, number, label: this.#label });
      this.#set(ruleKey(id), { category: Category.policy, object: number, flows });
    }
  }

  #isolate(key: string): void {
    const [isolation, found] = [this.#isolated.get(key), this.#interfaces.get(key)];
    const flows = found === undefined ? [] : (isolation?.directions ?? []).flatMap((one) => isolationFlows(one, found));
    const name = isolationKey(key);
    if (Bun.deepEquals(flows, this.#flowSets.get(name)?.flows ?? [])) return;
    this.#set(name, flows.length === 0 ? undefined : { category: Category.policy, flows });
  }

  #setBase(): void {
    const reported = this.isMetered ? this.#reported : "off";
    this.#set(baseKey, { category: Category.policy, flows: policyFlows(this.#context, reported) });
  }

  #set(key: string, flowSet: FlowSet | undefined): void {
    if (flowSet === undefined && !this.#flowSets.delete(key)) return;
    if (flowSet !== undefined) this.#flowSets.set(key, flowSet);
    this.#untold.add(key);
  }
}

/** Of what closes the pod of this owner's key. */
export const isolationKey = (owner: string): string => `${policyPrefix}pod/${owner}`;

const ruleKey = (id: string): string => `${policyPrefix}rule/${id}`;

const blockName = ({ cidr, except }: BlockPeer): string => [cidr, ...except].map(formatCidr).join(" ");
