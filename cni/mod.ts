/**
 * The plugin: one CNI verb per process, from environment and stdin to one JSON object on stdout.
 *
 * It checks what it was given, has the agent take the addresses and wire the sandbox, and the delegated IPAM plugin
 * where the configuration names one. Only `main.ts` uses this room, and of it what stands here.
 */
import { type PluginIo, runPlugin, type VerbHandler } from "../shared/cni/dispatch.ts";

export { processIo } from "./process-io.ts";

/** @returns the exit status; never throws */
export function runCniPlugin(io: PluginIo): Promise<number> {
  return runPlugin(
    { ADD: later("add"), DEL: later("del"), CHECK: later("check"), GC: later("gc"), STATUS: later("status") },
    io,
  );
}

/** VERSION, which podman calls for every plugin before whatever it does, needs nothing of the verbs. */
const later =
  (name: "add" | "del" | "check" | "gc" | "status"): VerbHandler =>
  async (request) =>
    (await import("./verbs.ts")).verbs[name](request);
