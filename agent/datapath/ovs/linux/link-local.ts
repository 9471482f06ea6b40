import { readSysctl, writeSysctl } from "../../host/sysctl.ts";

/**
 * The kernel tries out an interface's link-local address for a second or two, and meanwhile drops what it forwards
 * there: by that address it asks for the MAC of the next hop. To be said before the interface goes up; a kernel without
 * IPv6 needs nothing.
 */
export function useOwnAddressAtOnce(interfaceName: string): void {
  const path = `/proc/sys/net/ipv6/conf/${interfaceName}/accept_dad`;
  if (readSysctl(path) === undefined) return;
  writeSysctl(path, "0", `let "${interfaceName}" use its link-local address at once`);
}
