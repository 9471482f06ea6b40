import { readFileSync, writeFileSync } from "node:fs";
import { CniCode, CniError } from "../../../shared/errors.ts";
import type { Cidr } from "../../../shared/net/ip.ts";
import { reasonOf } from "../../../shared/reason.ts";
import { type Kernel, NetlinkError, sysctlPath } from "../../protocols/netlink/mod.ts";

/** Reads a file of `/proc/sys`, in this process's network namespace. */
export function readSysctl(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8").trim();
  } catch {
    // Without the file the kernel lacks the address family, which writing will report.
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

/** The settings by which an interface accepts router advertisements and redirects. */
const routerSwitches = (ifname: string): readonly string[] => [
  `/proc/sys/net/ipv6/conf/${ifname}/accept_ra`,
  `/proc/sys/net/ipv6/conf/${ifname}/accept_redirects`,
  `/proc/sys/net/ipv4/conf/${ifname}/accept_redirects`,
];

const isOff = (path: string): boolean => [undefined, "0"].includes(readSysctl(path));

/**
 * Makes an interface of the node ignore router messages from pods; to be called before it is up. If that cannot be
 * written, as with a read-only /proc/sys, `routersAccepted` reports it; pods' ports drop such messages anyway.
 */
export function ignoreRouters(ifname: string): void {
  for (const path of routerSwitches(ifname)) if (!isOff(path)) writeIfPossible(path, "0");
}

/** The settings by which an interface still accepts router messages, in sentences. */
export const routersAccepted = (ifname: string): readonly string[] =>
  routerSwitches(ifname).flatMap((path) =>
    isOff(path) ? [] : [`"${ifname}" believes routers on its link: "${path}" is "${readSysctl(path)}", wanted "0"`],
  );

/** Turns IPv6 off on the node's end of a pair, which has no address. Its IPv4 options are set by netlink. */
export function isolateHostEnd(kernel: Kernel, ifname: string): void {
  try {
    kernel.writeSysctl(`/proc/sys/net/ipv6/conf/${ifname}/disable_ipv6`, "1");
  } catch (caught) {
    // Read-only, or a kernel without the family.
    if (!(caught instanceof NetlinkError)) throw caught;
  }
}

/**
 * Turns duplicate address detection off: it takes a second or two, in which the kernel drops forwarded IPv6 packets
 * because it needs the link-local address for neighbour solicitations. To be called before the interface is up. If it
 * cannot be written, the first IPv6 packets are lost.
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

/** Interfaces for which forwarding is off although it is on for the node. */
const devicesNotForwarding = (networks: readonly Routed[]): readonly string[] =>
  networks.flatMap(({ subnets, device }) =>
    device !== undefined && subnets.some(({ ip }) => ip.family === 4) && readSysctl(devicePath(device)) === "0"
      ? [device]
      : [],
  );

const devicePath = (device: string): string => `/proc/sys/net/ipv4/conf/${device}/forwarding`;

/** Which forwarding settings are off, in sentences. */
export function forwardingProblems(networks: readonly Routed[]): readonly string[] {
  const families = familiesNotForwarded(networks);
  // If it is off for the node, single interfaces need no mention.
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
