import { Allocator } from "../ipam/mod.ts";
import type { CniResult } from "../shared/cni/types.ts";
import { CniCode, CniError } from "../shared/errors.ts";
import { formatCidr, sameIp } from "../shared/ip.ts";
import { callCni } from "./agent-call.ts";
import { type Call, ownerOf } from "./call.ts";
import { previousResult } from "./chain.ts";
import { leaseDirOf } from "./del.ts";
import { delegate } from "./delegate.ts";
import { requireNetns } from "./netns.ts";

/**
 * CHECK (specification 1.1.0, "CHECK: Check container's networking is as expected"): the leases
 * here, everything in the kernel by the agent, the rest by the delegate. What other plugins of the
 * chain added is theirs to check.
 */
export async function check(call: Call): Promise<undefined> {
  const { request, conf } = call;
  requireNetns(request.env);
  const previous = previousResult(request);
  if (previous === undefined) throw request.conf.wrong("prevResult", undefined, "the result of the ADD");
  if (conf.ipam.kind === "own") await checkLeases(call, previous);
  if (conf.ipam.kind === "delegated") await delegate(request, conf.ipam.type, "CHECK", conf.addTimeoutMs);
  const answer = await callCni(call, "cmdCheck", request.stdin, conf.addTimeoutMs);
  if (answer.t !== "result") throw answer.error;
}

async function checkLeases(call: Call, previous: CniResult): Promise<void> {
  using allocator = await Allocator.open(leaseDirOf(call), { lifetime: "call" });
  const owner = ownerOf(call);
  const leases = allocator.find(owner);
  const what = `Cannot confirm the addresses of "${owner.sandboxId}" ${owner.ifname}`;
  if (leases.length === 0) {
    const wanted = previous.ips.map((ip) => formatCidr(ip.address)).join(", ");
    throw new CniError(CniCode.checkFailure, `${what}: none is leased to it, wanted ${wanted}`);
  }
  for (const { address } of leases) {
    if (previous.ips.some((ip) => sameIp(ip.address.ip, address.ip))) continue;
    const wanted = `it among those of "prevResult"`;
    throw new CniError(CniCode.checkFailure, `${what}: "${formatCidr(address)}" is leased to it, wanted ${wanted}`);
  }
}
