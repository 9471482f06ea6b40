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
 * The IPAM plugin inside a server that has the store open. Importing host-local's leases, and reading files that a
 * configuration names, is left to the caller, because both lie in its mounts.
 */
export function ipamRunner({ allocator, dataDir, isReady = () => true }: ForwardingServer): CniRunner {
  return (io, hosted) =>
    runIpamPlugin(io, {
      agedMs: () => hosted.agedMs(),
      async guard({ conf, network, env }, run) {
        if (!isReady() || !isIn(dataDir, conf)) hosted.pass();
        try {
          if (env.command !== "STATUS" && !isSettled(allocator, network)) hosted.pass();
          return await run();
        } catch (caught) {
          // Another process has to rebuild the database that this one has open.
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
    // The caller's own plugin process reports what is wrong with it.
    return false;
  }
}
