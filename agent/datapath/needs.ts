import type { Owner, Pod } from "../../shared/cni/types.ts";
import type { Ip } from "../../shared/net/ip.ts";
import type { Cluster } from "../cluster/cluster.ts";
import type { AgentConfig } from "../config/agent-config.ts";

/** What a data path is made for. */
export interface DataPathNeeds {
  /** Its networks have their subnets, also where these come from a registry. */
  readonly config: AgentConfig;
  /** Where the node is one of many: `nodes` of the configuration. */
  readonly cluster?: Cluster;
  /** Which pod an attachment is of, as its lease says it. */
  podOf(owner: Owner): Pod | undefined;
  /** All of its addresses by our own allocator; none where that does not know all of them. */
  leasedTo(owner: Owner): readonly Ip[];
  /** Hears of interfaces that stand and that nobody wants any more: the janitor goes on with them. */
  leftover(owner: Owner): void;
}
