import { type IpamConfig, ipamResult } from "../../ipam/mod.ts";
import { ipamKind } from "../../shared/cni/ipam-kind.ts";
import { sameOwner } from "../../shared/cni/owner-key.ts";
import type { CniIp } from "../../shared/cni/types.ts";
import { CniCode, CniError } from "../../shared/errors.ts";
import { type Cidr, contains, gatewayIn, parseCidr } from "../../shared/net/ip.ts";
import type { NetworkConfig } from "../config/agent-config.ts";
import type { AgentParts } from "../reconcile/agent-parts.ts";
import { type AddressClaim, ownConfig, withRequestedDns } from "./address-claim.ts";
import type { CmdRequest } from "./cmd-request.ts";
import { agentIpamConfig } from "./network.ts";

/**
 * The addresses of the sandbox that a workload container joins: looked up in the store, so that a restart of the agent
 * makes no difference, or, where another IPAM plugin keeps them, read from the interface. Never makes a lease.
 * @throws {CniError} code 101 where the sandbox has none
 */
export async function sandboxAddresses(
  parts: AgentParts,
  network: NetworkConfig,
  request: CmdRequest,
): Promise<AddressClaim> {
  const { owner, container } = request;
  const undo = (): void => undefined;
  const leases = parts.allocator.find(owner);
  // A DEL of the sandbox came and is still to be carried out.
  const hasLeft =
    parts.allocator.releasing(owner).length > 0 ||
    parts.allocator.pendingDetaches().some((departed) => sameOwner(departed, owner));
  if (leases.length > 0 && !hasLeft) {
    const ipam = await ipamResult(configOf(parts, network, request), leases);
    return { ipam: withRequestedDns(request, ipam), leases, undo };
  }
  const addresses = hasLeft ? [] : await parts.dataPath.addresses(owner);
  if (addresses.length === 0) {
    throw new CniError(
      CniCode.ipamFailure,
      `Cannot join container "${container.id}" to sandbox "${owner.sandboxId}": that has no address in network "${owner.network}", wanted its own ADD before`,
    );
  }
  const ips = addresses.map((address): CniIp => withGateway(network, address));
  return {
    ipam: withRequestedDns(request, { interfaces: [], ips, routes: defaultRoutes(ips), dns: {} }),
    leases: [],
    undo,
  };
}

const configOf = (parts: AgentParts, network: NetworkConfig, request: CmdRequest): IpamConfig =>
  ipamKind(request.conf) === "own" ? ownConfig(parts, request) : agentIpamConfig(parts.config, network, request);

function withGateway(network: NetworkConfig, address: Cidr): CniIp {
  const subnet = network.subnets.find((candidate) => contains(candidate, address.ip));
  return subnet === undefined ? { address } : { address, gateway: gatewayIn(subnet) };
}

function defaultRoutes(ips: readonly CniIp[]): { dst: Cidr }[] {
  const families = new Set(ips.filter(({ gateway }) => gateway !== undefined).map(({ address }) => address.ip.family));
  return [...families].flatMap((family) => {
    const dst = parseCidr(family === 4 ? "0.0.0.0/0" : "::/0");
    return dst === undefined ? [] : [{ dst }];
  });
}
