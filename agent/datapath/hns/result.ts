import type { CniInterface, CniResult, Owner } from "../../../shared/cni/types.ts";
import { CniCode, CniError } from "../../../shared/errors.ts";
import { formatCidr, formatIp } from "../../../shared/net/ip.ts";
import type { HcnEndpoint } from "../../protocols/hcn/mod.ts";

/** As CNI writes it: `00:15:5d:01:02:03`. */
const cniMac = (mac: string): string => mac.toLowerCase().replaceAll("-", ":");

/** The whole answer of an ADD: the host's end, then the sandbox's own; the addresses are on the second. */
export function resultOf(ipam: CniResult, endpoint: HcnEndpoint, owner: Owner, netns: string): CniResult {
  const mac = endpoint.mac === "" ? {} : { mac: cniMac(endpoint.mac) };
  const interfaces: CniInterface[] = [
    { name: endpoint.name, ...mac },
    { name: owner.ifname, ...mac, sandbox: netns },
  ];
  const ips = ipam.ips.map((ip) => ({ ...ip, interface: 1 }));
  return { interfaces, ips, routes: ipam.routes, dns: ipam.dns };
}

/**
 * Compares an endpoint with `prevResult`.
 * @param namespace where it must be; absent: nowhere in particular
 * @throws {CniError} code 103 naming the first difference
 */
export function compare(
  endpoint: HcnEndpoint | undefined,
  owner: Owner,
  namespace: string | undefined,
  prevResult: CniResult,
): void {
  if (endpoint === undefined) throw differs(`the endpoint of "${owner.ifname}"`, "missing in HNS", "there");
  if (namespace !== undefined && endpoint.namespaceId !== namespace)
    throw differs(`the endpoint "${endpoint.name}"`, `in namespace "${endpoint.namespaceId}"`, `in "${namespace}"`);
  const own = prevResult.interfaces.findIndex(({ name, sandbox }) => sandbox !== undefined && name === owner.ifname);
  const mac = prevResult.interfaces[own]?.mac;
  if (mac !== undefined && endpoint.mac !== "" && mac !== cniMac(endpoint.mac))
    throw differs(`the hardware address of "${endpoint.name}"`, `"${cniMac(endpoint.mac)}"`, `"${mac}"`);
  const has = endpoint.addresses.map(({ address }) => address);
  // Addresses of other interfaces are not checked here.
  const ours = prevResult.ips.filter((ip) => ip.interface === undefined || own < 0 || ip.interface === own);
  for (const { address } of ours) {
    if (has.includes(formatIp(address.ip))) continue;
    throw differs(`the endpoint "${endpoint.name}"`, `on "${has.join(", ")}"`, `"${formatCidr(address)}"`);
  }
}

const differs = (what: string, is: string, wanted: string): CniError =>
  new CniError(CniCode.checkFailure, `Cannot confirm the attachment: ${what} is ${is}, wanted ${wanted}`);
