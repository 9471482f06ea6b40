import type { Allocator } from "../ipam/mod.ts";
import type { CniRequest } from "../shared/cni/dispatch.ts";
import type { Method } from "../shared/proto/services.ts";
import { callUnary } from "../shared/rpc/call.ts";

export interface AskOptions {
  readonly timeoutMs: number;
  /** The trace, and the times of the call. */
  readonly metadata: Readonly<Record<string, string>>;
}

/** What a call reaches beyond its environment and streams: from a process of its own, or from within the agent. */
export interface Surroundings {
  /** How long ago the call began, in milliseconds, when its verb is about to. */
  readonly agedMs: () => number;
  /** Told of each call before anything is done. @throws where only a process of the caller's own can run it */
  admit(request: CniRequest): void;
  /** @throws {RpcError} for whatever is not an answer */
  ask<Req, Res>(socket: string, method: Method<Req, Res>, request: Req, options: AskOptions): Promise<Res>;
  /** The store of a data directory, to be disposed of. */
  openStore(dataDir: string): Promise<Allocator>;
}

/** Those of a process that is there for one call. */
export const ownProcess: Surroundings = {
  agedMs: () => 0,
  admit: () => undefined,
  ask: (socket, method, request, options) => callUnary(socket, method, request, { ...options, alone: true }),
  // Most calls never need it, so its code is loaded here.
  openStore: async (dataDir) => (await import("../ipam/mod.ts")).Allocator.open(dataDir),
};
