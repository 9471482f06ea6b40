import { limits } from "../../shared/limits.ts";
import type { Fields } from "../../shared/schema/json-fields.ts";
import type { CniRunner } from "../../shared/server/forward/run-forwarded.ts";
import type { Allocator } from "../allocator.ts";
import { dataDirOf } from "../config/ipam-config.ts";
import { isSettled } from "../host-local/record.ts";
import { runIpamPlugin } from "../plugin.ts";
import { isDamage } from "../store/sqlite-errors.ts";

/** A server of the allocator. */
export interface ForwardingServer {
  readonly allocator: Allocator;
  readonly dataDir: string;
  /** Whether it serves now; absent: as long as it listens. */
  isReady?(): boolean;
}

/**
 * The IPAM plugin inside of a server that has the store open. A network that host-local may still have leases of is the
 * caller's to take over, and a file that a configuration names the caller's to read: both lie in its mounts.
 */
export function ipamRunner({ allocator, dataDir, isReady = () => true }: ForwardingServer): CniRunner {
  return (io, hosted) =>
    runIpamPlugin(io, {
      async guard({ conf, network, env }, run) {
        if (!isReady() || !isIn(dataDir, conf)) hosted.pass();
        try {
          if (env.command !== "STATUS" && !isSettled(allocator, network)) hosted.pass();
          return await run();
        } catch (caught) {
          // What this process has open is for another one to rebuild.
          if (isDamage(caught)) hosted.lose(caught);
          throw caught;
        }
      },
      borrow() {
        hosted.take(limits.addTimeoutMs);
        return allocator.lend();
      },
      pass: () => hosted.pass(),
    });
}

function isIn(dataDir: string, conf: Fields): boolean {
  try {
    return dataDirOf(conf) === dataDir;
  } catch {
    // What is wrong with it is for the plugin itself to say.
    return false;
  }
}
