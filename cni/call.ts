import type { CniRequest } from "../shared/cni/dispatch.ts";
import type { Owner } from "../shared/cni/types.ts";
import type { Logger } from "../shared/log.ts";
import type { NetConf } from "./net-conf.ts";

/** One verb on its way: what the runtime asked, what its configuration says, and where to report. */
export interface Call {
  readonly request: CniRequest;
  readonly conf: NetConf;
  readonly log: Logger;
  /** Milliseconds since 1970. */
  readonly startedAtMs: number;
}

/** On Linux every container that a runtime names is a sandbox of its own. */
export const ownerOf = ({ request }: Call): Owner => ({
  network: request.network,
  sandboxId: request.env.containerId,
  ifname: request.env.ifname,
});
