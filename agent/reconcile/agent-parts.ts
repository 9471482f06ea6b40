import type { Allocator } from "../../ipam/mod.ts";
import type { KeyedMutex } from "../../shared/async/keyed-mutex.ts";
import type { Owner } from "../../shared/cni/types.ts";
import type { Logger } from "../../shared/log.ts";
import type { AgentConfig } from "../config/agent-config.ts";
import type { DataPath } from "../datapath/datapath.ts";
import type { Source } from "./sources.ts";

/** What the verbs, the janitor and the services of one agent work with. */
export interface AgentParts {
  readonly config: AgentConfig;
  readonly allocator: Allocator;
  readonly dataPath: DataPath;
  readonly lanes: KeyedMutex;
  /**
   * `ownerKey`s of the attachments that stood at the start or were made since. It only ever decides
   * what a *failed ADD* may take away, and by the value, when its last ADD began (`uptimeMs`, 0 where nobody said), which DEL came before that one.
   */
  readonly attached: Map<string, number>;
  /** Interfaces that this agent could not take away, by `ownerKey`: the janitor goes on with them. A restart finds them again. */
  readonly leftover: Map<string, Owner>;
  /** Who is asked, beside the interfaces, before a lease is taken for nobody's. */
  readonly sources: readonly Source[];
  readonly logger: Logger;
}
