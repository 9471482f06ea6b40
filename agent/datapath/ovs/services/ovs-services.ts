import { CniCode, CniError } from "../../../../shared/errors.ts";
import type { Logger } from "../../../../shared/log.ts";
import { type Cidr, contains, formatIp, type Ip } from "../../../../shared/net/ip.ts";
import type { RefusedService, ServicePort, ServiceProxy } from "../../services.ts";
import { nodePortsName } from "../node-host.ts";
import type { ServiceWay, ServiceWays } from "../overlay-node.ts";
import { serviceTables } from "../pipeline/mod.ts";
import type { FlowSetChanges } from "../program/flow-set.ts";
import type { OpenFlowProgram } from "../program/mod.ts";
import { withCniErrors } from "../switch-presence.ts";
import { AppliedServices } from "./applied-services.ts";
import { ConntrackFlusher } from "./conntrack-flusher.ts";
import {
  familyOf,
  type ServedPort,
  type ServiceChange,
  shortcomingOf,
  sizeOf,
  staleConnections,
} from "./served-port.ts";
import { noServiceFlowSet, type ServiceContext } from "./service-flows.ts";

export interface OvsServicesOptions {
  /** Where cluster IPs are from. */
  readonly cidrs: readonly Cidr[];
  /** `false`: pods' cluster IPs alone. */
  readonly proxyAll: boolean;
  /** Blocks of the node's addresses at which node ports answer; none: all of them. */
  readonly nodePortAddresses: readonly Cidr[];
  /** Where the bridge listens, as `parseAddress` of `agent/protocols/openflow` takes it. */
  readonly management: string;
  readonly logger: Logger;
}

type Program = Pick<OpenFlowProgram, "set" | "compare" | "status">;

/** What the rest of the node does for services. */
export interface ServiceNode {
  /**
   * Brings to the bridge what the node itself and others ask services for.
   * @returns by address, and for node ports by `nodePortsName`, why that cannot be
   * @throws {CniError}
   */
  open(ways: ServiceWays): Promise<ReadonlyMap<string, string>>;
  /** Called when all services have been applied for the first time: what the switch has of earlier ones may go. */
  complete(): Promise<void>;
}

/** Flows and groups of one bundle: some ten milliseconds of the switch's time, in which it does nothing else. */
const bundleChanges = 4_000;

/**
 * Services on Open vSwitch, bundle by bundle. The switch's program restores them after a restart, and the switch keeps
 * them while no agent runs, since pods use them.
 */
export class OvsServices implements ServiceProxy, AsyncDisposable {
  readonly #options: OvsServicesOptions;
  readonly #flusher: ConntrackFlusher;
  #running: { readonly program: Program; readonly applied: AppliedServices; readonly node: ServiceNode } | undefined;
  #hasBase = false;
  /** The node may not know the latest ways. */
  #areWaysStale = true;
  #unserved: ReadonlyMap<string, string> = new Map();
  /** All services have been applied once. */
  #isComplete = false;
  #isEnded = false;

  constructor(options: OvsServicesOptions) {
    this.#options = options;
    this.#flusher = new ConntrackFlusher(options);
  }

  /** Whether services are met at other addresses than cluster IPs too, and by the node and others. */
  get proxyAll(): boolean {
    return this.#options.proxyAll;
  }

  /** Of these addresses of the node, those at which node ports answer. */
  answersAt(ips: readonly Ip[]): readonly Ip[] {
    const { nodePortAddresses: blocks } = this.#options;
    return blocks.length === 0 ? ips : ips.filter((ip) => blocks.some((block) => contains(block, ip)));
  }

  /** From now on services go to the program. */
  begin(program: Program, context: ServiceContext, node: ServiceNode): void {
    this.#running = { program, applied: new AppliedServices(context, this.proxyAll), node };
    this.#hasBase = false;
    this.#isComplete = false;
  }

  async apply(wanted: ReadonlyMap<string, ServicePort>, signal: AbortSignal): Promise<readonly RefusedService[]> {
    const { applied, node } = this.#requireRunning("put services in force");
    const reasons = new Map<string, string>();
    if (!this.#hasBase) await this.#setBase(reasons);
    let hasChanged = false;
    for (const changes of bundlesOf(applied.changesTo(wanted))) {
      if (signal.aborted || this.#isEnded) return [];
      hasChanged = true;
      await this.#apply(changes, reasons);
    }
    if (hasChanged) this.#areWaysStale = true;
    if (this.#areWaysStale && this.proxyAll) this.#unserved = await node.open(waysOf(applied.all()));
    this.#areWaysStale = false;
    if (!this.#isComplete) await node.complete();
    this.#isComplete = true;
    for (const given of wanted.values()) {
      const reason = this.#shortcomingOf(given);
      if (reason !== undefined && !reasons.has(given.key)) reasons.set(given.key, reason);
    }
    return [...reasons].map(([key, reason]) => ({ key, reason }));
  }

  #shortcomingOf(given: ServicePort): string | undefined {
    if (this.#unserved.size === 0) return shortcomingOf(given);
    const ips = [...given.externalIps, ...given.ingressIps].map(formatIp);
    const names = given.nodePort === undefined ? ips : [...ips, nodePortsName];
    const unserved = names.find((name) => this.#unserved.has(name));
    if (unserved === undefined) return shortcomingOf(given);
    return `only pods reach it by ${unserved}: ${this.#unserved.get(unserved)}`;
  }

  async differences(): Promise<readonly string[]> {
    const { program } = this.#requireRunning("compare the services with the switch's");
    if (!program.status.connected) return ["the switch is away, and gets its services when it is there again"];
    return withCniErrors(() => program.compare(false, { tables: serviceTables }));
  }

  /** The switch keeps its services. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isEnded = true;
    await this.#flusher[Symbol.asyncDispose]();
  }

  #requireRunning(action: string) {
    if (this.#running !== undefined) return this.#running;
    throw new CniError(CniCode.tryAgainLater, `Cannot ${action}: the switch is not set up yet`);
  }

  async #setBase(reasons: Map<string, string>): Promise<void> {
    const flowSet = noServiceFlowSet(this.#options.cidrs);
    const refusal = await this.#set(() => new Map([["services", flowSet]]));
    if (refusal === undefined) this.#hasBase = true;
    else reasons.set("services", refusal);
  }

  /** A refused bundle is split into halves to find the refused service, so that it does not affect the others. */
  async #apply(changes: readonly ServiceChange[], reasons: Map<string, string>): Promise<void> {
    const { applied } = this.#requireRunning("put services in force");
    let step: ReturnType<AppliedServices["step"]> | undefined;
    const make = (): FlowSetChanges => {
      step = applied.step(changes);
      return step.changes;
    };
    try {
      const refusal = await this.#set(make);
      if (refusal === undefined) {
        step?.confirm();
        this.#flusher.add(changes.flatMap(staleConnections));
        return;
      }
      const [first] = changes;
      if (changes.length === 1 && first !== undefined) reasons.set(first.key, refusal);
    } catch (caught) {
      // The program keeps it for the next connection, if it has room and the switch does not refuse it then.
      step?.markDirty();
      throw caught;
    }
    if (changes.length <= 1 || this.#isEnded) return;
    const middle = changes.length >> 1;
    await this.#apply(changes.slice(0, middle), reasons);
    await this.#apply(changes.slice(middle), reasons);
  }

  /** @returns why the switch refuses it @throws {CniError} 11 */
  async #set(make: () => FlowSetChanges): Promise<string | undefined> {
    try {
      await this.#requireRunning("put services in force").program.set(make());
      return undefined;
    } catch (caught) {
      const error = CniError.from(caught, "put services into the switch");
      if (error.code === CniCode.tryAgainLater) throw error;
      return error.message;
    }
  }
}

function waysOf(all: Iterable<ServedPort>): ServiceWays {
  const nodePorts: ServiceWay[] = [];
  const refused: ServiceWay[] = [];
  const ips = new Map<string, Ip>();
  for (const served of all) {
    const { protocol, places, hasEndpoints } = served;
    for (const { ip, port } of places) {
      const way = { protocol, family: familyOf(served), port, ...(ip === undefined ? {} : { ip }) };
      if (ip === undefined) nodePorts.push(way);
      else if (ip !== places[0]?.ip) ips.set(formatIp(ip), ip);
      if (!hasEndpoints) refused.push(way);
    }
  }
  return { nodePorts, ips: [...ips.values()], refused };
}

function* bundlesOf(changes: Iterable<ServiceChange>): Generator<readonly ServiceChange[]> {
  let bundle: ServiceChange[] = [];
  let size = 0;
  for (const change of changes) {
    bundle.push(change);
    size += sizeOf(change);
    if (size < bundleChanges) continue;
    yield bundle;
    bundle = [];
    size = 0;
  }
  if (bundle.length > 0) yield bundle;
}
