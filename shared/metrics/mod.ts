/** Numbers of a daemon for Prometheus; no plugin loads it, and no daemon that was not asked for them. */
export type { Definitions, Meter, Reader, Samples } from "./definitions.ts";
export { processMetrics, readProcess } from "./process-metrics.ts";
export { contentType, Registry } from "./registry.ts";
