import { type Definitions, processMetrics } from "../../shared/metrics/mod.ts";

/** Of a call: an answer from memory takes a millisecond, and no runtime waits longer than half a minute. */
const callSeconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
/** From one rack to another continent; a probe waits for a second. */
const rttSeconds = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1];
/** As kube-proxy has them. */
const proxySeconds = Array.from({ length: 15 }, (_, i) => 0.001 * 2 ** i);
const steps = (from: number, step: number, count: number): number[] =>
  Array.from({ length: count }, (_, i) => from + step * i);
const programmingSeconds = [...steps(0.25, 0.25, 2), ...steps(1, 1, 59), ...steps(60, 5, 12), ...steps(120, 30, 7)];

/** What an agent measures, in the order in which it is written. */
export const agentMetrics = {
  ...processMetrics,
  pipette_cni_requests_total: {
    kind: "counter",
    help: "CNI calls answered, by verb and by the code of the answer; 0: success.",
    labels: ["verb", "code"],
  },
  pipette_cni_request_duration_seconds: {
    kind: "histogram",
    help: "From the plugin's start to the agent's answer, in seconds; of other clients from the call's arrival.",
    labels: ["verb"],
    buckets: callSeconds,
  },
  pipette_cni_phase_duration_seconds: {
    kind: "histogram",
    help: "Parts of a call: until its turn, addresses, wiring, waiting for network policies; in seconds.",
    labels: ["verb", "phase"],
    buckets: callSeconds,
  },
  pipette_pod_network_ready_seconds: {
    kind: "histogram",
    help: "From the plugin's start of a successful ADD to its answer, with which the pod's network is usable.",
    labels: [],
    buckets: callSeconds,
  },
  pipette_ipam_addresses: {
    kind: "gauge",
    help: "Addresses of a network's ranges, each in one state.",
    labels: ["network", "state"],
  },
  pipette_ipam_leases_reclaimed_total: {
    kind: "counter",
    help: "Attachments whose leases were given back without a DEL, by the reason.",
    labels: ["reason"],
  },
  pipette_ipam_allocation_failures_total: {
    kind: "counter",
    help: "Pods that got no address, by the reason.",
    labels: ["reason"],
  },
  pipette_datapath_flows: {
    kind: "gauge",
    help: "Flows that the switch is to have, by table.",
    labels: ["table"],
  },
  pipette_datapath_operations_total: {
    kind: "counter",
    help: "Operations of the data path, by result.",
    labels: ["op", "result"],
  },
  pipette_datapath_operation_duration_seconds: {
    kind: "histogram",
    help: "How long operations of the data path took, in seconds.",
    labels: ["op"],
    buckets: callSeconds,
  },
  pipette_hns_failures_total: {
    kind: "counter",
    help: "Calls of HNS that failed, by the function of Windows and the name of what it answered.",
    labels: ["call", "code"],
  },
  pipette_datapath_reconnects_total: {
    kind: "counter",
    help: "Connections made anew after the first.",
    labels: ["target"],
  },
  pipette_peers: {
    kind: "gauge",
    help: "Other nodes of the registry, each in one state: as probed, and records that are refused.",
    labels: ["state"],
  },
  pipette_peer_probe_rtt_seconds: {
    kind: "histogram",
    help: "From a question to another node by the way of pods' packets to its answer, in seconds.",
    labels: [],
    buckets: rttSeconds,
  },
  pipette_peer_probe_failures_total: {
    kind: "counter",
    help: "Questions to other nodes by the way of pods' packets that were not answered.",
    labels: [],
  },
  pipette_policy_rules: {
    kind: "gauge",
    help: "Rules of network policies in force, by direction.",
    labels: ["direction"],
  },
  pipette_policy_realization_seconds: {
    kind: "histogram",
    help: "From the controller's word of a change to its being in force, in seconds.",
    labels: [],
    buckets: callSeconds,
  },
  pipette_policy_drops_total: {
    kind: "counter",
    help: "Packets that the isolation of pods has refused, by direction.",
    labels: ["direction"],
  },
  pipette_services: { kind: "gauge", help: "Ports of services, by whether they are in force.", labels: ["state"] },
  pipette_service_endpoints: { kind: "gauge", help: "Endpoints of the ports of services.", labels: [] },
  kubeproxy_sync_proxy_rules_duration_seconds: {
    kind: "histogram",
    help: "How long putting the services in force took, in seconds.",
    labels: [],
    buckets: proxySeconds,
  },
  kubeproxy_network_programming_duration_seconds: {
    kind: "histogram",
    help: "From a change of a pod or a service, by the clock of Kubernetes, until its endpoints were in force, in seconds.",
    labels: [],
    buckets: programmingSeconds,
  },
  kubeproxy_sync_proxy_rules_no_local_endpoints_total: {
    kind: "gauge",
    help: "Ports of services whose traffic policy is Local and that have endpoints on other nodes alone.",
    labels: ["traffic_policy"],
  },
  kubeproxy_sync_proxy_rules_last_timestamp_seconds: {
    kind: "gauge",
    help: "When services were put in force last, in seconds since the Unix epoch.",
    labels: [],
  },
  kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds: {
    kind: "gauge",
    help: "When a change of the services was heard last, in seconds since the Unix epoch.",
    labels: [],
  },
  kubeproxy_sync_proxy_rules_service_changes_total: {
    kind: "counter",
    help: "Changes of Services that were heard.",
    labels: [],
  },
  kubeproxy_sync_proxy_rules_service_changes_pending: {
    kind: "gauge",
    help: "Changes of Services that are not in force yet.",
    labels: [],
  },
  kubeproxy_sync_proxy_rules_endpoint_changes_total: {
    kind: "counter",
    help: "Changes of EndpointSlices that were heard.",
    labels: [],
  },
  kubeproxy_sync_proxy_rules_endpoint_changes_pending: {
    kind: "gauge",
    help: "Changes of EndpointSlices that are not in force yet.",
    labels: [],
  },
  pipette_doctor_findings: {
    kind: "gauge",
    help: "What disagrees on the node, by severity, as the doctor has found it at its last look.",
    labels: ["severity"],
  },
  pipette_doctor_look_timestamp_seconds: {
    kind: "gauge",
    help: "When the doctor has looked last, in seconds since the Unix epoch.",
    labels: [],
  },
  pipette_agent_ready: { kind: "gauge", help: "Whether the agent serves calls.", labels: [] },
  pipette_node_problems: {
    kind: "gauge",
    help: "What keeps the node as a whole from giving pods a network: what STATUS fails for.",
    labels: [],
  },
} as const satisfies Definitions;
