import { ownerKey, sameOwner } from "../../shared/cni/owner-key.ts";
import type { Owner } from "../../shared/cni/types.ts";
import type { AgentContext } from "./agent-context.ts";
import { abandonedAmong, interfaceProbe, type LivenessProbe } from "./liveness-probes.ts";
import { finishPendingDetach } from "./pending-detach.ts";
import { type Decision, keep, type OwnerRecord, reconcileOwner } from "./reconcile-owner.ts";
import { planReconcile } from "./reconcile-plan.ts";

export interface RepairOptions {
  /** The runtime no longer has this pod: its lease of this generation is ended, and its interface removed. */
  readonly goneGeneration?: number;
  /** Asked, beside the interfaces, before a lease without an interface is released. */
  readonly livenessProbes: readonly LivenessProbe[];
}

/** The decision for an attachment, with a text for people. */
type Repair = Decision & { readonly done: string };

const nothing: Repair = { ...keep, done: "" };

/**
 * Makes lease, interface and related parts of one owner agree, while the agent serves. A disagreement that existed only
 * because of a running call is gone when the call has ended.
 * @returns what was done, for people; `undefined` where nothing was to be done
 * @throws {CniError} as the owner's mutex and the data path do
 */
export async function repairOwner(
  context: AgentContext,
  owner: Owner,
  options: RepairOptions,
): Promise<string | undefined> {
  if (await finishPendingDetach(context, owner)) return "finished what its DEL left";
  const what = `repairing "${owner.sandboxId}"`;
  const { goneGeneration } = options;
  const repair = await reconcileOwner<Repair>(context, {
    owner,
    what,
    decide: (now) =>
      goneGeneration === undefined ? repairOf(context, owner, options.livenessProbes) : ending(now, goneGeneration),
  });
  return repair?.done;
}

function ending({ leases }: OwnerRecord, goneGeneration: number): Repair {
  // Given out anew since: then somebody wants it.
  if (leases.length > 0 && !leases.some(({ generation }) => generation === goneGeneration)) return nothing;
  return { t: "detach", first: "release", done: "took its interface away, and let its addresses cool" };
}

async function repairOf(
  { allocator, config, dataPath }: AgentContext,
  owner: Owner,
  livenessProbes: readonly LivenessProbe[],
): Promise<Repair> {
  const interfaces = await dataPath.list();
  const own = interfaces.filter((attached) => sameOwner(attached.owner, owner));
  const plan = planReconcile({
    leases: allocator.list(owner.network).filter((lease) => sameOwner(lease.owner, owner)),
    interfaces: own,
    pendingDetaches: [],
    networks: config.networks.map((network) => network.name),
    bootId: allocator.bootId,
  });
  const network = config.networks.find(({ name }) => name === owner.network);
  const [attached] = plan.restore;
  if (attached !== undefined && network !== undefined) {
    const standing = new Set(interfaces.map((each) => ownerKey(each.owner)));
    return { t: "restore", attached, network, standing, done: "gave its interface a lease again" };
  }
  if (plan.orphans.length > 0) return { t: "detach", done: "took its interface away, whose lease had ended" };
  if (own.length > 0) return nothing;
  const bare = [...plan.missing, ...plan.stale];
  // Also where nothing is held: a port of the switch can outlive the interface behind it.
  if (bare.length === 0) return { t: "detach", done: "took away what was left of its port" };
  const abandoned = await abandonedAmong(bare, [interfaceProbe(dataPath), ...livenessProbes]);
  return abandoned.length === 0 ? nothing : { t: "detach", first: "release", done: "let its addresses cool" };
}
