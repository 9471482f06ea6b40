import type { CniInterface, CniResult, Owner } from "../../../shared/cni/types.ts";
import { CniCode, CniError } from "../../../shared/errors.ts";
import { type Cidr, contains, type Ip } from "../../../shared/net/ip.ts";
import { interfaceMac, parseMac } from "../../../shared/net/mac.ts";
import type { AttachRequest } from "../datapath.ts";
import { hostIfname } from "../owner-names.ts";
import { formatAlias, ownerNames } from "./names.ts";

/** The part of a network's configuration that pods' veth pairs need. */
export interface PodNetwork {
  /** `name` of the network configuration. */
  readonly name: string;
  /** One block per family at most; the first address of each is the gateway. */
  readonly subnets: readonly Cidr[];
  /** Bytes, of pods whose request names none; 1500 when absent. */
  readonly mtu?: number;
}

/** The kernel's own for Ethernet; also what most underlays carry. */
export const defaultMtu = 1500;

/** Everything that one attachment should be, decided before anything is changed. */
export interface Plan {
  readonly owner: Owner;
  readonly network: PodNetwork;
  readonly hostIfname: string;
  readonly hostMac: Uint8Array;
  readonly podMac: Uint8Array;
  /** Whether the MAC was requested: then it replaces an existing one; a derived one does not. */
  readonly macRequested: boolean;
  readonly mtu: number;
  readonly alias: string;
  readonly altName: string;
  readonly ipam: CniResult;
  readonly request: AttachRequest;
}

/** @throws {CniError} code 7 where the MAC will not do */
export function planOf(network: PodNetwork, request: AttachRequest): Plan {
  const { owner, pod, ipam, ownLease } = request;
  const { altName, hostMac, podMac } = ownerNames(owner);
  return {
    owner,
    network,
    hostIfname: hostIfname(owner, pod),
    hostMac,
    podMac: request.mac === undefined ? podMac : requestedMac(request.mac),
    macRequested: request.mac !== undefined,
    mtu: request.mtu ?? network.mtu ?? defaultMtu,
    alias: formatAlias({ owner, ownLease }),
    altName,
    ipam,
    request,
  };
}

function requestedMac(text: string): Uint8Array {
  const mac = parseMac(interfaceMac(text) ?? "");
  if (mac !== undefined) return mac;
  throw new CniError(
    CniCode.invalidConfig,
    `Cannot use the hardware address "${text}": it is not one of a single interface, wanted six bytes such as "02:00:5e:10:00:01"`,
  );
}

/** Addresses that belong to this network by their block. */
export function isOfNetwork(network: PodNetwork, ip: Ip): boolean {
  return network.subnets.some((subnet) => contains(subnet, ip));
}

/** The whole answer of an ADD: bridge, the host's end, the sandbox's own; the addresses are on the third. */
export function resultOf(
  ipam: CniResult,
  bridge: CniInterface,
  host: CniInterface,
  pod: CniInterface & { readonly sandbox: string },
): CniResult {
  const interfaces = [bridge, host, pod];
  return {
    interfaces,
    ips: ipam.ips.map((ip) => ({ ...ip, interface: interfaces.indexOf(pod) })),
    routes: ipam.routes,
    dns: ipam.dns,
  };
}
