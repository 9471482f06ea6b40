import type { ServicePort } from "../datapath/services.ts";
import type { AgentMeter, AgentSamples } from "../metrics/meter.ts";
import type { ServiceChanges, ServiceSource } from "./service-source.ts";

/** Changes that wait for being in force, as long as nothing can be: more say nothing new. */
const maxTriggers = 10_000;

/** What services of this node are measured by, under kube-proxy's names where they mean the same. */
export class ServiceMeasures {
  readonly #source: Pick<ServiceSource, "changes" | "takeTriggers">;
  readonly #meter: AgentMeter | undefined;
  #queuedAtMs: number | undefined;
  #appliedAtMs: number | undefined;
  /** Those that the state has which is being put in force, and those that are. */
  #taken: ServiceChanges | undefined;
  #inForce: ServiceChanges = { services: 0, endpoints: 0 };
  /** When that happened which is being put in force, also what an attempt before has not achieved. */
  #triggers: number[] = [];

  constructor(source: Pick<ServiceSource, "changes" | "takeTriggers">, meter: AgentMeter | undefined) {
    this.#source = source;
    this.#meter = meter;
  }

  /** The source has told of a change. */
  queued(): void {
    this.#queuedAtMs = Date.now();
  }

  /** @param apply puts in force what the source says now @throws what it throws */
  async sync<T>(apply: () => Promise<T>): Promise<T> {
    const beganMs = performance.now();
    this.#taken = this.#source.changes;
    this.#triggers = [...this.#triggers, ...(this.#source.takeTriggers?.() ?? [])].slice(0, maxTriggers);
    try {
      return await apply();
    } finally {
      const seconds = (performance.now() - beganMs) / 1000;
      this.#meter?.observe("kubeproxy_sync_proxy_rules_duration_seconds", {}, seconds);
    }
  }

  /** All of it is in force. */
  applied(): void {
    this.#appliedAtMs = Date.now();
    if (this.#taken !== undefined) this.#inForce = this.#taken;
    for (const triggeredAtMs of this.#triggers.splice(0)) {
      const seconds = Math.max(0, this.#appliedAtMs - triggeredAtMs) / 1000;
      this.#meter?.observe("kubeproxy_network_programming_duration_seconds", {}, seconds);
    }
  }

  tell(samples: AgentSamples, wanted: ReadonlyMap<string, ServicePort>, refused: number): void {
    samples.set("pipette_services", { state: "accepted" }, wanted.size - refused);
    samples.set("pipette_services", { state: "refused" }, refused);
    const lacking = { internal: 0, external: 0 };
    for (const { internal, external, cluster, keepsClient } of wanted.values()) {
      // None here, while others elsewhere would answer: only a policy of `Local` makes such a list.
      if (cluster.length > 0 && internal.length === 0) lacking.internal++;
      if (cluster.length > 0 && keepsClient && external.length === 0) lacking.external++;
    }
    for (const policy of ["internal", "external"] as const)
      samples.set("kubeproxy_sync_proxy_rules_no_local_endpoints_total", { traffic_policy: policy }, lacking[policy]);
    const endpoints = wanted.values().reduce((sum, { cluster }) => sum + cluster.length, 0);
    samples.set("pipette_service_endpoints", {}, endpoints);
    if (this.#queuedAtMs !== undefined)
      samples.set("kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds", {}, this.#queuedAtMs / 1000);
    if (this.#appliedAtMs !== undefined)
      samples.set("kubeproxy_sync_proxy_rules_last_timestamp_seconds", {}, this.#appliedAtMs / 1000);
    // Of a file nobody knows what has changed in it.
    const heard = this.#source.changes;
    if (heard === undefined) return;
    const { services, endpoints: slices } = this.#inForce;
    samples.set("kubeproxy_sync_proxy_rules_service_changes_total", {}, heard.services);
    samples.set("kubeproxy_sync_proxy_rules_service_changes_pending", {}, heard.services - services);
    samples.set("kubeproxy_sync_proxy_rules_endpoint_changes_total", {}, heard.endpoints);
    samples.set("kubeproxy_sync_proxy_rules_endpoint_changes_pending", {}, heard.endpoints - slices);
  }
}
