import { ownerKey } from "../../shared/cni/owner-key.ts";
import type { DeniedCount, PodRule, PolicyEnforcement } from "../datapath/policies.ts";
import type { AgentMeter, AgentSamples } from "../metrics/meter.ts";

const directions = ["ingress", "egress"] as const;

/** What network policies of this node are measured by. */
export class PolicyMeasures {
  readonly #meter: AgentMeter | undefined;
  /** Of the first change that is not in force yet. */
  #changedAtMs: number | undefined;
  /** By pod and direction, what was counted at the last scrape. */
  #counted: ReadonlyMap<string, number> = new Map();
  readonly #drops = { ingress: 0, egress: 0 };

  constructor(meter: AgentMeter | undefined) {
    this.#meter = meter;
  }

  /** The controller has told of a change. */
  changed(): void {
    this.#changedAtMs ??= performance.now();
  }

  /** @param enforce puts in force what was told before @throws what it throws */
  async realize<T>(enforce: () => Promise<T>): Promise<T> {
    const changedAtMs = this.#changedAtMs;
    this.#changedAtMs = undefined;
    try {
      const done = await enforce();
      if (changedAtMs !== undefined)
        this.#meter?.observe("pipette_policy_realization_seconds", {}, (performance.now() - changedAtMs) / 1000);
      return done;
    } catch (caught) {
      this.#changedAtMs = changedAtMs ?? this.#changedAtMs;
      throw caught;
    }
  }

  async tell(
    samples: AgentSamples,
    rules: ReadonlyMap<string, Pick<PodRule, "direction">>,
    enforcement: Pick<PolicyEnforcement, "counts">,
  ): Promise<void> {
    const all = [...rules.values()];
    for (const direction of directions) {
      const count = all.filter((rule) => rule.direction === direction).length;
      samples.set("pipette_policy_rules", { direction }, count);
    }
    this.#add((await enforcement.counts()).denied);
    for (const direction of directions)
      samples.set("pipette_policy_drops_total", { direction }, this.#drops[direction]);
  }

  /** Pods go and take their counts with them: what they have counted stays ours. */
  #add(denied: readonly DeniedCount[]): void {
    const counted = new Map<string, number>();
    for (const { owner, direction, packets } of denied) {
      const key = `${direction} ${ownerKey(owner)}`;
      const before = this.#counted.get(key) ?? 0;
      // One that counts from its beginning is another pod's, or of a new start of the switch.
      this.#drops[direction] += packets >= before ? packets - before : packets;
      counted.set(key, packets);
    }
    this.#counted = counted;
  }
}
