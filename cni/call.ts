import {
  type ContainerKind,
  containerKindLeniently,
  containerKindStrictly,
  sandboxIdOf as sandboxOf,
} from "../shared/cni/container-kind.ts";
import type { CniRequest } from "../shared/cni/dispatch.ts";
import type { CniEnvironment } from "../shared/cni/environment.ts";
import type { Owner } from "../shared/cni/types.ts";
import { CniCode, CniError } from "../shared/errors.ts";
import type { Logger } from "../shared/log.ts";
import { isWindows } from "../shared/os/platform.ts";
import { show } from "../shared/schema/json-fields.ts";
import type { NetConf } from "./net-conf.ts";
import type { PluginContext } from "./plugin-context.ts";

/** One verb on its way: what the runtime asked, what its configuration says, and where to report. */
export interface Call {
  readonly request: CniRequest;
  readonly conf: NetConf;
  readonly log: Logger;
  readonly context: PluginContext;
  /** What of its time was over when it came to be run here, in milliseconds. */
  readonly agedMs: number;
  /** By the wall clock, in milliseconds since 1970; the clock may have been set since. */
  readonly startedAtMs: number;
  /** The same moment by `performance.now`. */
  readonly startedMs: number;
}

/** Whose leases and interface a call is about. */
export const ownerOf = ({ request }: Call): Owner => ({
  network: request.network,
  sandboxId: sandboxIdOf(request.env),
  ifname: request.env.ifname,
});

/**
 * Refuses what cannot be a namespace before anything is allocated. Only the agent, which enters it, finds out whether
 * it exists.
 * @throws {CniError} code 4
 */
export function requireNetns({ netns }: CniEnvironment): void {
  if (isWindows) {
    containerKindStrictly(netns);
    return;
  }
  if (netns.startsWith("/")) return;
  const is = `CNI_NETNS is ${show(netns)}`;
  throw new CniError(
    CniCode.invalidEnvironment,
    `Cannot read the environment: ${is}, wanted the absolute path of a network namespace`,
  );
}

/** On Linux every container that a runtime names is a sandbox of its own. */
function kindOf({ netns }: CniEnvironment): ContainerKind {
  return isWindows ? containerKindLeniently(netns) : { t: "sandbox" };
}

/** A container that shares the network of its sandbox: its ADD allocates no address and its DEL releases none. */
export const isWorkload = (env: CniEnvironment): boolean => kindOf(env).t === "workload";

export const sandboxIdOf = (env: CniEnvironment): string => sandboxOf(env.containerId, kindOf(env));
