import { type Allocator, dataDirOf } from "../ipam/mod.ts";
import { type CniRequest, type PluginIo, runPlugin } from "../shared/cni/dispatch.ts";
import type { Verb } from "../shared/cni/environment.ts";
import { CniError } from "../shared/errors.ts";
import { limits } from "../shared/limits.ts";
import { type NetConf, parseNetConfLeniently } from "./net-conf.ts";
import type { Surroundings } from "./surroundings.ts";
import { verbsIn } from "./verbs.ts";

/** What the plugin needs of the agent when a call runs inside the agent. */
export interface Host extends Pick<Surroundings, "ask"> {
  /** How long ago the call began, in milliseconds. */
  agedMs(): number;
  /** Where the agent listens. */
  readonly socket: string;
  readonly dataDir: string;
  /** The agent's own store; disposing of it leaves it open. */
  borrowStore(): Allocator;
  /** Has the caller run the call itself. @throws always */
  pass(): never;
  /** From here on the agent runs the call, for at most so long since it began. @throws if that time is over */
  take(timeoutMs: number): void;
}

/** The plugin inside of the agent. @returns the exit status */
export const runHostedPlugin = (io: PluginIo, host: Host): Promise<number> =>
  runPlugin(
    verbsIn({
      agedMs: () => host.agedMs(),
      ask: (...asked) => host.ask(...asked),
      openStore: async () => host.borrowStore(),
      admit(request) {
        const conf = parseNetConfLeniently(request.conf, () => undefined);
        if (!isOf(host, request, conf)) host.pass();
        host.take(timeoutOf(request.env.command, conf));
      },
    }),
    io,
  );

/**
 * Whether the configuration means this agent, and the call needs nothing of the caller but its texts: named files lie
 * in the caller's mounts, and another IPAM plugin has to be its child process.
 */
function isOf(host: Host, request: CniRequest, conf: NetConf): boolean {
  if (conf.ipam.kind === "delegated" || request.conf.has("logFile")) return false;
  return conf.socket === host.socket && storeOf(request, conf) === host.dataDir;
}

/** The data directory in which a DEL is recorded, as in `openStore`. */
function storeOf(request: CniRequest, conf: NetConf): string {
  try {
    return conf.ipam.kind === "own" ? dataDirOf(request.conf) : conf.dataDir;
  } catch (caught) {
    if (caught instanceof CniError) return conf.dataDir;
    throw caught;
  }
}

function timeoutOf(command: Verb, { addTimeoutMs, delTimeoutMs }: NetConf): number {
  if (command === "STATUS") return limits.statusTimeoutMs;
  return command === "DEL" || command === "GC" ? delTimeoutMs : addTimeoutMs;
}
