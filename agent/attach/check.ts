import { ipamKind } from "../../shared/cni/ipam-kind.ts";
import { ownerKey } from "../../shared/cni/owner-key.ts";
import { parseResult } from "../../shared/cni/result.ts";
import { atLeast } from "../../shared/cni/versions.ts";
import { CniCode, CniError } from "../../shared/errors.ts";
import { formatCidr, formatIp, sameIp } from "../../shared/net/ip.ts";
import type { CallContext } from "../../shared/server/handlers.ts";
import { requireNetwork } from "../config/network-sections.ts";
import { CallPhases } from "../metrics/call-phases.ts";
import type { AgentContext } from "../reconcile/mod.ts";
import type { CmdRequest } from "./cmd-request.ts";

/**
 * CHECK: the kernel against `prevResult` (specification 1.1.0, "CHECK").
 * @throws {CniError} code 7 without `prevResult`, 103 naming the first difference
 */
export async function runCheck(
  context: AgentContext,
  request: CmdRequest,
  call: CallContext,
  phases: Pick<CallPhases, "enter"> = new CallPhases(),
): Promise<undefined> {
  const { owner, conf, version } = request;
  requireNetwork(context.config, owner.network);
  if (!atLeast(version, "0.4.0")) {
    throw new CniError(
      CniCode.incompatibleVersion,
      `Cannot run CHECK: "cniVersion" is "${version}", wanted "0.4.0" or later`,
    );
  }
  const fields = conf.object("prevResult");
  if (fields === undefined) throw conf.wrong("prevResult", undefined, "the result of the ADD");
  const prevResult = parseResult(fields, version);
  const what = { what: `CHECK of "${owner.sandboxId}"`, signal: call.signal, timeoutMs: context.config.callTimeoutMs };
  await context.mutex.run(ownerKey(owner), what, async () => {
    phases.enter("interface");
    const leases = context.allocator.find(owner);
    if (leases.length === 0 && ipamKind(conf) === "own") {
      const wanted = prevResult.ips.map((ip) => `"${formatCidr(ip.address)}"`).join(", ");
      throw new CniError(
        CniCode.checkFailure,
        `Cannot confirm "${owner.sandboxId}": no address is leased to it, wanted ${wanted}`,
      );
    }
    for (const lease of leases) {
      if (prevResult.ips.some((entry) => sameIp(entry.address.ip, lease.address.ip))) continue;
      throw new CniError(
        CniCode.checkFailure,
        `Cannot confirm "${owner.sandboxId}": it holds address "${formatIp(lease.address.ip)}", wanted an address of "prevResult"`,
      );
    }
    await context.dataPath.check(owner, request.container.netns, prevResult);
  });
}
