import type { CniRequest } from "../shared/cni/dispatch.ts";
import type { Owner } from "../shared/cni/types.ts";
import type { Logger } from "../shared/log.ts";
import type { NetConf } from "./net-conf.ts";
import { sandboxIdOf } from "./netns.ts";

/** One verb on its way: what the runtime asked, what its configuration says, and where to report. */
export interface Call {
  readonly request: CniRequest;
  readonly conf: NetConf;
  readonly log: Logger;
  /** Of the wall clock, in milliseconds since 1970: it may have been set since. */
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
