import { encodeResult } from "../shared/cni/result.ts";
import type { CniResult } from "../shared/cni/types.ts";
import { latestVersion } from "../shared/cni/versions.ts";
import { CniError } from "../shared/errors.ts";
import { type Answer, callCni } from "./agent-call.ts";
import { type Call, isWorkload, requireNetns } from "./call.ts";
import { appended, previousResult } from "./chain.ts";
import { delegate, parseDelegateResult } from "./delegate.ts";
import { recordPendingDetach, rollbackAllocation } from "./pending-detach.ts";

/**
 * ADD (specification 1.1.0, "ADD: Add container to network, or apply modifications"): has the agent take the addresses
 * and wire the sandbox, and answers its result. What a failed ADD took is given back; what existed before stays. The
 * same ADD again gives the same answer.
 */
export async function add(call: Call): Promise<string> {
  requireNetns(call.request.env);
  // Read before anything is done, so that a result that cannot be passed on needs no undoing.
  const previous = previousResult(call.request);
  const text = await wire(call);
  return previous === undefined ? text : appended(previous, text, call.request.version);
}

async function wire(call: Call): Promise<string> {
  const { ipam, addTimeoutMs } = call.conf;
  // The sandbox holds the addresses, so nothing is allocated here that a failure would have to release.
  if (isWorkload(call.request.env)) return resultOf(await callCni(call, "cmdAdd", call.request.stdin, addTimeoutMs));
  if (ipam.kind === "delegated") return addDelegated(call, ipam.type);
  const answer = await callCni(call, "cmdAdd", call.request.stdin, addTimeoutMs);
  // An agent that answers has undone its own part; one that was killed during the call has not.
  if (answer.t !== "result" && answer.seen)
    await attempt(call, "give up the addresses", () => rollbackAllocation(call));
  return resultOf(answer);
}

async function addDelegated(call: Call, type: string): Promise<string> {
  const { request, conf } = call;
  let answer: Answer | undefined;
  try {
    const text = await delegate(request, type, "ADD", conf.addTimeoutMs);
    const ipam = parseDelegateResult(text, type, request.version);
    answer = await callCni(call, "cmdAdd", withIpamResult(call, ipam), conf.addTimeoutMs);
    return resultOf(answer);
  } catch (caught) {
    if (answer !== undefined && answer.t !== "result" && answer.seen)
      await attempt(call, "leave word for the agent", () => recordPendingDetach(call));
    // "If a plugin delegates ADD and that fails, it must call DEL before it fails itself" (section 4).
    await attempt(call, "undo the delegated ADD", () => delegate(request, type, "DEL", conf.delTimeoutMs));
    throw caught;
  }
}

function resultOf(answer: Answer): string {
  if (answer.t === "result") return answer.text;
  throw answer.error;
}

/** A failure of the undoing must not hide the error that caused it. */
async function attempt(call: Call, action: string, run: () => unknown): Promise<void> {
  try {
    await run();
  } catch (caught) {
    call.log.error(`Cannot ${action}: ${CniError.from(caught).message}`);
  }
}

function withIpamResult(call: Call, ipam: CniResult): Uint8Array {
  // Inserted into the text, so that the rest of the configuration reaches the agent byte for byte.
  const text = call.request.text.trimEnd();
  return new TextEncoder().encode(`${text.slice(0, -1)},"ipamResult":${encodeResult(ipam, latestVersion)}}`);
}
