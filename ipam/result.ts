import type { CniDns, CniResult } from "../shared/cni/types.ts";
import { CniCode, CniError } from "../shared/errors.ts";
import { reasonOf } from "../shared/reason.ts";
import type { IpamConfig } from "./config/ipam-config.ts";
import type { Lease } from "./lease.ts";

/** A resolv.conf has a few lines. */
const maxResolvConfBytes = 64 * 1024;

/**
 * The `dns` of the configuration's `resolvConf`; empty without one. To be called before anything is allocated, so that
 * a missing file leaves no lease behind.
 * @throws {CniError} code 5 naming the path
 */
export async function readDns(config: IpamConfig): Promise<CniDns> {
  return config.resolvConf === undefined ? {} : parseResolvConf(await readText(config.resolvConf));
}

async function readText(path: string): Promise<string> {
  // Loaded only where a file is configured.
  const { readSmallFile } = await import("../shared/os/plain-file.ts");
  try {
    return readSmallFile(path, maxResolvConfBytes);
  } catch (cause) {
    const is = reasonOf(cause);
    const wanted = "a readable file in resolv.conf format";
    throw new CniError(CniCode.io, `Cannot read "ipam.resolvConf" "${path}": ${is}, wanted ${wanted}`, { cause });
  }
}

/**
 * resolv.conf(5) as host-local reads it: servers, searches and options accumulate, the last domain counts, nothing is
 * validated.
 */
export function parseResolvConf(text: string): CniDns {
  const nameservers: string[] = [];
  const search: string[] = [];
  const options: string[] = [];
  let domain: string | undefined;
  for (const line of text.split("\n")) {
    if (line.startsWith("#") || line.startsWith(";")) continue;
    const [key, ...values] = line.trim().split(/\s+/);
    const [first] = values;
    if (first === undefined) continue;
    if (key === "nameserver") nameservers.push(first);
    else if (key === "domain") domain = first;
    else if (key === "search") search.push(...values);
    else if (key === "options") options.push(...values);
  }
  return { nameservers, search, options, ...(domain === undefined ? {} : { domain }) };
}

/**
 * An IPAM plugin's result: addresses, routes and DNS, no interfaces (specification 1.1.0, section 4).
 * @param dns what `readDns` answered
 */
export function ipamResult({ routes }: IpamConfig, leases: readonly Lease[], dns: CniDns): CniResult {
  const ips = leases.map(({ address, gateway }) => ({ address, ...(gateway === undefined ? {} : { gateway }) }));
  return { interfaces: [], ips, routes, dns };
}
