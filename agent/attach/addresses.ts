import { resolve } from "node:path";
import {
  type Allocation,
  dataDirOf,
  type IpamConfig,
  ipamResult,
  type Lease,
  parseIpamConfig,
  readDns,
  takeOver,
  withholding,
} from "../../ipam/mod.ts";
import { ipamKind } from "../../shared/cni/ipam-kind.ts";
import { parseResult, requireAddress } from "../../shared/cni/result.ts";
import type { CniIp, CniResult, Owner } from "../../shared/cni/types.ts";
import { latestVersion } from "../../shared/cni/versions.ts";
import { CniCode, CniError } from "../../shared/errors.ts";
import { type Cidr, contains, gatewayIn, parseCidr } from "../../shared/net/ip.ts";
import type { Fields } from "../../shared/schema/json-fields.ts";
import type { AgentConfig, NetworkConfig } from "../config/agent-config.ts";
import { ipamSection } from "../config/network-sections.ts";
import { type AgentContext, reclaimStaleLease } from "../reconcile/mod.ts";
import { type CmdRequest, requestedDns } from "./cmd-request.ts";

/**
 * The key under which the plugin adds the result of another IPAM plugin to the configuration, in the shape of 1.1.0.
 */
const resultKey = "ipamResult";

/** The addresses of one ADD, and the leases behind them. */
export interface AddressClaim {
  readonly ipam: CniResult;
  /** Leases of our own store behind the addresses; none where another IPAM plugin keeps them. */
  readonly leases: readonly Lease[];
  /** Releases what this call allocated; nothing if the plugin brought the addresses. */
  undo(to: "releasing" | "cooling"): void;
}

/**
 * Gets the addresses of an ADD: new ones from the ranges of its configuration, those of another IPAM plugin, or, for a
 * client without either (antrea-cni), new ones from the network's subnets.
 * @throws {CniError} codes 6, 7 for an invalid result or configuration, 101 for an empty pool
 */
export async function claimAddresses(
  context: AgentContext,
  network: NetworkConfig,
  request: CmdRequest,
): Promise<AddressClaim> {
  const given = request.conf.object(resultKey);
  const own = request.conf.derive(ipamKind) === "own";
  if (given === undefined) return allocate(context, request, ipamConfigOf(context, network, request));
  if (own) throw request.conf.wrong(resultKey, given.raw, "no such key where the addresses are Pipette's own");
  const ipam = parseResult(given, latestVersion);
  requireAddress(ipam, resultKey);
  return { ipam: withRequestedDns(request, ipam), leases: [], undo: () => undefined };
}

async function allocate(context: AgentContext, request: CmdRequest, config: IpamConfig): Promise<AddressClaim> {
  const taking = takeOver(context.allocator, request.owner.network, (line) => context.logger.info(line), config);
  if (taking !== undefined) await taking;
  const dns = config.resolvConf === undefined ? {} : await readDns(config);
  const free = withholding(config, context.dataPath.addressesInUse(request.owner));
  const allocation = await allocateOrReclaim(context, request, free);
  return {
    ipam: withRequestedDns(request, ipamResult(config, allocation.leases, dns)),
    leases: allocation.leases,
    undo: (to) => context.allocator.undo(allocation, to),
  };
}

async function allocateOrReclaim(
  context: AgentContext,
  { owner, pod }: CmdRequest,
  config: IpamConfig,
): Promise<Allocation> {
  for (;;) {
    try {
      return context.allocator.allocate(owner, config, pod, true);
    } catch (caught) {
      // Each round reclaims the lease of one stale owner, so the loop ends. If liveness cannot be determined, none is
      // reclaimed.
      if (await reclaimStaleLease(context, owner.network, config).catch(() => false)) continue;
      context.meter?.add("pipette_ipam_allocation_failures_total", { reason: failureReason(caught, config) });
      throw caught;
    }
  }
}

/** Whether there was none, the one that was asked for could not be had, or the store did not work. */
function failureReason(caught: unknown, { requested }: IpamConfig): string {
  if (CniError.from(caught).code !== CniCode.ipamFailure) return "store";
  return requested.length > 0 ? "requested" : "exhausted";
}

/** DNS from the runtime or the configuration takes precedence over that of the IPAM result. */
const withRequestedDns = ({ conf }: CmdRequest, ipam: CniResult): CniResult => ({
  ...ipam,
  dns: conf.derive(requestedDns) ?? ipam.dns,
});

export const addressesReleased = (owner: Owner): CniError =>
  new CniError(
    CniCode.tryAgainLater,
    `Cannot wire "${owner.sandboxId}": its addresses were given up while the call waited`,
  );

/**
 * The addresses of the sandbox that a workload container joins: looked up in the store, so that a restart of the agent
 * makes no difference, or, where another IPAM plugin keeps them, read from the interface. Never makes a lease.
 * @throws {CniError} code 101 where the sandbox has none
 */
export async function sandboxAddresses(
  context: AgentContext,
  network: NetworkConfig,
  request: CmdRequest,
): Promise<AddressClaim> {
  const { owner, container } = request;
  const undo = (): void => undefined;
  const leases = context.allocator.find(owner);
  // A DEL of the sandbox is recorded but not finished.
  const hasLeft = context.allocator.releasing(owner).length > 0 || context.allocator.hasPendingDetach(owner);
  if (leases.length > 0 && !hasLeft) {
    const config = ipamConfigOf(context, network, request);
    const ipam = ipamResult(config, leases, await readDns(config));
    return { ipam: withRequestedDns(request, ipam), leases, undo };
  }
  const addresses = hasLeft ? [] : await context.dataPath.addresses(owner);
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

/** The first address of the network's subnet is its gateway. */
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

const ipamConfigOf = (context: AgentContext, network: NetworkConfig, request: CmdRequest): IpamConfig =>
  request.conf.derive(ipamKind) === "own"
    ? ownConfig(context, request)
    : agentIpamConfig(context.config, network, request);

/** The leases lie in this agent's store, whatever `dataDir` the request names, because the agent has to end them. */
function ownConfig(context: AgentContext, { conf, owner, version, args }: CmdRequest): IpamConfig {
  const dataDir = conf.derive(dataDirOf);
  const own = context.config.dataDir;
  if (dataDir !== own && resolve(dataDir) !== resolve(own))
    throw conf.wrong("ipam.dataDir", dataDir, `"${own}", where this agent keeps the leases`);
  return parseIpamConfig({ conf, network: owner.network, version, args });
}

/** For a request that brought no address: the network's own ranges, and what the request asks for (`ips`, `IP=`). */
function agentIpamConfig(config: AgentConfig, network: NetworkConfig, request: CmdRequest): IpamConfig {
  const conf = request.conf.derive(sectionOf(config, network));
  return parseIpamConfig({ conf, network: network.name, version: request.version, args: request.args });
}

/** By network, so that a configuration that came before finds what was made of it then. */
const sections = new WeakMap<NetworkConfig, (conf: Fields) => Fields>();

/** What gives a configuration the `ipam` section that stands for the network. */
function sectionOf(config: AgentConfig, network: NetworkConfig): (conf: Fields) => Fields {
  const known = sections.get(network);
  if (known !== undefined) return known;
  const ipam = ipamSection(config, network);
  const read = (conf: Fields): Fields => conf.at({ ...withoutKey(conf.raw, "ipam"), ipam }, conf.path);
  sections.set(network, read);
  return read;
}

/** Keys match in any case, so `IPAM` must go too. */
const withoutKey = (raw: Readonly<Record<string, unknown>>, key: string): Record<string, unknown> =>
  Object.fromEntries(Object.entries(raw).filter(([name]) => name.toLowerCase() !== key));
