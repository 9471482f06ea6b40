import { CniCode, CniError } from "../shared/errors.ts";
import { callCni } from "./agent-call.ts";
import { type Call, isWorkload } from "./call.ts";
import { delegate } from "./delegate.ts";
import { recordPendingDetach } from "./pending-detach.ts";

/**
 * DEL (specification 1.1.0, "DEL: Remove container from network, or un-apply modifications"). Needs no agent, no valid
 * configuration beyond the network's name, no namespace and no `prevResult`; what is not there counts as removed. It
 * fails only where its decision could not be stored, so that the runtime tries again.
 */
export async function del(call: Call): Promise<undefined> {
  const { ipam, delTimeoutMs } = call.conf;
  // The sandbox keeps the network until its own DEL, so there is nothing to do.
  if (isWorkload(call.request.env)) return;
  try {
    // First the interface, then the address: otherwise a new pod could get the address while the old pod still uses it.
    if (!(await tellAgent(call))) await recordPendingDetach(call);
    if (ipam.kind === "delegated") await delegate(call.request, ipam.type, "DEL", delTimeoutMs);
  } catch (caught) {
    throw retryable(CniError.from(caught));
  }
}

/**
 * @returns whether the agent has done it; if not, the DEL has to be recorded for it
 * @throws {CniError} code 104 where the sandbox has been added again since: a pending detach recorded now would remove
 * the new attachment
 */
async function tellAgent(call: Call): Promise<boolean> {
  const answer = await callCni(call, "cmdDel", call.request.stdin, call.conf.delTimeoutMs);
  if (answer.t === "result") return true;
  if (answer.t === "refused" && answer.error.code === CniCode.overtaken) throw answer.error;
  call.log.error("The agent has not unwired the sandbox and will do so later", {
    code: answer.error.code,
    reason: answer.error.message,
  });
  return false;
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
