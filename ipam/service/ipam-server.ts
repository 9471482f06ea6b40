import type { Logger } from "../../shared/log.ts";
import type { Running } from "../../shared/server/daemon.ts";
import { SocketServer } from "../../shared/server/socket-server.ts";
import type { System } from "../../shared/server/system.ts";
import { buildId } from "../../shared/version.ts";
import type { Allocator } from "../allocator.ts";
import { openVerified } from "../recovery/open-verified.ts";
import { StoreWatch } from "../recovery/store-watch.ts";
import { ipamRunner } from "./forwarded.ts";
import { type IpamHost, ipamRpcs } from "./ipam-rpcs.ts";

export interface IpamServerConfig {
  readonly socket: string;
  readonly dataDir: string;
  /** As in `IpamHost`. */
  readonly sections: IpamHost["sections"];
}

/** The server's name in messages. */
export const ipamServerName = "the allocator's service";

/** How often the server checks that its socket and its database are still there. */
const watchIntervalMs = 10_000;
/** How long a stopping server waits for its calls. Most take milliseconds; a `List` may be as slow as its client. */
const drainTimeoutMs = 10_000;

/**
 * Serves the allocator without an agent. Plugins and an agent may use the same data directory meanwhile, since each
 * call is one transaction.
 * @throws {CniError} naming the obstacle; nothing stays locked or listening then
 */
export async function startIpamServer(config: IpamServerConfig, logger: Logger, system: System): Promise<Running> {
  const { socket, dataDir, sections } = config;
  await using starting = new AsyncDisposableStack();
  const server = starting.use(SocketServer.claim(socket, ipamServerName, system));
  const watch = starting.use(new StoreWatch());
  const report = (line: string): void => logger.warn(line);
  const allocator = starting.use(await openVerified(dataDir, report, { onDamage: watch.onDamage }));
  await watch.start(allocator, watchIntervalMs);
  const runners = { "pipette-ipam": ipamRunner({ allocator, dataDir }) };
  await server.listen([ipamRpcs(aloneWith(allocator, config))], watchIntervalMs, logger, {
    buildId: buildId(),
    runners,
  });
  server.serving = true;
  logger.info("ready", { socket, dataDir, networks: [...sections.keys()] });
  const resources = starting.move();
  return {
    lost: Promise.race([server.lost, watch.lost]),
    settled: server.settled,
    async stop() {
      logger.info("stopping", { callsInFlight: server.callsInFlight });
      if (!(await server.close(drainTimeoutMs))) logger.warn("calls were cut off", { after: drainTimeoutMs });
      await resources.disposeAsync();
      logger.info("stopped");
    },
  };
}

/** No interface is known here, as with `pipette-ipam`, so a released lease cools at once. */
function aloneWith(allocator: Allocator, { dataDir, sections }: IpamServerConfig): IpamHost {
  return {
    allocator,
    dataDir,
    sections,
    release: (owner) => allocator.release(owner, "cooling"),
    async collect(network, keep) {
      const gone = allocator.retain(network, keep, "cooling");
      return { removed: gone.map(({ sandboxId, ifname }) => ({ containerId: sandboxId, ifname })), failures: [] };
    },
  };
}
