import { join } from "node:path";
import { openVerified, StoreWatch } from "../ipam/mod.ts";
import { pause } from "../shared/async/abortable.ts";
import { LateSignal } from "../shared/async/late-signal.ts";
import { ownerKey } from "../shared/cni/owner-key.ts";
import { CniCode, CniError } from "../shared/errors.ts";
import { limits } from "../shared/limits.ts";
import { uptimeMs } from "../shared/os/uptime.ts";
import type { NodeProblem } from "../shared/proto/pipette-messages.ts";
import type { CallContext } from "../shared/server/handlers.ts";
import { InstanceLock } from "../shared/server/instance-lock.ts";
import { SocketServer } from "../shared/server/socket-server.ts";
import { version } from "../shared/version.ts";
import type { AgentDependencies } from "./agent-dependencies.ts";
import type { Joined } from "./cluster/join.ts";
import { openEvents, openPolicies, openProbes, openServices } from "./cluster-parts.ts";
import type { AgentConfig } from "./config/agent-config.ts";
import { nameOf } from "./config/nodes-config.ts";
import { sweepLeftBehind } from "./conflist/left-behind.ts";
import { RuntimeFile } from "./conflist/runtime-file.ts";
import type { DataPath } from "./datapath/datapath.ts";
import { HistoryOfAgent } from "./history-of-agent.ts";
import { Joining } from "./joining.ts";
import { measureAgent } from "./measure-agent.ts";
import { type AgentSamples, timed } from "./metrics/meter.ts";
import { tellOfNode, tellOfPods } from "./node-events.ts";
import type { NodePolicies } from "./policies/mod.ts";
import type { PeerProbes } from "./reachability/mod.ts";
import { Janitor, knowsEveryOwner, reconcile, StartingContext, takeNetworksOver } from "./reconcile/mod.ts";
import { balancingRpcs, type PodAddress } from "./server/balancing-service.ts";
import { cniRpcs } from "./server/cni-service.ts";
import { agentForwarding } from "./server/forwarding.ts";
import { agentIpamRpcs } from "./server/ipam-service.ts";
import { type NodeInfo, nodeRpcs, outages } from "./server/node-service.ts";
import { policyRpcs } from "./server/policy-service.ts";
import { registryRpcs } from "./server/registry-service.ts";
import { repairRpcs } from "./server/repair-service.ts";
import type { NodeServices } from "./services/mod.ts";
import { type DocumentQuestion, documentRpcs, type MadeDocument, TraceSessions, Views } from "./views/mod.ts";

/** How long before its deadline a call that waits for the start is answered, so that the reason arrives in time. */
const startAnswerMs = 1_000;
/**
 * Janitor rounds for which an interface has to be missing before its lease is released: some minutes, in which a DEL
 * may still come.
 */
const interfaceLostLooks = 30;

/** What counts as an operation of the data path, and its name. */
const operations = { attach: "attach", detach: "detach", check: "check", remake: "remake" } as const;

/** `starting`: listens, answers 11. `ready`: serves. `stopping`: finishes what is in flight. */
type State = { t: "starting" } | { t: "ready" } | { t: "stopping" };

/**
 * The running agent. It starts in a fixed order: locks, store, socket, membership, data path, reconciliation, and only
 * then the file that makes the runtime ready.
 */
export class Agent {
  readonly #context: StartingContext;
  readonly #janitor: Janitor;
  readonly #server: SocketServer;
  readonly #watch: StoreWatch;
  readonly #dependencies: AgentDependencies;
  readonly #resources: AsyncDisposableStack;
  readonly #stopping = new AbortController();
  readonly #failed = Promise.withResolvers<string>();
  readonly #joining: Joining;
  readonly #runtimeFile: RuntimeFile;
  readonly #startedAtMs = Date.now();
  readonly #views: Views;
  #probes: PeerProbes | undefined;
  readonly #traces: TraceSessions;
  #policies: NodePolicies | undefined;
  #services: NodeServices | undefined;
  #dataPath: DataPath | undefined;
  #state: State = { t: "starting" };
  /** Aborted when callers no longer wait for the start: it is done, or waits to join a cluster. */
  readonly #started = new AbortController();
  /** Settles when the agent is ready; never rejects once `start` has answered. */
  #began: Promise<void> = Promise.resolve();

  private constructor(
    context: StartingContext,
    server: SocketServer,
    watch: StoreWatch,
    dependencies: AgentDependencies,
    resources: AsyncDisposableStack,
  ) {
    this.#dependencies = dependencies;
    this.#resources = resources;
    this.#context = context;
    this.#server = server;
    this.#watch = watch;
    const { livenessProbes, registry } = dependencies;
    const { janitorIntervalMs: intervalMs, dataPath } = context.config;
    // On Windows an endpoint outlives its sandbox, and HNS can lose endpoints of running pods, so a lost one proves
    // nothing.
    const lost = dataPath === "hns" ? {} : { interfaceLostGraceMs: interfaceLostLooks * intervalMs };
    this.#runtimeFile = new RuntimeFile(context.logger);
    this.#joining = new Joining(context, registry, this.#stopping.signal);
    this.#janitor = new Janitor(context, {
      intervalMs,
      staleGraceMs: limits.staleGraceMs,
      ...lost,
      livenessProbes,
    });
    this.#views = this.#openViews();
    this.#traces = new TraceSessions({
      ...{ node: nameOf(context.config.nodes ?? {}), dataPath, logger: context.logger },
      hasSwitch: context.config.ovs !== undefined,
      tracing: () => this.#dataPath?.tracing,
    });
  }

  /**
   * Starts and answers once calls are served and the runtime's file is written; if the node cannot join yet it answers
   * earlier; then calls are answered with the reason until the start completes.
   * @throws {CniError} naming the obstacle; nothing stays locked or listening then
   */
  static async start(config: AgentConfig, dependencies: AgentDependencies): Promise<Agent> {
    const { logger, system, registry } = dependencies;
    await using resources = new AsyncDisposableStack();
    const server = resources.use(SocketServer.claim(config.socket, "the agent", system));
    const watch = resources.use(new StoreWatch());
    const report = (line: string): void => logger.warn(line);
    const history = new HistoryOfAgent(config, logger);
    const hooks = { onDamage: watch.onDamage, ended: history.ended };
    const allocator = resources.use(await openVerified(config.dataDir, report, hooks));
    await watch.start(allocator, config.janitorIntervalMs);
    // Two agents with one store would take each other's interfaces for leftovers.
    const lockFile = join(config.dataDir, "agent.lock");
    resources.use(InstanceLock.take(lockFile, "the agent", `data directory "${config.dataDir}"`, system));
    const swept = sweepLeftBehind(config);
    if (swept.length > 0) logger.info("removed what killed processes had left half written", { files: swept });
    if (registry !== undefined) resources.use(registry);
    resources.use(await history.begin(allocator));
    dependencies.prepareNode?.();
    const context = new StartingContext(config, allocator, dependencies.livenessProbes, logger, dependencies.meter);
    const agent = new Agent(context, server, watch, dependencies, resources.move());
    try {
      await agent.#listen();
      await agent.#begin();
      return agent;
    } catch (caught) {
      await agent.#end(0);
      throw caught;
    }
  }

  /** As `Running` has it. */
  get settled(): Promise<void> {
    return this.#server.settled;
  }

  /**
   * Resolves with a sentence when only a restart helps: the socket, the store, the data path or the membership is lost.
   */
  get lost(): Promise<string> {
    const { dataPathLost } = this.#dependencies;
    const ways = [this.#server.lost, this.#watch.lost, this.#joining.lost, this.#failed.promise];
    return Promise.race(dataPathLost === undefined ? ways : [...ways, dataPathLost]);
  }

  /** Why the node as a whole has no network for pods now: what STATUS fails for. */
  outages(): Promise<readonly NodeProblem[]> {
    const asked = { notReady: () => this.#notReady(), refused: () => this.#joining.refused };
    return outages(this.#context, asked, "");
  }

  /** @returns `undefined` where it has not changed @throws {RpcError | CniError} as `Views.get` */
  document(question: DocumentQuestion, gone: AbortSignal): Promise<MadeDocument | undefined> {
    return this.#views.get(question, gone);
  }

  /** @throws {RpcError | CniError} as `TraceSessions.answer` */
  trace(json: Uint8Array, by: string, gone: AbortSignal): Promise<Uint8Array> {
    return this.#traces.answer(json, by, gone);
  }

  /** Tells a scrape what is there now. */
  async measure(samples: AgentSamples): Promise<void> {
    const peers = this.#joining.peersBy(this.#probes?.counts());
    const isReady = this.#state.t === "ready";
    const [context, dataPath, policies, services] = [this.#context, this.#dataPath, this.#policies, this.#services];
    const outages = (): Promise<readonly NodeProblem[]> => this.outages();
    await measureAgent({ context, isReady, outages, peers, dataPath, policies, services }, samples);
  }

  /** Finishes the calls in flight within the configured bound, keeps the runtime's file, releases everything else. */
  async stop(): Promise<void> {
    if (this.#state.t === "stopping") return;
    this.#state = { t: "stopping" };
    const { logger, config } = this.#context;
    logger.info("stopping", { callsInFlight: this.#server.callsInFlight });
    const ended = await this.#end(config.drainTimeoutMs);
    if (!ended) logger.warn("calls were cut off", { after: config.drainTimeoutMs });
    logger.info("stopped");
  }

  async #end(withinMs: number): Promise<boolean> {
    this.#started.abort();
    this.#stopping.abort(new CniError(CniCode.tryAgainLater, "Cannot join: the agent stops"));
    const ended = await this.#server.close(withinMs);
    await this.#began.catch(() => undefined);
    await this.#janitor.stop();
    await this.#traces[Symbol.asyncDispose]();
    if (ended) await this.#context.mutex.idle();
    await this.#resources.disposeAsync();
    return ended;
  }

  async #listen(): Promise<void> {
    const { config, logger } = this.#context;
    const gate = {
      requireReady: () => this.#requireReady(),
      untilReady: (call: CallContext) => this.#untilReady(call),
      requireAddresses: (network: string) => this.#joining.requireAddresses(network),
      lackedAddress: () => this.#janitor.makeRoom(),
    };
    const info = this.#nodeInfo();
    const services = [
      cniRpcs(this.#context, gate),
      nodeRpcs(this.#context, this.#janitor, gate, info),
      policyRpcs(() => this.#policies),
      balancingRpcs(
        () => this.#services,
        () => this.#podAddresses(),
      ),
      repairRpcs(this.#context, gate, () => this.#runtimeFile.write(this.#context.config)),
      registryRpcs(config.nodes?.name ?? "", this.#dependencies.registry),
      documentRpcs(this.#views, this.#dependencies.logLevels ?? { level: () => config.logLevel }, this.#traces),
      agentIpamRpcs(this.#context, this.#janitor, gate),
    ];
    const forwarding = agentForwarding(this.#context, services.flat(), () => this.#state.t === "ready");
    await this.#server.listen(services, config.janitorIntervalMs, logger, forwarding);
  }

  #nodeInfo(): NodeInfo {
    return {
      version,
      dataPath: this.#dependencies.dataPathName,
      startedAtMs: this.#startedAtMs,
      // Nothing depends on those that ask for documents, and may wait until these change.
      callsInFlight: () => this.#server.callsInFlight - this.#views.calls,
      notReady: () => this.#notReady(),
      refused: () => this.#joining.refused,
      cluster: () => this.#joining.cluster,
      policies: () => this.#policies?.summary ?? "",
      policyDifferences: async () => (await this.#policies?.differences()) ?? [],
      services: () => this.#services,
      refusals: () => this.#joining.refusals,
      troubles: () => this.#joining.troubles,
      probes: () => this.#probes,
      configuration: async () => {
        const refused = this.#dependencies.refusedConfig?.();
        return [...(refused === undefined ? [] : [refused]), ...(await this.#runtimeFile.troubles())];
      },
      state: () => (this.#state.t === "starting" && this.#joining.waiting !== undefined ? "joining" : this.#state.t),
    };
  }

  #openViews(): Views {
    const { registry, logLevels, examine } = this.#dependencies;
    const { config } = this.#context;
    const sources = {
      ...{ context: this.#context, janitor: this.#janitor, info: this.#nodeInfo(), registry },
      node: nameOf(config.nodes ?? {}),
      probes: () => this.#probes,
      policies: () => this.#policies,
      services: () => this.#services,
      logLevel: () => logLevels?.level() ?? config.logLevel,
      ...(examine === undefined ? {} : { examine: () => examine(this.#context.config) }),
    };
    return new Views(sources, this.#stopping.signal);
  }

  /** Answers when the agent is ready, or when it waits to join. @throws as `start` */
  async #begin(): Promise<void> {
    const joining = this.#joining.join();
    this.#began = joining.then((joined) => this.#serve(joined));
    // Prevents an unhandled rejection while nothing awaits it yet.
    this.#began.catch(() => undefined);
    const joined = joining.then(() => true);
    if (await Promise.race([joined, this.#joining.delayed])) return this.#began;
    this.#started.abort();
    this.#context.logger.info("serving without a data path until the node has joined");
    this.#began = this.#began.catch((caught: unknown) => {
      if (!this.#stopping.signal.aborted) this.#failed.resolve(CniError.from(caught, "run the agent").message);
    });
  }

  /** @param joined if the node is a member of a cluster */
  async #serve(joined: Joined | undefined): Promise<void> {
    const { logger, pendingCleanup, allocator } = this.#context;
    const config = joined?.config ?? this.#context.config;
    if (joined !== undefined) this.#resources.use(joined.membership);
    const known = new Set(config.networks.map(({ name }) => name).filter((name) => knowsEveryOwner(allocator, name)));
    const made = this.#dependencies.createDataPath({
      config,
      ...(joined === undefined ? {} : { cluster: joined.membership }),
      podOf: (owner) => allocator.find(owner)[0]?.pod,
      // For networks whose leases may be partly lost the store is not asked, because what exists on the node is more
      // reliable.
      leasedTo: (owner) => (known.has(owner.network) ? allocator.uncooled(owner).map(({ address }) => address.ip) : []),
      needsCleanup: (owner) => void pendingCleanup.set(ownerKey(owner), owner),
      keep: (resource) => void this.#resources.use(resource),
    });
    this.#resources.use(made);
    this.#dataPath = timed(made, operations, this.#context.meter);
    const events = await openEvents(config, this.#context);
    if (events !== undefined) this.#resources.use(events);
    tellOfNode(made, config, events);
    tellOfPods(this.#context.calls, events);
    const enforced = await openPolicies(this.#dataPath, config, events, this.#context);
    if (enforced !== undefined) this.#policies = this.#resources.use(enforced.policies);
    const dataPath = enforced?.dataPath ?? this.#dataPath;
    this.#services = await openServices(made, config, events, this.#context);
    if (this.#services !== undefined) this.#resources.use(this.#services);
    this.#context.complete(config, dataPath);
    // Nothing opens before what is known of policies is in force.
    await this.#policies?.prepare(allocator.list().map(({ owner, pod }) => ({ owner, pod: pod ?? "none" })));
    await dataPath.start();
    await this.#policies?.begin([...(await dataPath.list()), ...allocator.list()].map(({ owner }) => owner));
    await this.#services?.begin();
    this.#probes = await openProbes(joined?.membership, made, config, this.#context);
    if (this.#probes !== undefined) this.#resources.use(this.#probes);
    await takeNetworksOver(this.#context);
    await reconcile(this.#context);
    if (this.#state.t === "stopping") return;
    this.#state = { t: "ready" };
    this.#started.abort();
    this.#server.serving = true;
    this.#janitor.start();
    const watch = dataPath.watch?.(() => this.#janitor.repair());
    if (watch !== undefined) this.#resources.use(watch);
    await this.#runtimeFile.write(config);
    logger.info("ready", { socket: config.socket, networks: config.networks.map((network) => network.name) });
  }

  #podAddresses(): readonly PodAddress[] {
    return this.#context.allocator
      .list()
      .flatMap(({ address, pod }) =>
        pod === undefined ? [] : [{ ip: address.ip, pod: `${pod.namespace}/${pod.name}` }],
      );
  }

  #notReady(): string | undefined {
    if (this.#state.t === "ready") return undefined;
    const { waiting } = this.#joining;
    if (this.#state.t === "starting" && waiting !== undefined)
      return `Cannot serve the node: the agent waits to join. ${waiting}`;
    const is = this.#state.t === "starting" ? "the agent is still starting" : "the agent stops";
    return `Cannot serve the node: ${is}`;
  }

  #untilReady(call: CallContext): Promise<void> | undefined {
    return this.#state.t === "starting" ? this.#untilStarted(call) : undefined;
  }

  async #untilStarted({ signal, untilUptimeMs }: CallContext): Promise<void> {
    const leftMs = (untilUptimeMs ?? 0) - (uptimeMs() ?? 0) - startAnswerMs;
    if (leftMs > 0) await pause(leftMs, AbortSignal.any([LateSignal.real(signal), this.#started.signal]));
    // A call that comes now has nothing that a stop would have to finish.
    const is = this.#notReady();
    if (is !== undefined) throw new CniError(CniCode.tryAgainLater, is);
  }

  #requireReady(): void {
    // A call that was in flight when the stop began is still finished.
    if (this.#state.t === "starting") throw new CniError(CniCode.tryAgainLater, this.#notReady() ?? "");
  }
}
