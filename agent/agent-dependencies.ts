import type { Logger } from "../shared/log.ts";
import type { System } from "../shared/server/system.ts";
import type { NodeRegistry } from "./cluster/node-registry.ts";
import type { AgentConfig } from "./config/agent-config.ts";
import type { DataPath, DataPathNeeds } from "./datapath/datapath.ts";
import type { AgentMeter } from "./metrics/meter.ts";
import type { LivenessProbe } from "./reconcile/mod.ts";
import type { Examined, LogLevels } from "./views/mod.ts";

/** What the agent is given: the platform's, the data path's and the registry's parts. */
export interface AgentDependencies {
  readonly logger: Logger;
  /** Absent: nobody asks for numbers. */
  readonly meter?: AgentMeter | undefined;
  readonly system: System;
  /** Called once the locks are taken: prepares what joining needs of the node's own network. @throws {CniError} */
  prepareNode?(): void;
  /** Called once the locks are taken and the node has joined. */
  createDataPath(needs: DataPathNeeds): DataPath;
  /** The source of the node's subnet and its peers; required if the configuration has `nodes`. Ends with the agent. */
  readonly registry?: NodeRegistry;
  /** The data path's name for `Status`. */
  readonly dataPathName: string;
  /** Other sources that know of running pods. */
  readonly livenessProbes: readonly LivenessProbe[];
  /** A sentence that says why a changed configuration file is not in force. */
  readonly refusedConfig?: () => string | undefined;
  /** Absent: what is logged stays as the configuration says. */
  readonly logLevels?: LogLevels;
  /** Looks for what disagrees on the node. */
  examine?(config: AgentConfig): Promise<Examined>;
  /** Resolves with a sentence when the data path needs a restart of the process. */
  readonly dataPathLost?: Promise<string> | undefined;
}
