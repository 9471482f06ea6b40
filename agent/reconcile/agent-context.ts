import type { Allocator } from "../../ipam/mod.ts";
import { KeyedMutex } from "../../shared/async/keyed-mutex.ts";
import type { Owner } from "../../shared/cni/types.ts";
import { CniCode, CniError } from "../../shared/errors.ts";
import type { Logger } from "../../shared/log.ts";
import type { AgentConfig } from "../config/agent-config.ts";
import type { DataPath } from "../datapath/datapath.ts";
import { CallRing } from "../metrics/call-record.ts";
import type { AgentMeter } from "../metrics/meter.ts";
import type { LivenessProbe } from "./liveness-probes.ts";

/** The parts of one agent that verbs, janitor and services use. */
export interface AgentContext {
  readonly config: AgentConfig;
  readonly allocator: Allocator;
  readonly dataPath: DataPath;
  /** By `ownerKey`; held by everything that changes an attachment. */
  readonly mutex: KeyedMutex;
  /**
   * When the last ADD of each existing attachment began, by `ownerKey` (`uptimeMs`; 0 if unknown). It only decides what
   * a *failed ADD* may remove, and which DEL came before that ADD.
   */
  readonly lastAddAt: Map<string, number>;
  /**
   * Interfaces that this agent could not remove, by `ownerKey`, for the janitor. After a restart they are found again.
   */
  readonly pendingCleanup: Map<string, Owner>;
  /** Asked, beside the interfaces, before a lease counts as abandoned. */
  readonly livenessProbes: readonly LivenessProbe[];
  readonly logger: Logger;
  /** The last calls. */
  readonly calls: CallRing;
  /** Absent: nobody asks for numbers. */
  readonly meter?: AgentMeter | undefined;
}

/** By the specification a container has one call at a time; repeats after timeouts add a few. */
const maxQueuedCalls = 64;

/**
 * The context of an agent that serves before it has a data path, since a joining node may have to wait for its subnet.
 */
export class StartingContext implements AgentContext {
  readonly allocator: Allocator;
  readonly mutex = new KeyedMutex(maxQueuedCalls);
  readonly lastAddAt = new Map<string, number>();
  readonly calls = new CallRing();
  readonly pendingCleanup = new Map<string, Owner>();
  readonly livenessProbes: readonly LivenessProbe[];
  readonly logger: Logger;
  readonly meter: AgentMeter | undefined;
  #config: AgentConfig;
  #dataPath: DataPath | undefined;

  constructor(
    config: AgentConfig,
    allocator: Allocator,
    livenessProbes: readonly LivenessProbe[],
    logger: Logger,
    meter?: AgentMeter,
  ) {
    this.#config = config;
    this.allocator = allocator;
    this.livenessProbes = livenessProbes;
    this.logger = logger;
    this.meter = meter;
  }

  /** The first network's subnets are filled in when the node has joined. */
  get config(): AgentConfig {
    return this.#config;
  }

  /** @throws {CniError} code 11 before the data path exists */
  get dataPath(): DataPath {
    if (this.#dataPath !== undefined) return this.#dataPath;
    throw new CniError(CniCode.tryAgainLater, "Cannot use the data path: the agent is still starting");
  }

  complete(config: AgentConfig, dataPath: DataPath): void {
    this.#config = config;
    this.#dataPath = dataPath;
  }
}
