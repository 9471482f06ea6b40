import type { Attachment } from "../shared/cni/types.ts";
import { validAttachments } from "../shared/cni/valid-attachments.ts";
import { CniCode, CniError } from "../shared/errors.ts";
import { nodeService } from "../shared/proto/services.ts";
import { GrpcCode, RpcError } from "../shared/rpc/rpc-error.ts";
import { callAgent } from "./agent-call.ts";
import type { Call } from "./call.ts";
import { delegate } from "./delegate.ts";
import { openStore } from "./pending-detach.ts";
import { fromRpcError } from "./rpc-errors.ts";

/**
 * GC (specification 1.1.0, "GC: Clean up any stale resources"): gives up every attachment of this network that the
 * runtime does not list. An error does not stop it; all are reported at the end.
 */
export async function gc(call: Call): Promise<undefined> {
  const { request, conf } = call;
  const valid = validAttachments(request.conf);
  const failures: CniError[] = [];
  const step = async (run: () => Promise<unknown>): Promise<void> => {
    try {
      await run();
    } catch (caught) {
      failures.push(CniError.from(caught));
    }
  };
  const { ipam } = conf;
  await step(() => tellAgent(call, valid));
  if (ipam.kind === "delegated") await step(() => delegate(request, ipam.type, "GC", conf.delTimeoutMs));
  const [first] = failures;
  if (first === undefined) return;
  if (failures.length === 1) throw first;
  throw new CniError(first.code, first.message, { details: failures.map((failure) => failure.message).join("; ") });
}

async function retainLeases(call: Call, valid: readonly Attachment[]): Promise<void> {
  using allocator = await openStore(call);
  const given = allocator.retain(call.request.network, valid, "releasing", () => performance.now() - call.startedMs);
  if (given.length > 0) call.log.info("Gave up attachments that the runtime does not know", { attachments: given });
}

async function tellAgent(call: Call, valid: readonly Attachment[]): Promise<void> {
  const { request, conf } = call;
  try {
    const { failures } = await callAgent(
      call,
      nodeService.gc,
      { network: request.network, valid },
      conf.delTimeoutMs - call.agedMs,
    );
    if (failures.length === 0) return;
    const is = failures.length === 1 ? "1 attachment is left" : `${failures.length} attachments are left`;
    throw new CniError(CniCode.tryAgainLater, `Cannot collect all garbage: ${is}`, {
      details: failures.join("; "),
    });
  } catch (caught) {
    if (!(caught instanceof RpcError)) throw caught;
    // A server of another implementation has nothing of ours to collect.
    if (caught.grpcCode === GrpcCode.unimplemented) return;
    call.log.error("The agent has not collected the garbage", { code: caught.grpcCode, reason: caught.message });
    // Another IPAM plugin keeps the addresses, so no lease can tell the agent later what to detach: the runtime has to
    // repeat the GC.
    if (conf.ipam.kind === "delegated") throw fromRpcError(caught, conf.socket);
    // The leases that become `releasing` tell the agent when it is back.
    await retainLeases(call, valid);
  }
}
