/** What nodes report of policies: how far they enforce them, and what they count. One of several controllers keeps it. */
export { ClusterReports, type HandedReports, type Replicas, readHanded } from "./cluster-reports.ts";
export { noTraffic } from "./policy-reports.ts";
export { StatusLease } from "./status-lease.ts";
