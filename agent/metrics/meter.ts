import type { Meter, Samples } from "../../shared/metrics/mod.ts";
import type { agentMetrics } from "./agent-metrics.ts";

/** Given to what happens in an agent whose numbers are asked for; in others there is none. */
export type AgentMeter = Meter<typeof agentMetrics>;
/** What is there at a scrape. */
export type AgentSamples = Samples<typeof agentMetrics>;

/** By object, which of its methods are operations, and what each is called. */
type Operations<T> = Partial<Readonly<Record<keyof T, string>>>;

/**
 * The same object, with these of its methods counted and timed. It stays the owner of its own fields: methods are called
 * on it, and not on what stands in front.
 */
export function timed<T extends object>(of: T, operations: Operations<T>, meter: AgentMeter | undefined): T {
  if (meter === undefined) return of;
  const tell = (op: string, result: "ok" | "failed", beganMs: number): void => {
    const seconds = (performance.now() - beganMs) / 1000;
    meter.add("pipette_datapath_operations_total", { op, result });
    meter.observe("pipette_datapath_operation_duration_seconds", { op }, seconds);
  };
  return new Proxy(of, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key, target);
      if (typeof value !== "function") return value;
      const op = operations[key as keyof T];
      if (op === undefined) return value.bind(target);
      return async (...given: readonly unknown[]) => {
        const beganMs = performance.now();
        try {
          const answer: unknown = await value.apply(target, given);
          tell(op, "ok", beganMs);
          return answer;
        } catch (caught) {
          tell(op, "failed", beganMs);
          throw caught;
        }
      };
    },
  });
}
