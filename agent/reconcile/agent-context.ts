import type { Allocator } from "../../ipam/mod.ts";
import { KeyedMutex } from "../../shared/async/keyed-mutex.ts";
import type { Owner } from "../../shared/cni/types.ts";
import { CniCode, CniError } from "../../shared/errors.ts";
import type { Logger } from "../../shared/log.ts";
import type { AgentConfig } from "../config/agent-config.ts";
import type { DataPath } from "../datapath/datapath.ts";
import type { LivenessProbe } from "./liveness-probes.ts";

/** What the verbs, the janitor and the services of one agent work with. */
export interface AgentContext {
  readonly config: AgentConfig;
  readonly allocator: Allocator;
  readonly dataPath: DataPath;
  /** By `ownerKey`: whatever changes an attachment holds it. */
  readonly mutex: KeyedMutex;
  /**
   * When the last ADD of each attachment began that stood at the start or was made since, by `ownerKey` (`uptimeMs`; 0
   * where nobody said). It only ever decides what a *failed ADD* may take away, and which DEL came before that ADD.
   */
  readonly lastAddAt: Map<string, number>;
  /** Interfaces that this agent could not take away, by `ownerKey`: the janitor goes on with them. A restart finds them again. */
  readonly pendingCleanup: Map<string, Owner>;
  /** Who is asked, beside the interfaces, before a lease is taken for nobody's. */
  readonly livenessProbes: readonly LivenessProbe[];
  readonly logger: Logger;
}

/** A container has one call at a time by the specification; a few more come from repeats after timeouts. */
const maxQueuedCalls = 64;

/**
 * That of an agent that serves before it has a data path: a node that joins a cluster may have to wait for its subnet.
 */
export class StartingContext implements AgentContext {
  readonly allocator: Allocator;
  readonly mutex = new KeyedMutex(maxQueuedCalls);
  readonly lastAddAt = new Map<string, number>();
  readonly pendingCleanup = new Map<string, Owner>();
  readonly livenessProbes: readonly LivenessProbe[];
  readonly logger: Logger;
  #config: AgentConfig;
  #dataPath: DataPath | undefined;

  constructor(config: AgentConfig, allocator: Allocator, livenessProbes: readonly LivenessProbe[], logger: Logger) {
    this.#config = config;
    this.allocator = allocator;
    this.livenessProbes = livenessProbes;
    this.logger = logger;
  }

  /** Its first network gets its subnets when the node has joined. */
  get config(): AgentConfig {
    return this.#config;
  }

  /** @throws {CniError} code 11 before there is one: the agent knows of no interfaces then */
  get dataPath(): DataPath {
    if (this.#dataPath !== undefined) return this.#dataPath;
    throw new CniError(CniCode.tryAgainLater, "Cannot use the data path: the agent is still starting");
  }

  complete(config: AgentConfig, dataPath: DataPath): void {
    this.#config = config;
    this.#dataPath = dataPath;
  }
}
