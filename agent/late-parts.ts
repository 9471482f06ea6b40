import type { Allocator } from "../ipam/mod.ts";
import { KeyedMutex } from "../shared/async/keyed-mutex.ts";
import type { Owner } from "../shared/cni/types.ts";
import { CniCode, CniError } from "../shared/errors.ts";
import type { Logger } from "../shared/log.ts";
import type { AgentConfig } from "./config/agent-config.ts";
import type { DataPath } from "./datapath/datapath.ts";
import type { AgentParts } from "./reconcile/agent-parts.ts";
import type { Source } from "./reconcile/sources.ts";

/** A container has one call at a time by the specification; a few more come from repeats after timeouts. */
const longestQueue = 64;

/** The parts of an agent that serves before it has a data path: a node that joins may have to wait for its subnet. */
export class LateParts implements AgentParts {
  readonly allocator: Allocator;
  readonly lanes = new KeyedMutex(longestQueue);
  readonly attached = new Map<string, number>();
  readonly leftover = new Map<string, Owner>();
  readonly sources: readonly Source[];
  readonly logger: Logger;
  #config: AgentConfig;
  #dataPath: DataPath | undefined;

  constructor(config: AgentConfig, allocator: Allocator, sources: readonly Source[], logger: Logger) {
    this.#config = config;
    this.allocator = allocator;
    this.sources = sources;
    this.logger = logger;
  }

  /** Its first network gets its subnets when the node has joined. */
  get config(): AgentConfig {
    return this.#config;
  }

  /** Nothing stands on the node that an agent without one could tell of. */
  get dataPath(): DataPath {
    if (this.#dataPath !== undefined) return this.#dataPath;
    throw new CniError(CniCode.tryAgainLater, "Cannot use the data path: the agent is still starting, wanted it ready");
  }

  complete(config: AgentConfig, dataPath: DataPath): void {
    this.#config = config;
    this.#dataPath = dataPath;
  }
}
