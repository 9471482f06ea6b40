import { readFileSync, writeFileSync } from "node:fs";
import { CniCode, CniError } from "../../../shared/errors.ts";
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
 * cannot be written, as with a read-only /proc/sys, `routersHeard` tells: pods' ports let no such message in all the same.
 */
export function hearNoRouters(ifname: string): void {
  for (const path of routerSwitches(ifname)) if (!isOff(path)) attempt(path, "0");
}

/** What an interface believes of routers on its link although it should not, in sentences. */
export const routersHeard = (ifname: string): readonly string[] =>
  routerSwitches(ifname).flatMap((path) =>
    isOff(path) ? [] : [`"${ifname}" believes routers on its link: "${path}" is "${readSysctl(path)}", wanted "0"`],
  );

/** The same for the node's end of a pair, which has no address and speaks to nobody. */
export function hearNobody(ifname: string): void {
  attempt(`/proc/sys/net/ipv6/conf/${ifname}/disable_ipv6`, "1");
  attempt(`/proc/sys/net/ipv4/conf/${ifname}/accept_redirects`, "0");
}

/**
 * The kernel tries out an interface's link-local address for a second or two, and meanwhile drops what it forwards
 * there: by that address it asks for the MAC of the next hop. To be said before the interface goes up. Where it cannot
 * be written, the first packets of IPv6 are lost.
 */
export function useOwnAddressAtOnce(ifname: string): void {
  const path = `/proc/sys/net/ipv6/conf/${ifname}/accept_dad`;
  if (!isOff(path)) attempt(path, "0");
}

function attempt(path: string, value: string): void {
  try {
    writeFileSync(sysctlPath(path), value);
  } catch {
    // Read-only, or a kernel without the family.
  }
}
