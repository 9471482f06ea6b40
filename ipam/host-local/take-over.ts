import type { Allocator } from "../allocator.ts";
import type { IpamConfig } from "../config/ipam-config.ts";
import { isSettled } from "./record.ts";
import type { TakeOver } from "./take-over-once.ts";

/**
 * Imports host-local's leases of this network, once in the network's life; to be called before its leases are used.
 * Once it is done a call costs one look-up, and there is nothing to wait for.
 * @param log gets in sentences what was taken over and what was unreadable
 * @param config gives the leases their subnets; without it they get them when their owners' ADDs come again
 * @throws {CniError} code 5 where host-local's directory cannot be read, 11 where its lock is not free
 */
export function takeOver(
  allocator: Allocator,
  network: string,
  log: (line: string) => void,
  config?: IpamConfig,
): Promise<void> | undefined {
  const { dataDir } = allocator;
  if (dataDir === undefined || isSettled(allocator, network)) return undefined;
  return takeUnsettled(allocator, { dataDir, network, log, config });
}

async function takeUnsettled(allocator: Allocator, about: TakeOver): Promise<void> {
  const { takeOverOnce } = await import("./take-over-once.ts");
  await takeOverOnce(allocator, about);
}
