import type { Cluster } from "../../shared/policy/mod.ts";
import type { PolicyComputation } from "../policy/mod.ts";
import type { ClusterReports } from "../reports/mod.ts";
import type { Watches } from "../watches/mod.ts";

/** What is served: one computation, who follows it, and what nodes have said of it. */
export interface ServedState {
  readonly computation: PolicyComputation;
  readonly watches: Watches;
  readonly reports: ClusterReports;
  /** What it was computed from. */
  readonly cluster: Cluster;
}
