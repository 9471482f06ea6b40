import { readdirSync } from "node:fs";
import { isWindows } from "../os/platform.ts";
import { version } from "../version.ts";
import type { Definitions, Samples } from "./definitions.ts";
import { openHandles } from "./open-handles.windows.ts";

/** What every program tells of itself: the names that all of Prometheus' clients have, and what it is. */
export const processMetrics = {
  pipette_build_info: { kind: "gauge", help: "What this process is; always 1.", labels: ["version", "runtime", "os"] },
  process_cpu_seconds_total: { kind: "counter", help: "Processor time of this process, in seconds.", labels: [] },
  process_resident_memory_bytes: { kind: "gauge", help: "Resident memory of this process, in bytes.", labels: [] },
  process_start_time_seconds: {
    kind: "gauge",
    help: "When this process began, in seconds since the Unix epoch.",
    labels: [],
  },
  process_open_fds: { kind: "gauge", help: "Open files and sockets of this process; on Windows handles.", labels: [] },
} as const satisfies Definitions;

export function readProcess(samples: Samples<typeof processMetrics>): void {
  const { user, system } = process.cpuUsage();
  const of = { version, runtime: `bun ${Bun.version}`, os: isWindows ? "windows" : "linux" };
  samples.set("pipette_build_info", of, 1);
  samples.set("process_cpu_seconds_total", {}, (user + system) / 1e6);
  samples.set("process_resident_memory_bytes", {}, process.memoryUsage.rss());
  samples.set("process_start_time_seconds", {}, performance.timeOrigin / 1000);
  // Without the one that lists them.
  const open = isWindows ? openHandles() : readdirSync("/proc/self/fd").length - 1;
  if (open !== undefined) samples.set("process_open_fds", {}, open);
}
