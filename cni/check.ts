import { callCni } from "./agent-call.ts";
import { type Call, isWorkload, requireNetns } from "./call.ts";
import { previousResult } from "./chain.ts";
import { delegate } from "./delegate.ts";

/**
 * CHECK (specification 1.1.0, "CHECK: Check container's networking is as expected"): leases and kernel by the agent, the
 * rest by the delegate. What other plugins of the chain added is theirs to check.
 */
export async function check(call: Call): Promise<undefined> {
  const { request, conf } = call;
  requireNetns(request.env);
  if (previousResult(request) === undefined) throw request.conf.wrong("prevResult", undefined, "the result of the ADD");
  // The delegated IPAM plugin knows only the sandbox, which holds the addresses, and not a workload container in it.
  if (conf.ipam.kind === "delegated" && !isWorkload(request.env))
    await delegate(request, conf.ipam.type, "CHECK", conf.addTimeoutMs);
  const answer = await callCni(call, "cmdCheck", request.stdin, conf.addTimeoutMs);
  if (answer.t !== "result") throw answer.error;
}
