import type { Allocator } from "../ipam/mod.ts";
import type { CniRequest } from "../shared/cni/dispatch.ts";
import { uptimeMs } from "../shared/os/uptime.ts";
import type { Method } from "../shared/proto/services.ts";
import { type CallOptions, callUnary } from "../shared/rpc/call.ts";

/** What a call reaches beyond its environment and streams: from a process of its own, or from within the agent. */
export interface Surroundings {
  /** How long ago the call began, in milliseconds, when its verb is about to; absent: just now. */
  agedMs?(): number;
  /** Whether the agent may have carried the call out already, of which no answer has come. */
  readonly seen?: boolean;
  /** Told of each call before anything is done. @throws where only a process of the caller's own can run it */
  admit?(request: CniRequest): void;
  /** As `callUnary`. */
  ask<Req, Res>(socket: string, method: Method<Req, Res>, request: Req, options: CallOptions): Promise<Res>;
  /** The store of a data directory, to be disposed of. */
  openStore(dataDir: string): Promise<Allocator>;
}

/** Those of a process that is there for one call. */
export const ownProcess: Surroundings = {
  ask: callUnary,
  // Most calls never need it, so its code is loaded here.
  openStore: async (dataDir) => (await import("../ipam/mod.ts")).Allocator.open(dataDir),
};

/**
 * Those of a process that the small program in front has become, with what it knows of the call (`forward/PROTOCOL.md`).
 * @param args `--forwarded`, `unasked` or `lost`, and when the call began, in microseconds since the boot
 */
export function surroundingsOf([option, fate, started]: readonly string[]): Surroundings {
  if (option !== "--forwarded") return ownProcess;
  const startedMs = Number(started) / 1000;
  const agedMs = (): number => Math.max(0, (uptimeMs() ?? 0) - startedMs) || 0;
  return { ...ownProcess, agedMs, seen: fate === "lost" };
}
