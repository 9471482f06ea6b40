import { limits } from "../../shared/limits.ts";
import type { Fields } from "../../shared/schema/json-fields.ts";
import type { CniRunner } from "../../shared/server/forward/run-forwarded.ts";
import type { Allocator } from "../allocator.ts";
import { dataDirOf } from "../config/ipam-config.ts";
import { isSettled } from "../host-local/record.ts";
import { runIpamPlugin } from "../plugin.ts";
import { isDamage } from "../store/sqlite-errors.ts";

/** What a server of the allocator does of `pipette-ipam`'s calls itself. */
export interface IpamForwarding {
  readonly allocator: Allocator;
  readonly dataDir: string;
  /** Whether it serves at all now. */
  isReady?(): boolean;
}

/**
 * The IPAM plugin inside of a server that has the store open. A network that host-local may still have leases of is the
 * caller's to take over, and a file that a configuration names the caller's to read: both lie in its mounts.
 */
export function ipamRunner({ allocator, dataDir, isReady = () => true }: IpamForwarding): CniRunner {
  return (io, hosted) =>
    runIpamPlugin(io, {
      admit({ conf, network, env }) {
        if (!isReady() || !isIn(dataDir, conf)) hosted.pass();
        if (env.command !== "STATUS" && !isSettled(allocator, network)) hosted.pass();
      },
      async guarding(_request, run) {
        try {
          return await run();
        } catch (caught) {
          // It is for a process of its own to rebuild what this one has open.
          if (isDamage(caught)) hosted.lose(caught);
          throw caught;
        }
      },
      async open() {
        hosted.take(limits.addTimeoutMs);
        return allocator.lend();
      },
      async openExisting() {
        hosted.take(limits.addTimeoutMs);
        return allocator.lend();
      },
      async readDns({ resolvConf }) {
        return resolvConf === undefined ? {} : hosted.pass();
      },
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
