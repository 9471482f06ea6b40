import { readFileSync, writeFileSync } from "node:fs";
import { CniCode, CniError } from "../../../shared/errors.ts";
import type { Cidr } from "../../../shared/net/ip.ts";
import { reasonOf } from "../../../shared/reason.ts";
import { sysctlPath } from "../../protocols/netlink/mod.ts";

/** Of `/proc/sys`, in this process's network namespace. */
export function readSysctl(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8").trim();
  } catch {
    // Without the file the kernel lacks the family; the write says so to whoever needs it.
    return undefined;
  }
}

/** @throws {CniError} 102 naming the file */
export function writeSysctl(path: string, value: string, action: string): void {
  try {
    writeFileSync(sysctlPath(path), value);
  } catch (cause) {
    const code = cause instanceof Error && "code" in cause ? String(cause.code) : reasonOf(cause);
    throw new CniError(
      CniCode.interfaceFailure,
      `Cannot ${action}: "${path}" is "${readSysctl(path) ?? "missing"}" and cannot be written (${code}), wanted "${value}"`,
      { cause },
    );
  }
}

/** By which an interface believes those who pass for routers on its link. */
const routerSwitches = (ifname: string): readonly string[] => [
  `/proc/sys/net/ipv6/conf/${ifname}/accept_ra`,
  `/proc/sys/net/ipv6/conf/${ifname}/accept_redirects`,
  `/proc/sys/net/ipv4/conf/${ifname}/accept_redirects`,
];

const isOff = (path: string): boolean => [undefined, "0"].includes(readSysctl(path));

/**
 * Has an interface of the node take no addresses and no routes from who is behind it; to be said before it is up. What
 * cannot be written, as with a read-only /proc/sys, `routersAccepted` tells: pods' ports let no such message in all the same.
 */
export function ignoreRouters(ifname: string): void {
  for (const path of routerSwitches(ifname)) if (!isOff(path)) writeIfPossible(path, "0");
}

/** What an interface believes of routers on its link although it should not, in sentences. */
export const routersAccepted = (ifname: string): readonly string[] =>
  routerSwitches(ifname).flatMap((path) =>
    isOff(path) ? [] : [`"${ifname}" believes routers on its link: "${path}" is "${readSysctl(path)}", wanted "0"`],
  );

/** The node's end of a pair has no address and speaks to nobody; that IPv4 is deaf there is said with its other options. */
export function isolateHostEnd(ifname: string): void {
  writeIfPossible(`/proc/sys/net/ipv6/conf/${ifname}/disable_ipv6`, "1");
}

/**
 * The kernel tries out an interface's link-local address for a second or two, and meanwhile drops what it forwards
 * there: by that address it asks for the MAC of the next hop. To be said before the interface goes up. Where it cannot
 * be written, the first packets of IPv6 are lost.
 */
export function skipAddressDetection(ifname: string): void {
  const path = `/proc/sys/net/ipv6/conf/${ifname}/accept_dad`;
  if (!isOff(path)) writeIfPossible(path, "0");
}

function writeIfPossible(path: string, value: string): void {
  try {
    writeFileSync(sysctlPath(path), value);
  } catch {
    // Read-only, or a kernel without the family.
  }
}

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
const devicesNotForwarding = (networks: readonly Routed[]): readonly string[] =>
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
