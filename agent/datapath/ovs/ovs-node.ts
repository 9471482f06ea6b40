import { ReconcileLoop } from "../../../shared/async/reconcile-loop.ts";
import type { Owner } from "../../../shared/cni/types.ts";
import { CniCode, CniError } from "../../../shared/errors.ts";
import { type Ip, sameIp } from "../../../shared/net/ip.ts";
import { reasonOf } from "../../../shared/reason.ts";
import type { ClusterNode, Followed } from "../../cluster/node-registry.ts";
import type { AgentSamples } from "../../metrics/meter.ts";
import { refusedRoute } from "../routes.ts";
import { AppliedPeers } from "./applied-peers.ts";
import { ownerOf } from "./applied-pods.ts";
import { changeFilter, openDatabase, roundsOf, type SwitchDatabase } from "./database/switch-database.ts";
import { NodeHost } from "./node-host.ts";
import { isSameContext, setUpNode } from "./node-set-up.ts";
import type { OvsNodeOptions } from "./options.ts";
import type { ConnectedPod, OverlayNode, PodPort, ServiceWays } from "./overlay-node.ts";
import { type PeerTunnel, PeerTunnels } from "./peer-tunnels.ts";
import type { PipelineContext } from "./pipeline/context.ts";
import { Category } from "./pipeline/cookie.ts";
import { baseFlows } from "./pipeline/mod.ts";
import { PodPorts } from "./pod-ports.ts";
import { vnidFor } from "./pod-vnid.ts";
import { compareFlows, driftLoop } from "./program/drift.ts";
import { type FlowSet, type FlowSetChanges, isRefusedFlowSet } from "./program/flow-set.ts";
import { MeterSupport } from "./program/meters.ts";
import { OpenFlowProgram } from "./program/mod.ts";
import { FlowCache, knownNeighbours } from "./switch-control.ts";
import { baseKey, degradedSwitch, measureSwitch } from "./switch-health.ts";
import { SwitchPresence, withCniErrors } from "./switch-presence.ts";
import { OvsTracing, type TracedNode, waysText } from "./tracing/mod.ts";
import { greetings, TunnelNeighbours, tunnelEnds } from "./tunnel-neighbours.ts";

/** How long a pod's ADD waits for a database that cannot be reached: short, so that the runtime tries again soon. */
const databaseMs = 3_000;

/** The parts that exist once the node has been started. */
interface Running {
  readonly context: PipelineContext;
  readonly program: OpenFlowProgram;
}

/**
 * The node's part of the overlay. The wanted state is in memory: peers, services, projects and pods. `#reconcile`
 * applies it to database, switch and host whenever one of them has changed, was away, or has refused something.
 */
export class OvsNode implements OverlayNode {
  readonly #options: OvsNodeOptions;
  readonly #resources = new AsyncDisposableStack();
  readonly #db: SwitchDatabase;
  readonly #ports: PodPorts;
  readonly #host: NodeHost;
  readonly #peers = new AppliedPeers();
  /** Where each node has a tunnel of its own. */
  readonly #tunnels: PeerTunnels | undefined;
  /** To which packets may go. */
  #reached: ReadonlyMap<string, ClusterNode> = new Map();
  readonly #reconciling: ReconcileLoop;
  readonly #vnids: Followed<ReadonlyMap<string, number>> | undefined;
  readonly #meters: MeterSupport;
  readonly #presence: SwitchPresence;
  /** Where the switch is in user space. */
  readonly #flowCache: FlowCache | undefined;
  readonly tracing: OvsTracing;
  #neighbours: TunnelNeighbours | undefined;
  #running: Running | undefined;
  /** Exists after the first start, because until then flows of earlier agents are no drift. */
  #driftLoop: ReconcileLoop | undefined;
  #databaseConnections = 0;

  /** Begins to connect. @throws {OvsdbError} for the database's address */
  constructor(options: OvsNodeOptions) {
    this.#options = options;
    const { database, management, bridge, logger, tenants, services, policies } = options;
    if (services !== undefined) this.#resources.use(services);
    this.#resources.use(policies);
    this.#db = this.#resources.use(openDatabase(database));
    this.#db.onState(({ t }) => {
      if (t === "ready") this.#databaseConnections++;
    });
    this.#host = new NodeHost(options, this.#db);
    const { credentials } = options;
    this.#tunnels = credentials === undefined ? undefined : new PeerTunnels(this.#db, options, credentials);
    this.#meters = new MeterSupport(management);
    this.#presence = this.#resources.use(new SwitchPresence());
    this.#ports = new PodPorts({ db: this.#db, bridge, presence: this.#presence, logger });
    this.#vnids = tenants === undefined ? undefined : this.#resources.use(tenants.follow());
    this.#flowCache = options.kind === "netdev" ? this.#resources.use(new FlowCache(database, logger)) : undefined;
    this.tracing = new OvsTracing(this.#traced());
    this.#reconciling = this.#resources.use(
      new ReconcileLoop({ what: "the switch", reconcile: () => this.#reconcile(), logger }),
    );
  }

  async pods(): Promise<readonly ConnectedPod[]> {
    return withCniErrors(async () => {
      await this.#db.ready(databaseMs);
      return this.#ports.list();
    });
  }

  async start(keep: (pod: ConnectedPod) => boolean): Promise<void> {
    return withCniErrors(() => this.#start(keep));
  }

  async connectPod(pod: PodPort, when: "now" | "later" = "now"): Promise<void> {
    return withCniErrors(async () => {
      await this.#db.ready(databaseMs);
      const vnid = await vnidFor(pod, this.#options.tenants, this.#vnids?.current);
      if (!(await this.#ports.connect({ ...pod, vnid }, when))) this.#reconciling.trigger();
      if (this.#options.mode !== "networkPolicyOnly") return;
      await this.#setUpHost();
      const refused = this.#host.refusedRoutes.find(({ route }) => pod.ips.some((ip) => sameIp(ip, route.via)));
      if (refused !== undefined) throw refusedRoute(refused);
    });
  }

  /** The pods whose ports it maintains. */
  get wantedPods(): Iterable<PodPort> {
    return this.#ports.wanted;
  }

  /** Of pods whose ports the switch has made, their MACs and the ports' numbers, by the keys of their owners. */
  portsOnSwitch(): ReadonlyMap<string, { readonly mac: string; readonly port: number }> {
    return this.#ports.onSwitch();
  }

  /** Whether it maintains this pod's port. */
  hasPod(owner: Owner): boolean {
    return this.#ports.isWanted(owner);
  }

  /** @throws {CniError} 103 where the switch lacks a flow of the pod, 11 where it cannot be reached */
  async checkFlows(owner: Owner): Promise<void> {
    const flows = this.#ports.flowsOf(owner);
    if (flows.length === 0) return;
    await withCniErrors(() => compareFlows(this.#options.management, flows));
  }

  async disconnectPod(owner: Owner): Promise<void> {
    const isGone = await this.#ports.disconnect(owner);
    if (this.#options.mode === "networkPolicyOnly") this.#host.markStale();
    if (!isGone || this.#host.isStale) this.#reconciling.trigger();
  }

  /** By the names of their ports, where each node has a tunnel of its own. */
  get peerTunnels(): ReadonlyMap<string, PeerTunnel> {
    return this.#tunnels?.byPort ?? new Map<string, never>();
  }

  /** Sends a frame that no node takes into the tunnel to each of these ends. */
  greet(ends: readonly Ip[]): void {
    const { context, program } = this.#running ?? {};
    if (context?.tunnel !== undefined) program?.post(greetings(ends, context.tunnel.ofport));
  }

  /** To which nodes there is no tunnel of their own, and why, in sentences. */
  get unreached(): readonly string[] {
    return this.#tunnels?.unreached ?? [];
  }

  /** Checks the node's own network (gateway, routes), which somebody may have changed. */
  checkHost(): void {
    this.#host.markStale();
    this.#reconciling.trigger();
  }

  problems(): readonly string[] {
    const { state } = this.#db;
    const { database } = this.#options;
    if (state.t !== "ready") {
      const why = state.t === "pausing" ? ` (${state.reason})` : "";
      return [`the database of Open vSwitch at "${database}" cannot be reached${why}`];
    }
    const { connected = false, refused = [] } = this.#running?.program.status ?? {};
    const why = new Map(refused).get(baseKey);
    if (connected) return why === undefined ? [] : [`the switch refuses the node's own flows (${why})`];
    return [this.#isAway];
  }

  get #isAway(): string {
    const { lastError = "" } = this.#running?.program.status ?? {};
    return `the switch at "${this.#options.management}" cannot be reached${lastError === "" ? "" : ` (${lastError})`}`;
  }

  async degraded(): Promise<readonly string[]> {
    if (this.#running === undefined) return [];
    const { program } = this.#running;
    const found = await degradedSwitch(program, this.#options, [...this.#peers.refusals, ...this.#ports.refused]);
    return [
      ...found.refused,
      ...this.#host.refusedRoutes.map((route) => refusedRoute(route).message),
      ...this.#host.unencrypted,
      ...this.unreached,
      ...found.others,
    ];
  }

  /** Tells a scrape of flows and connections. */
  measure(samples: AgentSamples): void {
    measureSwitch(samples, this.#databaseConnections, this.#running?.program);
  }

  /** The switch goes on as it is. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#resources.disposeAsync();
  }

  async #start(keep: (pod: ConnectedPod) => boolean): Promise<void> {
    if (this.#running !== undefined) return this.#restart();
    const { management, bridge, logger, services } = this.#options;
    await this.#db.ready();
    const context = await setUpNode(this.#db, this.#options, this.#meters);
    const program = this.#resources.use(
      await OpenFlowProgram.start({
        management,
        rounds: roundsOf(this.#db, bridge),
        onForeignChange: () => this.#driftLoop?.trigger(),
        onUnwatched: (error) => logger.warn("changes of flows by others are seen within a minute only", { error }),
        onStatus: (status) => {
          if (status.connected) logger.info("the switch has everything");
          else logger.warn("the switch is away", { error: status.lastError });
          if (status.connected) this.#neighbours?.reset();
          if (status.connected) this.#flowCache?.purge();
          this.#presence.update(status.connected, () => this.#isAway);
          this.#reconciling.trigger();
        },
      }),
    );
    this.#options.policies.begin(program, context, async () => this.#flowCache?.purgeNow());
    const pods = this.#withPolicies(this.#ports.adopt(context, keep));
    await program.set(new Map([...pods, [baseKey, baseFlowSet(context)]]));
    await this.#applyPeers(program, context).catch((error: unknown) => {
      logger.warn("not every other node is reached", { error: reasonOf(error) });
    });
    this.#running = { context, program };
    this.#ports.follow(context, (changes) => this.#setPods(program, changes));
    await this.#host.keepAddresses();
    await this.#host.leaveToSwitch();
    this.#knowNeighbours(program);
    await this.#setUpHost();
    services?.begin(program, context, {
      open: (ways) => this.#openWays(ways),
      complete: () => program.finishRound(),
    });
    // Those of an earlier start stay until the present ones are known.
    await program.finishRound(services === undefined ? undefined : Category.service);
    this.#flowCache?.purge();
    const look = async (): Promise<readonly string[]> => {
      // The flows are repaired anyway; the reconciliation reports a failure.
      await this.#host.keepAddresses().catch(() => this.#reconciling.trigger());
      return this.#repairFlows(program);
    };
    this.#driftLoop = this.#resources.use(driftLoop({ look, logger }));
    this.#follow();
  }

  /** Checks everything, the host's side too. */
  async #restart(): Promise<void> {
    await this.#db.ready(databaseMs);
    // Without a connected switch the gateway does not exist yet.
    if (this.#running?.program.status.connected) await this.#host.dropLostGateway();
    this.#host.forgetGateway();
    await this.#reconciling.run();
    const found = this.#running === undefined ? [] : await this.#repairFlows(this.#running.program);
    if (found.length > 0) this.#options.logger.warn("the switch was put right", { found });
  }

  /** @returns what others had changed in the switch */
  async #repairFlows(program: OpenFlowProgram): Promise<readonly string[]> {
    const found = await program.compare(true);
    if (found.length > 0) this.#flowCache?.purge();
    return found;
  }

  #follow(): void {
    const trigger = (): void => this.#reconciling.trigger();
    this.#resources.use(this.#options.peers.subscribe(trigger));
    if (this.#vnids !== undefined) this.#resources.use(this.#vnids.subscribe(trigger));
    const { bridge, gateway, tunnel, uplink = gateway, credentials } = this.#options;
    if (credentials?.kind === "certificate") credentials.source.onChange = trigger;
    const own = new Set([bridge, gateway, tunnel.name, uplink]);
    const nodePorts = { has: (name: string): boolean => own.has(name) || this.#tunnels?.has(name) === true };
    const asksForAnything = changeFilter(nodePorts, (port) => this.#ports.isHandled(port));
    this.#resources.use(
      this.#db.onChanges((changes) => {
        if (changes.some(asksForAnything)) trigger();
      }),
    );
    this.#resources.use(this.#db.onState(trigger));
  }

  /** @returns what was refused of other nodes, which does not stop the rest */
  async #reconcile(): Promise<string | undefined> {
    if (this.#running === undefined || this.#db.state.t !== "ready") return undefined;
    const { program } = this.#running;
    const context = await setUpNode(this.#db, this.#options, this.#meters);
    const [kept] = await Promise.allSettled([this.#host.keepAddresses()]);
    await this.#host.leaveToSwitch();
    if (!isSameContext(context, this.#running.context)) {
      // If the switch refuses, the context stays unapplied and is tried again.
      await this.#set(program, new Map([...this.#options.policies.follow(context), [baseKey, baseFlowSet(context)]]));
      this.#running = { context, program };
      this.#peers.markDirty();
      this.#tunnels?.markDirty();
      this.#ports.follow(context, (changes) => this.#setPods(program, changes));
    }
    const [peers] = await Promise.allSettled([this.#applyPeers(program, context)]);
    const hasNewPeers = peers.status === "rejected" || peers.value;
    if (hasNewPeers) this.#neighbours?.refresh();
    if (hasNewPeers || this.#host.isStale || this.#host.hasOtherGateway) await this.#setUpHost();
    const vnids = this.#vnids?.current;
    if (vnids !== undefined) await this.#ports.followVnids(vnids);
    await this.#ports.reconcile();
    // A failure for one node, or of the host's network, does not stop the rest, and is tried again.
    if (kept.status === "rejected") throw kept.reason;
    const [route] = this.#host.refusedRoutes;
    if (peers.status === "fulfilled")
      return route === undefined ? this.#host.encryptionFailure : refusedRoute(route).message;
    if (isRefusedFlowSet(peers.reason)) return peers.reason.message;
    throw peers.reason;
  }

  /** @returns whether anything had changed */
  async #applyPeers(program: OpenFlowProgram, context: PipelineContext): Promise<boolean> {
    this.#reached = (await this.#tunnels?.bring(program, context, this.#options.peers.current)) ?? this.#nodes;
    return await this.#peers.apply(program, context, this.#reached);
  }

  /** A pod's first packet already meets the policies. */
  #setPods(program: OpenFlowProgram, pods: FlowSetChanges): Promise<void> {
    return this.#set(program, this.#withPolicies(pods));
  }

  async #set(program: OpenFlowProgram, changes: FlowSetChanges): Promise<void> {
    try {
      await program.set(changes);
    } catch (caught) {
      this.#options.policies.putBack(changes);
      throw caught;
    }
  }

  #withPolicies(pods: FlowSetChanges): FlowSetChanges {
    const interfaces = [...pods].map(
      ([key, flowSet]) =>
        [ownerOf(key), flowSet === undefined ? undefined : this.#ports.interfaceOf(ownerOf(key))] as const,
    );
    return new Map([...this.#options.policies.alongside(new Map(interfaces)), ...pods]);
  }

  /** With the kernel's module the node's kernel resolves neighbours, and queues packets meanwhile. */
  #knowNeighbours(program: OpenFlowProgram): void {
    const tunnel = this.#running?.context.tunnel;
    if (this.#options.kind !== "netdev" || tunnel === undefined) return;
    const ofport = (): number => this.#running?.context.tunnel?.ofport ?? tunnel.ofport;
    const ends = () => (this.#running === undefined ? [] : tunnelEnds(this.#running.context, this.#reached));
    const post: OpenFlowProgram["post"] = (requests) => program.post(requests);
    const known = () => knownNeighbours(this.#options.database);
    this.#neighbours = this.#resources.use(new TunnelNeighbours({ ofport, ends, post, known }));
  }

  async #setUpHost(): Promise<void> {
    if (this.#running === undefined) return;
    await this.#host.setUp(this.#running.context, this.#nodes, this.#ports.wanted);
  }

  async #openWays(ways: ServiceWays): Promise<ReadonlyMap<string, string>> {
    await this.#host.serve(ways);
    if (this.#host.isStale) await this.#setUpHost();
    return this.#host.unserved;
  }

  #traced(): TracedNode {
    const { management, policies, nodeName: name } = this.#options;
    const nodes = () => this.#nodes;
    return {
      ...{ management, policies, name, title: waysText(this.#options) },
      get nodes() {
        return nodes();
      },
      running: () => {
        if (this.#running?.program.status.connected === true)
          return { context: this.#running.context, round: this.#running.program.round };
        throw new CniError(CniCode.tryAgainLater, `Cannot trace packets: ${this.#isAway}`);
      },
      pods: () => this.#ports.connected(),
      // The kernel's module corrects its cache by itself, within half a second.
      settled: async () =>
        this.#flowCache === undefined ? await Bun.sleep(correctedMs) : await this.#flowCache.purgeNow(),
    };
  }

  get #nodes() {
    return this.#options.peers.current ?? new Map<string, never>();
  }
}

/** Until the kernel's module goes by changed flows. */
const correctedMs = 1_000;

const baseFlowSet = (context: PipelineContext): FlowSet => ({ category: Category.base, flows: baseFlows(context) });
