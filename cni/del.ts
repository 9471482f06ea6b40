import { Allocator, dataDirOf } from "../ipam/mod.ts";
import { CniError } from "../shared/errors.ts";
import { callCni } from "./agent-call.ts";
import { type Call, ownerOf } from "./call.ts";
import { delegate } from "./delegate.ts";
import { recordDeparture } from "./departure.ts";

/**
 * DEL (specification 1.1.0, "DEL: Remove container from network, or un-apply modifications").
 * Needs no agent, no valid configuration beyond the network's name, no namespace and no
 * `prevResult`; what is not there is removed already. It fails only where what it decided could
 * not be kept, so that the runtime comes again.
 */
export async function del(call: Call): Promise<undefined> {
  const { ipam } = call.conf;
  try {
    if (ipam.kind === "delegated") await delDelegated(call, ipam.type);
    else if (ipam.kind === "own") await delOwn(call);
    else await tellAgentOrLeaveWord(call);
  } catch (caught) {
    throw retryable(CniError.from(caught));
  }
}

async function delOwn(call: Call): Promise<void> {
  {
    // Durable before the agent hears of it: this process may be killed while it waits.
    using allocator = await Allocator.open(leaseDirOf(call), { lifetime: "call" });
    allocator.release(ownerOf(call), "releasing");
  }
  await tellAgent(call);
}

async function delDelegated(call: Call, type: string): Promise<void> {
  // First the interface, then the address: the other way round a new pod could get it while the old one still has it.
  await tellAgentOrLeaveWord(call);
  await delegate(call.request, type, "DEL", call.conf.delTimeoutMs);
}

async function tellAgentOrLeaveWord(call: Call): Promise<void> {
  if (!(await tellAgent(call))) await recordDeparture(call);
}

/** @returns whether the agent has done it; if not, what is durable lets it do so later */
async function tellAgent(call: Call): Promise<boolean> {
  const answer = await callCni(call, "cmdDel", call.request.stdin, call.conf.delTimeoutMs);
  if (answer.t === "result") return true;
  call.log.error("The agent has not unwired the sandbox and will do so later", {
    code: answer.error.code,
    reason: answer.error.message,
  });
  return false;
}

/** Where the leases lie, also when the `ipam` section cannot be read. */
export function leaseDirOf(call: Call): string {
  try {
    return dataDirOf(call.request.conf);
  } catch (caught) {
    call.log.warn(CniError.from(caught).message);
    return call.conf.dataDir;
  }
}

/**
 * containerd takes a DEL whose error speaks of something "not found" for done, skips the rest of
 * the chain and never comes again; the words may be the system's or another plugin's.
 */
export function retryable(error: CniError): CniError {
  const reword = (text: string): string =>
    text.replace(/not found/gi, "absent").replace(/no such file or directory/gi, "absent file or directory");
  return new CniError(error.code, reword(error.message), { details: reword(error.details), cause: error });
}
