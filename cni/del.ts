import { CniCode, CniError } from "../shared/errors.ts";
import { callCni } from "./agent-call.ts";
import { type Call, isWorkload } from "./call.ts";
import { delegate } from "./delegate.ts";
import { recordPendingDetach } from "./pending-detach.ts";

/**
 * DEL (specification 1.1.0, "DEL: Remove container from network, or un-apply modifications").
 * Needs no agent, no valid configuration beyond the network's name, no namespace and no
 * `prevResult`; what is not there is removed already. It fails only where what it decided could
 * not be kept, so that the runtime comes again.
 */
export async function del(call: Call): Promise<undefined> {
  const { ipam, delTimeoutMs } = call.conf;
  // Its sandbox keeps the network until its own DEL: nothing is to be done, and nobody has to know.
  if (isWorkload(call.request.env)) return;
  try {
    // First the interface, then the address: the other way round a new pod could get it while the old one still has it.
    if (!(await tellAgent(call))) await recordPendingDetach(call);
    if (ipam.kind === "delegated") await delegate(call.request, ipam.type, "DEL", delTimeoutMs);
  } catch (caught) {
    throw retryable(CniError.from(caught));
  }
}

/**
 * @returns whether the agent has done it; if not, it must find out later what it has to do
 * @throws {CniError} code 104 where the sandbox has been added again since: a word left now would end that new life
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
