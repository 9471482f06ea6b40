import { ownerFields, ownerKey } from "../../shared/cni/owner-key.ts";
import type { Owner } from "../../shared/cni/types.ts";
import { CniCode, CniError } from "../../shared/errors.ts";
import { reasonOf } from "../../shared/reason.ts";
import type { CallContext } from "../../shared/server/handlers.ts";
import { CallPhases } from "../metrics/call-phases.ts";
import { type AgentContext, detachAndEnd } from "../reconcile/mod.ts";
import type { CmdRequest } from "./cmd-request.ts";

/**
 * DEL: the interface goes, then the addresses may cool. "Is not there" is success; neither the network's configuration
 * nor a namespace is asked for. The DEL of a workload container changes nothing. If the agent is killed meanwhile it
 * has not answered, so the plugin makes the DEL durable.
 * @throws {CniError} code 104 for a DEL that an ADD of the same sandbox has overtaken, 102 where the kernel refuses and
 * there is no lease of ours that would record it
 */
export async function runDel(
  context: AgentContext,
  request: CmdRequest,
  call: CallContext,
  phases: Pick<CallPhases, "enter"> = new CallPhases(),
): Promise<undefined> {
  const { owner, container } = request;
  if (container.kind.t === "workload") return;
  const what = { what: `DEL of "${owner.sandboxId}"`, signal: call.signal, timeoutMs: context.config.callTimeoutMs };
  await context.mutex.run(ownerKey(owner), what, async () => {
    phases.enter("interface");
    requireNotOvertaken(context, owner, call);
    try {
      await detachAndEnd(context, owner);
    } catch (caught) {
      context.allocator.release(owner, "releasing");
      if (context.allocator.releasing(owner).length === 0) throw caught;
      call.log.error("unwiring failed, the janitor goes on with it", {
        ...ownerFields(owner),
        error: reasonOf(caught),
      });
    }
  });
}

/**
 * A DEL may have waited in a frozen agent until its plugin gave up and the runtime added the same sandbox again; it
 * must not remove the new attachment.
 */
function requireNotOvertaken(context: AgentContext, owner: Owner, { startedUptimeMs: began }: CallContext): void {
  if (began === undefined || (context.lastAddAt.get(ownerKey(owner)) ?? 0) <= began) return;
  throw new CniError(
    CniCode.overtaken,
    `Cannot unwire "${owner.sandboxId}": it has been added again since the DEL began, wanted a DEL of that`,
  );
}
