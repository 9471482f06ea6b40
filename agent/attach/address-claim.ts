import { resolve } from "node:path";
import {
  type Allocation,
  dataDirOf,
  type IpamConfig,
  ipamResult,
  type Lease,
  parseIpamConfig,
  takeOver,
  withholding,
} from "../../ipam/mod.ts";
import { ipamKind } from "../../shared/cni/ipam-kind.ts";
import { parseResult, requireAddress } from "../../shared/cni/result.ts";
import type { CniResult, Owner } from "../../shared/cni/types.ts";
import { latestVersion } from "../../shared/cni/versions.ts";
import { CniCode, CniError } from "../../shared/errors.ts";
import type { NetworkConfig } from "../config/agent-config.ts";
import type { AgentParts } from "../reconcile/agent-parts.ts";
import { makeSuspectsGiveWay } from "../reconcile/suspects.ts";
import type { CmdRequest } from "./cmd-request.ts";
import { agentIpamConfig, requestedDns } from "./network.ts";

/** The key that the plugin adds to the configuration where another IPAM plugin gave the addresses: its result, in the shape of 1.1.0. */
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
 * Finds out which addresses an ADD is about: new ones from the ranges of its configuration, those that another IPAM
 * plugin gave, or, for a client that knows of neither (antrea-cni), new ones from the network's subnets.
 * @throws {CniError} codes 6, 7 for a result or a configuration that will not do, 101 for an empty pool
 */
export async function claimAddresses(
  parts: AgentParts,
  network: NetworkConfig,
  request: CmdRequest,
): Promise<AddressClaim> {
  const given = request.conf.object(resultKey);
  const own = ipamKind(request.conf) === "own";
  if (given === undefined)
    return allocate(parts, request, own ? ownConfig(parts, request) : agentIpamConfig(parts.config, network, request));
  if (own) throw request.conf.wrong(resultKey, given.raw, "no such key where the addresses are Pipette's own");
  const ipam = parseResult(given, latestVersion);
  requireAddress(ipam, resultKey);
  return { ipam: withRequestedDns(request, ipam), leases: [], undo: () => undefined };
}

async function allocate(parts: AgentParts, request: CmdRequest, config: IpamConfig): Promise<AddressClaim> {
  await takeOver(parts.allocator, request.owner.network, (line) => parts.logger.info(line), config);
  const free = withholding(config, parts.dataPath.held(request.owner));
  const allocation = await allocateOrReclaim(parts, request, free);
  return {
    ipam: withRequestedDns(request, await ipamResult(config, allocation.leases)),
    leases: allocation.leases,
    undo: (to) => parts.allocator.undo(allocation, to),
  };
}

async function allocateOrReclaim(
  parts: AgentParts,
  { owner, pod }: CmdRequest,
  config: IpamConfig,
): Promise<Allocation> {
  for (;;) {
    try {
      return parts.allocator.allocate(owner, config, pod, true);
    } catch (caught) {
      // Each time one owner gives way, so that this ends. Where nobody can be asked, nobody does.
      if (!(await makeSuspectsGiveWay(parts, owner.network, config).catch(() => false))) throw caught;
    }
  }
}

/** What the runtime or the configuration say counts more than what came with the addresses. */
export const withRequestedDns = ({ conf }: CmdRequest, ipam: CniResult): CniResult => ({
  ...ipam,
  dns: requestedDns(conf) ?? ipam.dns,
});

/** The leases lie in this agent's store, since only it can say when an address is free again. */
export function ownConfig(parts: AgentParts, { conf, owner, version, args }: CmdRequest): IpamConfig {
  const dataDir = dataDirOf(conf);
  if (resolve(dataDir) !== resolve(parts.config.dataDir))
    throw conf.wrong("ipam.dataDir", dataDir, `"${parts.config.dataDir}", where this agent keeps the leases`);
  return parseIpamConfig({ conf, network: owner.network, version, args });
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
