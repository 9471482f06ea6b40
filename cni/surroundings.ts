import type { Allocator } from "../ipam/mod.ts";
import type { CniRequest } from "../shared/cni/dispatch.ts";
import { uptimeMs } from "../shared/os/uptime.ts";
import type { Method } from "../shared/proto/services.ts";
import { type CallOptions, callUnary } from "../shared/rpc/call.ts";

/** What a call uses beyond its environment and streams, in a process of its own or inside the agent. */
export interface Surroundings {
  /** How long ago the call began, in milliseconds, when its verb begins; absent: just now. */
  agedMs?(): number;
  /** Whether the agent may have carried the call out already without an answer. */
  readonly seen?: boolean;
  /** Called before anything is done. @throws if only the caller's own process can run the call */
  admit?(request: CniRequest): void;
  /** As `callUnary`. */
  ask<Req, Res>(socket: string, method: Method<Req, Res>, request: Req, options: CallOptions): Promise<Res>;
  /** The store of a data directory, to be disposed of. */
  openStore(dataDir: string): Promise<Allocator>;
}

/** The surroundings of a process for one call. */
export const ownProcess: Surroundings = {
  ask: callUnary,
  // Loaded here, because most calls never need it.
  openStore: async (dataDir) => (await import("../ipam/mod.ts")).Allocator.open(dataDir),
};

/**
 * The surroundings of a process that was the small program before, with its knowledge of the call
 * (`forward/PROTOCOL.md`).
 * @param args `--forwarded`, `unasked` or `lost`, and when the call began, in microseconds since the boot
 */
export function surroundingsOf([option, fate, started]: readonly string[]): Surroundings {
  if (option !== "--forwarded") return ownProcess;
  const startedMs = Number(started) / 1000;
  const agedMs = (): number => Math.max(0, (uptimeMs() ?? 0) - startedMs) || 0;
  return { ...ownProcess, agedMs, seen: fate === "lost" };
}
