import { parseIpamConfig } from "../../../ipam/config/ipam-config.ts";
import type { IpamConfig } from "../../../ipam/mod.ts";
import { parseCidr } from "../../../shared/net/ip.ts";
import { Fields } from "../../../shared/schema/json-fields.ts";
import { type Filling, fillStore } from "../../support/filled-store.ts";

export const network = "bench";

/** An address pool with standing leases, at which the allocator is measured. */
export interface Pool {
  readonly subnet: string;
  readonly leases: number;
  readonly shape: Filling["shape"];
  /** Whether host-local is measured at it too; its cost grows with every lease. */
  readonly withPeer: boolean;
}

const subnet4 = "10.128.0.0/12";
const subnet6 = "fd00:128::/64";
/** All that a /12 has but 0.1 %; what is left lies scattered. */
const nearlyFull = 1_047_525;

/** @param most leases in a pool of ours, and with host-local's in one of both */
export function poolsUpTo(most: number, maxWithPeer: number): readonly Pool[] {
  const both = [0, 250, 4_000, 20_000].filter((leases) => leases <= maxWithPeer);
  const pools: readonly Pool[] = [
    ...both.map((leases): Pool => ({ subnet: subnet4, leases, shape: "packed", withPeer: true })),
    { subnet: subnet4, leases: 1_000_000, shape: "packed", withPeer: false },
    { subnet: subnet4, leases: 524_288, shape: "scattered", withPeer: false },
    { subnet: subnet4, leases: nearlyFull, shape: "scattered", withPeer: false },
    { subnet: subnet6, leases: 1_000_000, shape: "scattered", withPeer: false },
  ];
  return pools.map((pool) => ({ ...pool, leases: Math.min(pool.leases, most) }));
}

export const nameOf = ({ subnet, leases, shape }: Pool): string =>
  `${subnet}, ${leases.toLocaleString("en")}${leases === 0 ? "" : ` ${shape}`}`;

export const confFor = (type: string, { subnet }: Pool, dataDir: string): string =>
  JSON.stringify({
    cniVersion: "1.0.0",
    name: network,
    type: "bench",
    ipam: { type, dataDir, ranges: [[{ subnet }]] },
  });

export function configFor(pool: Pool, dataDir: string): IpamConfig {
  const conf = Fields.parse(confFor("pipette-ipam", pool, dataDir));
  return parseIpamConfig({ conf, network, version: "1.0.0", args: "" });
}

export async function fillOurs(dataDir: string, { subnet, leases, shape }: Pool): Promise<void> {
  const cidr = parseCidr(subnet);
  if (cidr === undefined) throw new Error(`Cannot fill a pool: its subnet is "${subnet}", wanted a network`);
  await fillStore(dataDir, { network, subnet: cidr, leases, shape });
}
