import { type Definitions, type Meter, processMetrics, type Samples } from "../shared/metrics/mod.ts";
import type { ServedState } from "./api/mod.ts";

/** What a controller measures. */
export const controllerMetrics = {
  ...processMetrics,
  pipette_controller_ready: { kind: "gauge", help: "Whether policies are computed and served.", labels: [] },
  pipette_controller_agents: { kind: "gauge", help: "Nodes whose part of the policies is followed.", labels: [] },
  pipette_controller_queue_depth: {
    kind: "gauge",
    help: "Events that wait for those who follow and read slowly.",
    labels: [],
  },
  pipette_controller_sync_duration_seconds: {
    kind: "histogram",
    help: "How long it took to compute what has changed and to hand it to those who follow, in seconds.",
    labels: [],
    buckets: [0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5],
  },
  pipette_controller_certificate_requests_total: {
    kind: "counter",
    help: "Nodes' requests for a certificate of IPsec that this controller has answered.",
    labels: ["result"],
  },
  pipette_controller_ipsec_authority_end_timestamp_seconds: {
    kind: "gauge",
    help: "When the authority ends that signs nodes' certificates for IPsec.",
    labels: [],
  },
  pipette_controller_objects: { kind: "gauge", help: "What policies are computed from.", labels: ["kind"] },
} as const satisfies Definitions;

export type ControllerMeter = Meter<typeof controllerMetrics>;

/** Who signs nodes' certificates, as far as it is measured. */
interface MeasuredSigner {
  readonly authorityEndsMs: number | undefined;
}

/** Tells a scrape what is served now; little of policies where none are computed yet. */
export function measureController(
  { state, signer }: { readonly state: ServedState | undefined; readonly signer?: MeasuredSigner | undefined },
  samples: Samples<typeof controllerMetrics>,
): void {
  const endsMs = signer?.authorityEndsMs;
  if (endsMs !== undefined) samples.set("pipette_controller_ipsec_authority_end_timestamp_seconds", {}, endsMs / 1000);
  samples.set("pipette_controller_ready", {}, state === undefined ? 0 : 1);
  if (state === undefined) return;
  samples.set("pipette_controller_agents", {}, state.watches.nodes);
  samples.set("pipette_controller_queue_depth", {}, state.watches.waiting);
  for (const [kind, count] of Object.entries(state.computation.size))
    samples.set("pipette_controller_objects", { kind }, count);
}
