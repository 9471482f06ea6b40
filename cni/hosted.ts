import { type Allocator, dataDirOf } from "../ipam/mod.ts";
import { type CniRequest, type PluginIo, runPlugin } from "../shared/cni/dispatch.ts";
import type { Verb } from "../shared/cni/environment.ts";
import { CniError } from "../shared/errors.ts";
import { limits } from "../shared/limits.ts";
import { type NetConf, parseNetConfLeniently } from "./net-conf.ts";
import type { Surroundings } from "./surroundings.ts";
import { verbsIn } from "./verbs.ts";

/** What the plugin needs of the agent that runs a call in place of a process of its own. */
export interface Host extends Pick<Surroundings, "ask"> {
  /** How long ago the call began, in milliseconds. */
  agedMs(): number;
  /** Where the agent listens. */
  readonly socket: string;
  readonly dataDir: string;
  /** The agent's own: disposing of it leaves the store open. */
  borrowStore(): Allocator;
  /** Leaves the call to its caller. @throws always */
  pass(): never;
  /** From here on the call is the agent's, for so long since it began. @throws where that is over */
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
 * Whether the agent is the one that the configuration means, and nothing of the caller's own is needed but its texts: a
 * file that it names is one of its mounts, another IPAM plugin one of its processes.
 */
function isOf(host: Host, request: CniRequest, conf: NetConf): boolean {
  if (conf.ipam.kind === "delegated" || request.conf.has("logFile")) return false;
  return conf.socket === host.socket && storeOf(request, conf) === host.dataDir;
}

/** The data directory where a DEL leaves word, as `openStore` has it. */
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
