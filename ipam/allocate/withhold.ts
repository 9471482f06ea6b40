import type { Ip } from "../../shared/net/ip.ts";
import { type Intervals, intervalsOf } from "../config/intervals.ts";
import type { IpamConfig } from "../config/ipam-config.ts";

/** `config` for one allocation that gives none of these addresses out anew; who holds a lease on one keeps it. */
export function withholding(config: IpamConfig, ips: readonly Ip[]): IpamConfig {
  if (ips.length === 0) return config;
  const withheld: Intervals = intervalsOf(ips.map((ip) => ({ first: ip, last: ip })));
  return { ...config, withheld, reserved: intervalsOf([...config.reserved, ...withheld]) };
}
