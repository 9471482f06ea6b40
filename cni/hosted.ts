import { type Allocator, dataDirOf } from "../ipam/mod.ts";
import { type PluginIo, runPlugin } from "../shared/cni/dispatch.ts";
import type { Verb } from "../shared/cni/environment.ts";
import { CniError } from "../shared/errors.ts";
import { limits } from "../shared/limits.ts";
import type { Fields } from "../shared/schema/json-fields.ts";
import { type NetConf, parseNetConfLeniently } from "./net-conf.ts";
import type { PluginContext } from "./plugin-context.ts";
import { verbsIn } from "./verbs.ts";

/** What the plugin needs of the agent when a call runs inside the agent. */
export interface Host extends Pick<PluginContext, "ask"> {
  /** How long ago the call began, in milliseconds. */
  readonly agedMs: () => number;
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
      agedMs: host.agedMs,
      ask: host.ask,
      isOwnAgent: true,
      openStore: async () => host.borrowStore(),
      admit(request) {
        const meant = request.conf.derive(meantBy);
        if (!meant.isOwn || meant.socket !== host.socket || meant.store !== host.dataDir) host.pass();
        host.take(timeoutOf(request.env.command, meant.conf));
      },
    }),
    io,
  );

/** Which agent a configuration means, and whether that can carry out its calls. */
function meantBy(given: Fields) {
  const conf = parseNetConfLeniently(given, () => undefined);
  return {
    conf,
    socket: conf.socket,
    store: storeOf(given, conf),
    /**
     * Whether a call needs nothing of the caller but its texts: named files lie in the caller's mounts, and another IPAM
     * plugin has to be its child process.
     */
    isOwn: conf.ipam.kind !== "delegated" && !given.has("logFile"),
  };
}

/** The data directory in which a DEL is recorded, as in `openStore`. */
function storeOf(given: Fields, conf: NetConf): string {
  try {
    return conf.ipam.kind === "own" ? dataDirOf(given) : conf.dataDir;
  } catch (caught) {
    if (caught instanceof CniError) return conf.dataDir;
    throw caught;
  }
}

function timeoutOf(command: Verb, { addTimeoutMs, delTimeoutMs }: NetConf): number {
  if (command === "STATUS") return limits.statusTimeoutMs;
  return command === "DEL" || command === "GC" ? delTimeoutMs : addTimeoutMs;
}
