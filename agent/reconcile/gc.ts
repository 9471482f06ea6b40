import type { Collected } from "../../ipam/service/mod.ts";
import { containerIdRule, networkNameRule, wrongContainerId, wrongNetworkName } from "../../shared/cni/names.ts";
import { ownerFields, ownerKey } from "../../shared/cni/owner-key.ts";
import type { Owner } from "../../shared/cni/types.ts";
import { CniCode, CniError } from "../../shared/errors.ts";
import { uptimeMs } from "../../shared/os/uptime.ts";
import type { GcRequest } from "../../shared/proto/pipette-messages.ts";
import { reasonOf } from "../../shared/reason.ts";
import { show } from "../../shared/schema/json-fields.ts";
import type { CallContext } from "../../shared/server/handlers.ts";
import type { AgentContext } from "./agent-context.ts";
import { finishPendingDetach, pendingDetaches } from "./pending-detach.ts";
import { keep, reconcileOwner } from "./reconcile-owner.ts";

/**
 * GC: removes attachments that the runtime does not list. Continues after a failure and reports it (specification
 * 1.1.0, "GC"); the janitor tries again.
 */
export async function collect(context: AgentContext, request: GcRequest, call: CallContext): Promise<Collected> {
  const { network } = request;
  const listed = listedIn(request);
  // After the caller has gone its list may be old, and newer attachments would be taken for leftovers.
  if (call.signal.aborted) throw new CniError(CniCode.tryAgainLater, "Cannot run GC: its caller has gone");
  const valid = request.valid.map(({ containerId, ifname }) => ({ containerId, ifname }));
  const lastAddAt = new Map(context.lastAddAt);
  const { startedUptimeMs: began = Number.POSITIVE_INFINITY } = call;
  context.allocator.retain(network, valid, "releasing", () => (uptimeMs() ?? began) - began);
  const cameSince = (owner: Owner): boolean => (context.lastAddAt.get(ownerKey(owner)) ?? 0) > began;
  const unlisted = (await context.dataPath.list())
    .filter(({ owner }) => owner.network === network && !listed.has(ownerKey(owner)) && !cameSince(owner))
    .map(({ owner }) => owner);
  const removed: Owner[] = [];
  const failures = new Map<string, string>();
  const attempt = async (owner: Owner, work: () => Promise<boolean>): Promise<void> => {
    try {
      if (await work()) removed.push(owner);
    } catch (caught) {
      const text = reasonOf(caught);
      failures.set(ownerKey(owner), `${owner.sandboxId} ${owner.ifname}: ${text}`);
      call.log.error("GC could not take an attachment away", { ...ownerFields(owner), error: text });
    }
  };
  for (const owner of unlisted)
    await attempt(owner, () =>
      removeUnclaimed(context, owner, {
        what: `GC of "${owner.sandboxId}"`,
        lastAddAt: lastAddAt.get(ownerKey(owner)),
      }),
    );
  const leaving = pendingDetaches(context, network).filter((owner) => !failures.has(ownerKey(owner)));
  for (const owner of leaving) await attempt(owner, () => finishPendingDetach(context, owner));
  return {
    removed: removed.map(({ sandboxId, ifname }) => ({ containerId: sandboxId, ifname })),
    failures: [...failures.values()],
  };
}

/** `ownerKey`s of the attachments that the runtime has. @throws {CniError} code 4 for invalid names */
function listedIn({ network, valid }: GcRequest): ReadonlySet<string> {
  if (wrongNetworkName(network) !== undefined) throw wrong("network", network, networkNameRule);
  const listed = new Set<string>();
  for (const { containerId, ifname } of valid) {
    if (wrongContainerId(containerId) !== undefined) throw wrong("container_id", containerId, containerIdRule);
    listed.add(ownerKey({ network, sandboxId: containerId, ifname }));
  }
  return listed;
}

const wrong = (name: string, value: string, wanted: string): CniError =>
  new CniError(CniCode.invalidEnvironment, `Cannot read the GC request: "${name}" is ${show(value)}, wanted ${wanted}`);

/**
 * Removes an interface without a lease that the runtime does not list, or whose lease has ended. Answers whether it
 * did.
 * @param lastAddAt its entry in `AgentContext.lastAddAt` when it was found: if an ADD has ended since, the interface is
 * a new one, also where another plugin keeps the address and no lease shows it
 */
export async function removeUnclaimed(
  context: AgentContext,
  owner: Owner,
  { what, lastAddAt }: { readonly what: string; readonly lastAddAt: number | undefined },
): Promise<boolean> {
  const done = await reconcileOwner(context, {
    owner,
    what,
    decide: (now) => (now.leases.length > 0 || now.lastAddAt !== lastAddAt ? keep : { t: "detach", first: "remember" }),
  });
  return done !== undefined;
}
