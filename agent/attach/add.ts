import { ownerFields, ownerKey } from "../../shared/cni/owner-key.ts";
import { encodeResult } from "../../shared/cni/result.ts";
import type { CniResult, Owner } from "../../shared/cni/types.ts";
import { CniCode, CniError } from "../../shared/errors.ts";
import { limits } from "../../shared/limits.ts";
import { uptimeMs } from "../../shared/os/uptime.ts";
import { reasonOf } from "../../shared/reason.ts";
import type { CallContext } from "../../shared/server/handlers.ts";
import { requireNetwork } from "../config/network-sections.ts";
import { CallPhases } from "../metrics/call-phases.ts";
import type { AgentContext } from "../reconcile/mod.ts";
import { type AddressClaim, addressesReleased, claimAddresses, sandboxAddresses } from "./addresses.ts";
import { type CmdRequest, requestedMac } from "./cmd-request.ts";
import { portMappingsOf } from "./port-mappings.ts";

/**
 * ADD: the addresses, then the wiring, while the owner is locked. The same call again gives the same answer. A failing
 * call undoes its own changes before it answers; what existed before stays.
 *
 * A workload container allocates nothing: it joins the network of its sandbox.
 */
export async function runAdd(
  context: AgentContext,
  request: CmdRequest,
  call: CallContext,
  phases: Pick<CallPhases, "enter"> = new CallPhases(),
): Promise<string> {
  const { owner, container } = request;
  const joins = container.kind.t === "workload";
  const network = requireNetwork(context.config, owner.network);
  const mac = requestedMac(request);
  const mtu = request.conf.integer("mtu", limits.smallestMtu, limits.largestMtu);
  // Only HNS maps ports itself; elsewhere another plugin, later in the chain, does.
  const portMappings = context.config.dataPath === "hns" ? portMappingsOf(request.conf) : undefined;
  const what = { what: `ADD of "${owner.sandboxId}"`, signal: call.signal, timeoutMs: context.config.callTimeoutMs };
  const key = ownerKey(owner);
  return context.mutex.run(key, what, async () => {
    phases.enter("ipam");
    if (hasCallerGone(call)) throw callerGone(owner);
    // A rollback must not remove the interface of the sandbox that a workload container joins.
    const stood = joins || context.lastAddAt.has(key);
    if (!joins && context.allocator.hasPendingDetach(owner)) await detachEarlier(context, owner);
    const claim = await (joins ? sandboxAddresses : claimAddresses)(context, network, request);
    phases.enter("interface");
    let result: CniResult;
    try {
      result = await context.dataPath.attach({
        owner,
        container,
        pod: request.pod,
        ipam: claim.ipam,
        ownLease: claim.leases.length > 0,
        portMappings,
        mtu,
        mac,
        phases,
      });
    } catch (caught) {
      await rollback(context, request, claim, call, stood);
      throw caught;
    }
    if (!context.allocator.holds(claim.leases)) {
      // The addresses were released meanwhile, which waits for the interface to be removed, whether it existed before
      // this call or not.
      await rollback(context, request, claim, call, false);
      throw addressesReleased(owner);
    }
    if (hasCallerGone(call) && !stood) {
      await rollback(context, request, claim, call, false);
      throw callerGone(owner);
    }
    // Only an ADD of the sandbox, and not of a workload container, overtakes its DEL.
    context.lastAddAt.set(key, joins ? (context.lastAddAt.get(key) ?? 0) : (call.startedUptimeMs ?? 0));
    context.pendingCleanup.delete(key);
    return encodeResult(result, request.version);
  });
}

const hasCallerGone = ({ signal, untilUptimeMs = Number.POSITIVE_INFINITY }: CallContext): boolean =>
  signal.aborted || (uptimeMs() ?? 0) > untilUptimeMs;

const callerGone = ({ sandboxId }: Owner): CniError =>
  new CniError(CniCode.tryAgainLater, `Cannot finish ADD of "${sandboxId}": its caller has gone`);

/**
 * If a DEL did not reach this agent and the same sandbox is added again (podman does so), the old interface is removed
 * first.
 */
async function detachEarlier(context: AgentContext, owner: Owner): Promise<void> {
  await context.dataPath.detach(owner);
  context.lastAddAt.delete(ownerKey(owner));
  context.allocator.forgetPendingDetach(owner);
}

/** Undoes this call's changes. What cannot be undone now is recorded for the janitor. */
async function rollback(
  context: AgentContext,
  { owner }: CmdRequest,
  claim: AddressClaim,
  call: CallContext,
  stood: boolean,
): Promise<void> {
  let clean = true;
  if (!stood) {
    try {
      await context.dataPath.detach(owner);
      context.lastAddAt.delete(ownerKey(owner));
      context.pendingCleanup.delete(ownerKey(owner));
    } catch (caught) {
      clean = false;
      context.pendingCleanup.set(ownerKey(owner), owner);
      call.log.error("a failed ADD could not be undone, the janitor goes on with it", {
        ...ownerFields(owner),
        error: reasonOf(caught),
      });
    }
  }
  claim.undo(clean ? "cooling" : "releasing");
}
