import { CniCode, CniError } from "../../../../shared/errors.ts";
import type { Ip } from "../../../../shared/net/ip.ts";
import type { Direction } from "../../../../shared/policy/mod.ts";
import type { LoggedVerdicts, NodePolicies, PodRule, PolicyEnforcement, RefusedRule, Verdict } from "../../policies.ts";
import type { PipelineContext } from "../pipeline/context.ts";
import { policyTables } from "../pipeline/mod.ts";
import type { PartOfSwitch } from "../program/drift.ts";
import { type FlowSetChanges, isRefusedFlowSet } from "../program/flow-set.ts";
import type { OpenFlowProgram } from "../program/mod.ts";
import { withCniErrors } from "../switch-presence.ts";
import type { PodInterface } from "./clause-matches.ts";
import { nothing, PolicyFlows } from "./policy-flows.ts";
import { ReportedVerdicts } from "./reported-verdicts.ts";
import { type Counts, readCounts } from "./rule-counts.ts";

interface Reports {
  readonly which: Exclude<LoggedVerdicts, "off">;
  told(verdict: Verdict): void;
}

interface Running {
  readonly program: Pick<OpenFlowProgram, "set" | "compare" | "status">;
  readonly flows: PolicyFlows;
  /** Called when packets have to go by other flows from now on; answers when they do. */
  readonly changed: () => Promise<void>;
}

/**
 * Policies on Open vSwitch. What is to be in force may be said before the node has been set up: then it is there before
 * the flows of any pod.
 */
export class OvsPolicies implements PolicyEnforcement, AsyncDisposable {
  readonly #management: string;
  #reports: Reports | undefined;
  #reporter: ReportedVerdicts | undefined;
  #wanted: NodePolicies = nothing;
  /** Of it, what the switch has not refused, as far as known. */
  #accepted: NodePolicies = nothing;
  #running: Running | undefined;

  /** @param management where the bridge listens, as `parseAddress` of `agent/protocols/openflow` takes it */
  constructor(management: string) {
    this.#management = management;
  }

  /** What of the switch is not told by `differences`; absent: all, since nobody wants policies. */
  get otherParts(): PartOfSwitch | undefined {
    return this.#wanted === nothing ? undefined : { allBut: policyTables };
  }

  /** From now on changes go to the program. What `alongside` answers is to be told it first. */
  begin(program: Running["program"], context: PipelineContext, changed: () => Promise<void>): void {
    const [start = 0] = crypto.getRandomValues(new Uint32Array(1));
    // Connections live longer than agents, and no other rule may have their labels.
    const flows = new PolicyFlows(context, BigInt(start) << 32n, {}, this.#reports?.which);
    flows.want(this.#wanted);
    this.#accepted = this.#wanted;
    this.#running = { program, flows, changed };
    if (this.#reports === undefined) return;
    const { told } = this.#reports;
    this.#reporter = new ReportedVerdicts({ management: this.#management, flows, told });
  }

  /** The node's own addresses, or the ports of its interfaces, have changed. */
  follow(context: PipelineContext): FlowSetChanges {
    this.#running?.flows.follow(context);
    return this.alongside(new Map());
  }

  /** What has to change together with pods' interfaces: by owners' keys, `undefined` where one goes. */
  alongside(interfaces: ReadonlyMap<string, PodInterface | undefined>): FlowSetChanges {
    this.#running?.flows.connect(interfaces);
    return this.#running?.flows.take() ?? new Map();
  }

  /** It is unknown whether the program has these, of which `alongside` answered some: it is told them again. */
  putBack(changes: FlowSetChanges): void {
    this.#running?.flows.putBack(changes);
  }

  async enforce(wanted: NodePolicies): Promise<readonly RefusedRule[]> {
    this.#wanted = wanted;
    const running = this.#requireRunning("put policies in force");
    const before = this.#accepted;
    this.#accepted = wanted;
    const refused = running.flows.want(wanted);
    try {
      await pass(running);
      return refused;
    } catch (caught) {
      if (!isRefusedFlowSet(caught)) throw caught;
      return [...refused, ...(await this.#enforceWithoutRefused(running, before, wanted))];
    }
  }

  async counts(): Promise<Counts> {
    const { flows } = this.#requireRunning("count what policies let pass");
    return withCniErrors(() => readCounts(this.#management, flows));
  }

  async differences(): Promise<readonly string[]> {
    const { program } = this.#requireRunning("compare the policies with the switch's");
    if (!program.status.connected) return ["the switch is away, and gets its policies when it is there again"];
    return withCniErrors(() => program.compare(false, { tables: policyTables }));
  }

  ruleOf(number: number): PodRule | undefined {
    return this.#running?.flows.ruleOf(number);
  }

  /** The policies that isolate the pod of an address, or of a port, in one direction. */
  isolating(direction: Direction, at: { readonly ip: Ip } | { readonly ofport: number }): readonly string[] {
    return (
      this.#running?.flows.isolationAt(direction, at)?.by.map(({ namespace, name }) => `${namespace}/${name}`) ?? []
    );
  }

  report(which: Reports["which"], told: Reports["told"]): void {
    this.#reports = { which, told };
  }

  get unreported(): string | undefined {
    if (this.#reports === undefined || this.#running?.flows.isMetered !== false) return undefined;
    return "the switch has no meters, which would bound them";
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#reporter?.[Symbol.asyncDispose]();
  }

  /**
   * Finds the rules that the switch refuses, each of those that are new by itself, so that others are not concerned. No
   * packet meets a rule that is tried: until all that are not refused come at once, what was in force is.
   */
  async #enforceWithoutRefused(running: Running, before: NodePolicies, wanted: NodePolicies): Promise<RefusedRule[]> {
    const refused: RefusedRule[] = [];
    const rules = new Map(wanted.rules);
    const tried: PodRule[] = [];
    for (const [id, rule] of wanted.rules) {
      if (before.rules.get(id) === rule) continue;
      tried.push({ ...rule, id: `${id} tried` });
      try {
        running.flows.want(before, tried);
        await pass(running);
      } catch (caught) {
        if (!isRefusedFlowSet(caught)) throw caught;
        refused.push({ id, reason: caught.message });
        rules.delete(id);
        tried.pop();
      }
    }
    this.#accepted = { rules, isolated: wanted.isolated };
    running.flows.want(this.#accepted);
    await pass(running);
    return refused;
  }

  #requireRunning(action: string): Running {
    if (this.#running !== undefined) return this.#running;
    throw new CniError(CniCode.tryAgainLater, `Cannot ${action}: the switch is not set up yet`);
  }
}

/** @throws {CniError} as `SwitchProgram.set` */
async function pass({ program, flows, changed }: Running): Promise<void> {
  const changes = flows.take();
  if (changes.size === 0) return;
  try {
    await program.set(changes);
  } catch (caught) {
    flows.putBack(changes);
    throw caught;
  }
  await changed();
}
