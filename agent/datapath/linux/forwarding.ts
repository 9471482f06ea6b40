import type { Cidr } from "../../../shared/net/ip.ts";
import { readSysctl, writeSysctl } from "./sysctl.ts";

/** Whose packets the node forwards. */
interface Routed {
  readonly subnets: readonly Cidr[];
  /** The interface that they come by: IPv4 has a switch for each. */
  readonly device?: string;
}

const forwardingPaths = {
  4: "/proc/sys/net/ipv4/ip_forward",
  6: "/proc/sys/net/ipv6/conf/all/forwarding",
} as const;

/** The families of the networks whose packets the node does not forward now. */
export function familiesNotForwarded(networks: readonly Routed[]): readonly (4 | 6)[] {
  const used = new Set(networks.flatMap((network) => network.subnets.map((subnet) => subnet.ip.family)));
  return [...used].filter((family) => readSysctl(forwardingPaths[family]) !== "1");
}

/** Interfaces by which the node forwards nothing although it does by others. */
export const devicesNotForwarding = (networks: readonly Routed[]): readonly string[] =>
  networks.flatMap(({ subnets, device }) =>
    device !== undefined && subnets.some(({ ip }) => ip.family === 4) && readSysctl(devicePath(device)) === "0"
      ? [device]
      : [],
  );

const devicePath = (device: string): string => `/proc/sys/net/ipv4/conf/${device}/forwarding`;

/** What of it is off, in sentences. */
export function forwardingProblems(networks: readonly Routed[]): readonly string[] {
  const families = familiesNotForwarded(networks);
  // What is off on the node is off for each of its interfaces.
  const devices = families.includes(4) ? [] : devicesNotForwarding(networks);
  return [
    ...families.map((family) => `IPv${family} forwarding is off on the node`),
    ...devices.map((device) => `IPv4 forwarding is off for "${device}"`),
  ];
}

/**
 * Turns forwarding on where it is off. For IPv6 this makes the node ignore router advertisements on
 * interfaces whose `accept_ra` is 1, so it is written only where needed.
 * @throws {CniError} 102 naming the file
 */
export function turnOnForwarding(networks: readonly Routed[]): void {
  for (const family of familiesNotForwarded(networks)) {
    writeSysctl(forwardingPaths[family], "1", `forward IPv${family} packets`);
  }
  for (const device of devicesNotForwarding(networks))
    writeSysctl(devicePath(device), "1", `forward IPv4 packets from "${device}"`);
}
