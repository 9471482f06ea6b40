import { resolve } from "node:path";
import { dataDirOf, ipamResult, type Lease, ownsIpam } from "../../ipam/mod.ts";
import { parseResult, requireAddress } from "../../shared/cni/result.ts";
import type { CniResult, Owner } from "../../shared/cni/types.ts";
import { latestVersion } from "../../shared/cni/versions.ts";
import { CniCode, CniError } from "../../shared/errors.ts";
import { sameIp } from "../../shared/ip.ts";
import type { Fields } from "../../shared/json-fields.ts";
import type { AgentParts } from "../agent-parts.ts";
import type { NetworkConfig } from "../config/agent-config.ts";
import type { CmdRequest } from "./cmd-request.ts";
import { agentIpamConfig, requestedDns } from "./network.ts";

/** The key that the plugin adds to the configuration: the IPAM result, in the shape of 1.1.0. */
const resultKey = "ipamResult";

/** The addresses of one ADD, and who keeps them. */
export interface AddressClaim {
  readonly ipam: CniResult;
  /** Leases of our own store behind the addresses; none where another IPAM plugin keeps them. */
  readonly leases: readonly Lease[];
  /** Gives back what this call took itself; nothing where the plugin came with the addresses. */
  undo(to: "releasing" | "cooling"): void;
}

/**
 * Finds out which addresses an ADD is about: those that the plugin brought along, or, for a client
 * that knows of none (antrea-cni), new ones from the network's subnets.
 * @throws {CniError} codes 6, 7 for a result that cannot be read, 11 where the plugin gave up meanwhile, 101 for an empty pool
 */
export async function claimAddresses(
  parts: AgentParts,
  network: NetworkConfig,
  request: CmdRequest,
): Promise<AddressClaim> {
  const given = request.conf.object(resultKey);
  return given === undefined ? allocate(parts, network, request) : broughtAlong(parts, request, given);
}

function broughtAlong(parts: AgentParts, request: CmdRequest, given: Fields): AddressClaim {
  const ipam = parseResult(given, latestVersion);
  requireAddress(ipam, resultKey);
  const held = parts.allocator.find(request.owner);
  const leases = held.filter((lease) => ipam.ips.some((entry) => sameIp(entry.address.ip, lease.address.ip)));
  const ours = leases.length > 0 && leases.length === ipam.ips.length;
  // A request that waited in a frozen agent: its plugin has given the addresses up since.
  if (!ours && keepsLeasesHere(parts, request.conf)) throw givenUp(request.owner);
  return { ipam, leases: ours ? leases : [], undo: () => undefined };
}

async function allocate(parts: AgentParts, network: NetworkConfig, request: CmdRequest): Promise<AddressClaim> {
  const config = agentIpamConfig(parts.config, network, request);
  const allocation = parts.allocator.allocate(request.owner, config, request.pod);
  const ipam = await ipamResult(config, allocation.leases);
  return {
    ipam: { ...ipam, dns: requestedDns(request.conf) ?? ipam.dns },
    leases: allocation.leases,
    undo: (to) => parts.allocator.undo(allocation, to),
  };
}

/** Whether the request's plugin allocates in the very store that this agent has open. */
export function keepsLeasesHere(parts: AgentParts, conf: Fields): boolean {
  return ownsIpam(conf) === "own" && resolve(dataDirOf(conf)) === resolve(parts.config.dataDir);
}

/** `false` where a lease of the claim was given up, or is another one by now. */
export function stillClaimed(parts: AgentParts, owner: Owner, claim: AddressClaim): boolean {
  const now = parts.allocator.find(owner);
  return claim.leases.every((lease) => now.some((current) => current.generation === lease.generation));
}

export const givenUp = (owner: Owner): CniError =>
  new CniError(
    CniCode.tryAgainLater,
    `Cannot wire "${owner.sandboxId}": its addresses were given up while the call waited, wanted them allocated`,
  );
