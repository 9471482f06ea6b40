import type { Allocator } from "../ipam/mod.ts";
import type { CniRequest } from "../shared/cni/dispatch.ts";
import { uptimeMs } from "../shared/os/uptime.ts";
import { callTimes, type Method } from "../shared/proto/services.ts";
import { callUnary } from "../shared/rpc/call.ts";

/** What a call uses beyond its environment and streams, in a process of its own or inside the agent. */
export interface PluginContext {
  /** How long ago the call began, in milliseconds, when its verb begins; absent: just now. */
  agedMs?(): number;
  /** Whether the agent may have carried the call out already without an answer. */
  readonly seen?: boolean;
  /** Called before anything is done. @throws if only the caller's own process can run the call */
  admit?(request: CniRequest): void;
  /** As `callUnary`. */
  ask<Req, Res>(socket: string, method: Method<Req, Res>, request: Req, about: AskedWith): Promise<Res>;
  /** Whether the agent that is asked is this very process, whose answers need no check. */
  readonly isOwnAgent?: boolean;
  /** The store of a data directory, to be disposed of. */
  openStore(dataDir: string): Promise<Allocator>;
}

/** What an agent is told beside a request. */
export interface AskedWith {
  /** Of the answer, from now on. */
  readonly timeoutMs: number;
  /** The trace of the runtime's call, by the headers' names. */
  readonly trace: Readonly<Record<string, string>>;
  /** When the call began and until when its caller waits, by `uptimeMs`; absent where the system does not tell. */
  readonly startedUptimeMs?: number;
  readonly untilUptimeMs?: number;
}

/** The context of a process for one call. */
export const ownProcess: PluginContext = {
  ask: (socket, method, request, { timeoutMs, trace, startedUptimeMs, untilUptimeMs }) =>
    callUnary(socket, method, request, {
      timeoutMs,
      metadata: {
        ...trace,
        ...(startedUptimeMs === undefined ? {} : { [callTimes.startedMs]: String(startedUptimeMs) }),
        ...(untilUptimeMs === undefined ? {} : { [callTimes.untilMs]: String(untilUptimeMs) }),
      },
      alone: true,
    }),
  // Loaded here, because most calls never need it.
  openStore: async (dataDir) => (await import("../ipam/mod.ts")).Allocator.open(dataDir),
};

/**
 * The context of a process that was the small program before, with its knowledge of the call
 * (`forward/PROTOCOL.md`).
 * @param args `--forwarded`, `unasked` or `lost`, and when the call began, in microseconds since the boot
 */
export function pluginContextOf([option, fate, started]: readonly string[]): PluginContext {
  if (option !== "--forwarded") return ownProcess;
  const startedMs = Number(started) / 1000;
  const agedMs = (): number => Math.max(0, (uptimeMs() ?? 0) - startedMs) || 0;
  return { ...ownProcess, agedMs, seen: fate === "lost" };
}
