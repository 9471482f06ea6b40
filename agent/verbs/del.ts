import { ownsIpam } from "../../ipam/mod.ts";
import { CniCode, CniError } from "../../shared/errors.ts";
import type { CallContext } from "../../shared/server/handlers.ts";
import type { AgentParts } from "../agent-parts.ts";
import { detachAndSettle } from "../state/departed.ts";
import { ownerFields, ownerKey } from "../state/owner-key.ts";
import { keepsLeasesHere } from "./address-claim.ts";
import type { CmdRequest } from "./cmd-request.ts";

/**
 * DEL: the interface goes, then the addresses may cool. "Is not there" is success; neither the
 * network's configuration nor a namespace is asked for.
 * @throws {CniError} code 11 for a DEL that an ADD of the same sandbox has overtaken, 102 where the kernel refuses
 */
export async function runDel(parts: AgentParts, request: CmdRequest, call: CallContext): Promise<undefined> {
  const { owner, conf } = request;
  const what = { what: `DEL of "${owner.sandboxId}"`, signal: call.signal, timeoutMs: parts.config.callTimeoutMs };
  await parts.lanes.run(ownerKey(owner), what, async () => {
    const held = parts.allocator.find(owner);
    if (held.length > 0 && leniently(() => keepsLeasesHere(parts, conf), false)) {
      // Our plugin makes its leases `releasing` before it calls: an allocated one belongs to a later ADD.
      throw new CniError(
        CniCode.tryAgainLater,
        `Cannot unwire "${owner.sandboxId}": its lease is allocated, wanted it given up by the DEL first`,
      );
    }
    // Durable before anything else happens: from here on the janitor can finish it.
    if (held.length > 0) parts.allocator.release(owner, "releasing");
    try {
      await detachAndSettle(parts, owner);
    } catch (caught) {
      if (leniently(() => ownsIpam(conf), "delegated") !== "agent") throw caught;
      call.log.error("unwiring failed, the janitor goes on with it", {
        ...ownerFields(owner),
        error: caught instanceof Error ? caught.message : String(caught),
      });
    }
  });
}

/** A configuration that can no longer be read must not keep a DEL from ending. */
function leniently<T>(read: () => T, otherwise: T): T {
  try {
    return read();
  } catch {
    return otherwise;
  }
}
