import { join } from "node:path";
import { openSound, StoreWatch } from "../ipam/mod.ts";
import type { Owner } from "../shared/cni/types.ts";
import { CniCode, CniError } from "../shared/errors.ts";
import { limits } from "../shared/limits.ts";
import type { Logger } from "../shared/log.ts";
import { InstanceLock } from "../shared/server/instance-lock.ts";
import { SocketServer } from "../shared/server/socket-server.ts";
import type { System } from "../shared/server/system.ts";
import { version } from "../shared/version.ts";
import type { AgentParts } from "./agent-parts.ts";
import { writeAtomically } from "./atomic-file.ts";
import type { AgentConfig } from "./config/agent-config.ts";
import { conflistPath, conflistText } from "./conflist.ts";
import type { DataPath } from "./datapath/datapath.ts";
import { Lanes } from "./lanes.ts";
import type { Cluster } from "./nodes/cluster.ts";
import { cniRpcs } from "./services/cni-service.ts";
import { agentIpamRpcs } from "./services/ipam-service.ts";
import { nodeRpcs } from "./services/node-service.ts";
import { Janitor } from "./state/janitor.ts";
import { ownerKey } from "./state/owner-key.ts";
import { reconcile } from "./state/reconcile.ts";
import type { Source } from "./state/sources.ts";
import { takeNetworksOver } from "./state/take-over.ts";

/** A container has one call at a time by the specification; a few more come from repeats after timeouts. */
const longestQueue = 64;

/** What a data path is made for. */
export interface DataPathNeeds {
  /** Its networks have their subnets, also where these come from a registry. */
  readonly config: AgentConfig;
  /** Where the node is one of many: `nodes` of the configuration. */
  readonly cluster?: Cluster;
  /** Hears of interfaces that stand and that nobody wants any more: the janitor goes on with them. */
  leftover(owner: Owner): void;
}

export interface AgentDependencies {
  readonly logger: Logger;
  readonly system: System;
  /** Called once the locks are ours, and the node has joined. */
  createDataPath(needs: DataPathNeeds): DataPath;
  /** Its name for `Status`. */
  readonly dataPathName: string;
  /** Who else knows of pods that stand. */
  readonly sources: readonly Source[];
  /** Resolves, with a sentence, when the data path needs a new process. */
  readonly dataPathLost?: Promise<string> | undefined;
}

/** `starting`: listens, answers 11. `ready`: serves. `stopping`: finishes what is in flight. */
type State = { t: "starting" } | { t: "ready" } | { t: "stopping" };

/**
 * The running agent. The order of its start is its promise: locks, store, socket, data path, reconciled,
 * and only then the file that turns the runtime ready.
 */
export class Agent {
  readonly #parts: AgentParts;
  readonly #janitor: Janitor;
  readonly #server: SocketServer;
  readonly #watch: StoreWatch;
  /** Empty until the start has succeeded. */
  #resources = new AsyncDisposableStack();
  #state: State = { t: "starting" };
  readonly #dataPathLost: Promise<string> | undefined;

  private constructor(
    parts: AgentParts,
    server: SocketServer,
    watch: StoreWatch,
    { sources, dataPathLost }: AgentDependencies,
  ) {
    this.#dataPathLost = dataPathLost;
    this.#parts = parts;
    this.#server = server;
    this.#watch = watch;
    const { janitorIntervalMs: intervalMs } = parts.config;
    this.#janitor = new Janitor(parts, { intervalMs, suspectGraceMs: limits.suspectGraceMs, sources });
  }

  /**
   * Starts and answers once calls are served and the runtime's file is written.
   * @throws {CniError} naming what is in the way; nothing stays locked or listening then
   */
  static async start(config: AgentConfig, dependencies: AgentDependencies): Promise<Agent> {
    const { logger, system } = dependencies;
    await using resources = new AsyncDisposableStack();
    const server = resources.use(SocketServer.claim(config.socket, "the agent", system));
    const watch = resources.use(new StoreWatch());
    const report = (line: string): void => logger.warn(line);
    const allocator = resources.use(await openSound(config.dataDir, report, { onDamage: watch.onDamage }));
    await watch.start(allocator.path, config.janitorIntervalMs);
    // Two agents with one store would each take the other's interfaces for leftovers.
    const lockFile = join(config.dataDir, "agent.lock");
    resources.use(InstanceLock.take(lockFile, "the agent", `data directory "${config.dataDir}"`, system));
    const leftover = new Map<string, Owner>();
    const needs = { config, leftover: (owner: Owner) => void leftover.set(ownerKey(owner), owner) };
    const parts: AgentParts = {
      config,
      allocator,
      dataPath: resources.use(dependencies.createDataPath(needs)),
      lanes: new Lanes(longestQueue),
      attached: new Map(),
      leftover,
      logger,
    };
    const agent = new Agent(parts, server, watch, dependencies);
    try {
      await agent.#begin(dependencies.dataPathName);
    } catch (caught) {
      await server.close(0);
      await agent.#janitor.stop();
      throw caught;
    }
    agent.#resources = resources.move();
    return agent;
  }

  /** Resolves, with a sentence, when only a new start helps: as `SocketServer.lost`, `StoreWatch.lost`, or the data path. */
  get lost(): Promise<string> {
    const ways = [this.#server.lost, this.#watch.lost];
    return Promise.race(this.#dataPathLost === undefined ? ways : [...ways, this.#dataPathLost]);
  }

  /** Finishes the calls in flight within the configured bound, keeps the runtime's file, releases everything else. */
  async stop(): Promise<void> {
    if (this.#state.t === "stopping") return;
    this.#state = { t: "stopping" };
    const { logger, config } = this.#parts;
    logger.info("stopping", { callsInFlight: this.#server.callsInFlight });
    const ended = await this.#server.close(config.drainTimeoutMs);
    if (!ended) logger.warn("calls were cut off", { after: config.drainTimeoutMs });
    await this.#janitor.stop();
    if (ended) await this.#parts.lanes.idle();
    await this.#resources.disposeAsync();
    logger.info("stopped");
  }

  async #begin(dataPathName: string): Promise<void> {
    const { config, dataPath, logger } = this.#parts;
    const gate = { requireReady: () => this.#requireReady() };
    const info = {
      version,
      dataPath: dataPathName,
      startedAtMs: Date.now(),
      callsInFlight: () => this.#server.callsInFlight,
      notReady: () => this.#notReady(),
    };
    const services = [
      cniRpcs(this.#parts, gate),
      nodeRpcs(this.#parts, this.#janitor, gate, info),
      agentIpamRpcs(this.#parts, this.#janitor, gate),
    ];
    await this.#server.listen(services, config.janitorIntervalMs, logger);
    await dataPath.start();
    await takeNetworksOver(this.#parts);
    await reconcile(this.#parts);
    this.#state = { t: "ready" };
    this.#server.serving = true;
    this.#janitor.start();
    this.#writeConflist();
    logger.info("ready", { socket: config.socket, networks: config.networks.map((network) => network.name) });
  }

  #writeConflist(): void {
    const { config, logger } = this.#parts;
    const path = conflistPath(config);
    const [network] = config.networks;
    if (path === undefined || network === undefined) return;
    const written = writeAtomically(path, conflistText(config, network));
    logger.info(written ? "wrote the network configuration" : "the network configuration is up to date", { path });
  }

  #notReady(): string | undefined {
    if (this.#state.t === "ready") return undefined;
    const is = this.#state.t === "starting" ? "the agent is still starting" : "the agent stops";
    return `Cannot serve the node: ${is}, wanted it ready`;
  }

  #requireReady(): void {
    // A call that was in flight when the stop began is finished all the same.
    if (this.#state.t === "starting") throw new CniError(CniCode.tryAgainLater, this.#notReady() ?? "");
  }
}
