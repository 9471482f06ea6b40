import type { CniDns, CniResult } from "../shared/cni/types.ts";
import type { IpamConfig } from "./config.ts";
import type { Lease } from "./lease.ts";

/**
 * The `dns` of the configuration's `resolvConf`; empty without one. To be read before anything is
 * allocated: a file that is missing must not cost an address.
 * @throws {CniError} code 5 naming the path
 */
export async function readDns(_config: IpamConfig): Promise<CniDns> {
  throw new Error("Broken invariant: resolvConf is not wired up yet");
}

/**
 * An IPAM plugin's result: addresses, routes and DNS, no interfaces (specification 1.1.0, section 4).
 * @param dns what `readDns` answered; read here when absent
 */
export async function ipamResult(config: IpamConfig, _leases: readonly Lease[], dns?: CniDns): Promise<CniResult> {
  return { interfaces: [], ips: [], routes: config.routes, dns: dns ?? (await readDns(config)) };
}
