import { type Allocator, isNameless, parseIpamConfig } from "../../ipam/mod.ts";
import { ownerFields, ownerKey } from "../../shared/cni/owner-key.ts";
import { latestVersion } from "../../shared/cni/versions.ts";
import { type Cidr, formatCidr } from "../../shared/net/ip.ts";
import { reasonOf } from "../../shared/reason.ts";
import { Fields } from "../../shared/schema/json-fields.ts";
import type { NetworkConfig } from "../config/agent-config.ts";
import { ipamSection } from "../config/network-sections.ts";
import type { Attached } from "../datapath/datapath.ts";
import type { AgentContext } from "./agent-context.ts";
import type { ReconcilePlan } from "./reconcile-plan.ts";

type Parts = Pick<AgentContext, "allocator" | "lastAddAt" | "config" | "dataPath" | "logger">;

/** `false` where leases of the network, or the names of those who hold them, may have been lost with a damaged database. */
export const knowsEveryOwner = (allocator: Pick<Allocator, "isComplete" | "list">, network: string): boolean =>
  allocator.isComplete(network) && !allocator.list(network).some(({ owner }) => isNameless(owner));

/**
 * Gives interfaces that stand the leases back that were lost. Where the database was damaged this goes over all
 * interfaces of a network, as a part of a pod's leases may be lost or nameless, and the network gives out addresses
 * again once each of them is accounted for.
 */
export async function restoreLost(context: Parts, plan: ReconcilePlan): Promise<void> {
  const standing = new Set([...plan.adopt, ...plan.restore].map(({ owner }) => ownerKey(owner)));
  for (const network of context.config.networks) {
    const isOurs = ({ owner, ownLease }: Attached): boolean => ownLease && owner.network === network.name;
    const lost = plan.restore.filter(isOurs);
    const incomplete = !context.allocator.isComplete(network.name);
    const work = knowsEveryOwner(context.allocator, network.name) ? lost : [...plan.adopt.filter(isOurs), ...lost];
    let sure = true;
    for (const attached of work) sure = (await restoreLeases(context, network, attached, standing)) && sure;
    if (!incomplete) continue;
    if (sure) context.allocator.declareComplete(network.name);
    const fields = { network: network.name, interfaces: work.length };
    if (sure) context.logger.info("every interface has its lease again after the database was damaged", fields);
    else
      context.logger.error("addresses are given to no new pod: not every interface could be given its lease", fields);
  }
}

/** Whether every address of the interface has its lease now. */
export async function restoreLeases(
  context: Parts,
  network: NetworkConfig,
  { owner }: Attached,
  standing: ReadonlySet<string>,
): Promise<boolean> {
  const { allocator, config, logger } = context;
  const addresses = await addressesOf(context, owner);
  if (addresses.length === 0) {
    logger.error("an interface of ours stands without a lease and shows no address; it is kept", ownerFields(owner));
    return false;
  }
  const conf = new Fields({ ipam: ipamSection(config, network) });
  const { rangeSets } = parseIpamConfig({ conf, network: network.name, version: latestVersion, args: "" });
  const isStanding = (other: Attached["owner"]): boolean => standing.has(ownerKey(other));
  const { leases, clashes } = allocator.restore({ owner, addresses }, rangeSets, isStanding);
  for (const { address } of leases)
    logger.warn("an interface of ours stood without its lease, which is made anew", {
      ...ownerFields(owner),
      address: formatCidr(address),
    });
  for (const clash of clashes)
    logger.error("two interfaces of ours have one address; both are kept", {
      ...ownerFields(owner),
      address: formatCidr(clash.address),
      holder: clash.owner.sandboxId,
    });
  allocator.noteWired([owner]);
  if (clashes.length === 0) context.lastAddAt.set(ownerKey(owner), 0);
  return clashes.length === 0;
}

async function addressesOf({ dataPath, logger }: Parts, owner: Attached["owner"]): Promise<readonly Cidr[]> {
  try {
    return await dataPath.addresses(owner);
  } catch (caught) {
    logger.error("the addresses of an interface cannot be read", { ...ownerFields(owner), error: reasonOf(caught) });
    return [];
  }
}
