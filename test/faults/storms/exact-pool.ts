import type { BridgeNodeOptions } from "../node/bridge-node.ts";

const prefix = "10.93.0";
const hosts = 254;

/** A network "pods" with exactly so many IPv4 addresses for pods, 252 at most; of IPv6 there are plenty. */
export function exactly(addresses: number): BridgeNodeOptions {
  const first = 2 + addresses;
  const exclude = Array.from({ length: hosts - first + 1 }, (_, i) => `${prefix}.${first + i}`);
  const networks = [
    {
      name: "pods",
      subnets: [`${prefix}.0/24`, "fd93::/64"],
      bridge: "pipette0",
      masquerade: true,
      hairpin: true,
      exclude,
    },
  ];
  return { agent: { networks } };
}

/** The same for host-local, in a network of its own. */
export const exactRanges = (addresses: number): readonly object[] => [
  [{ subnet: "10.94.0.0/24", rangeEnd: `10.94.0.${1 + addresses}` }],
  [{ subnet: "fd94::/64" }],
];
