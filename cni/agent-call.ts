import { CniCode, CniError } from "../shared/errors.ts";
import { parseJson } from "../shared/json.ts";
import { isObject } from "../shared/json-fields.ts";
import { limits } from "../shared/limits.ts";
import type { CmdError } from "../shared/proto/cni-messages.ts";
import { callTimes, cniService, type Method } from "../shared/proto/services.ts";
import { callUnary } from "../shared/rpc/call.ts";
import { RpcError } from "../shared/rpc/rpc-error.ts";
import { uptimeMs } from "../shared/uptime.ts";
import type { Call } from "./call.ts";
import { fromRpcError } from "./rpc-errors.ts";

/** How a call to the agent ended. Each way leaves another state behind, so none of them is an exception. */
export type Answer =
  | { readonly t: "result"; readonly text: string }
  /** The agent said no, and has undone its own part. */
  | { readonly t: "refused"; readonly error: CniError }
  /** No usable answer. Where `seen` is `false` the call certainly reached nobody. */
  | { readonly t: "lost"; readonly error: CniError; readonly seen: boolean };

/**
 * Calls one method of the reference `Cni` service.
 * @param conf the network configuration to send: what came on stdin, or that with the addresses
 */
export async function callCni(
  call: Call,
  method: keyof typeof cniService,
  conf: string,
  timeoutMs: number,
): Promise<Answer> {
  const { containerId, netns, ifname, args, path } = call.request.env;
  const networkConfiguration = new TextEncoder().encode(conf);
  const cniArgs = { containerId, netns, ifname, args, path, networkConfiguration };
  try {
    const response = await callAgent(call, cniService[method], { cniArgs }, timeoutMs);
    if (response.error !== undefined) return { t: "refused", error: refusal(response.error) };
    const text = new TextDecoder().decode(response.cniResult);
    if (method !== "cmdAdd") return { t: "result", text };
    const problem = wrongResult(text);
    return problem === undefined ? { t: "result", text } : { t: "lost", error: problem, seen: true };
  } catch (caught) {
    if (!(caught instanceof RpcError)) throw caught;
    return { t: "lost", error: fromRpcError(caught, call.conf.socket), seen: !caught.unreachable };
  }
}

/**
 * Any unary call to the agent. Its metadata are the trace of the runtime's own call, and the time in which the caller
 * waits for the answer: an agent that was frozen meanwhile must not do what nobody wants any more.
 * @throws {RpcError}
 */
export async function callAgent<Req, Res>(
  call: Call,
  method: Method<Req, Res>,
  request: Req,
  timeoutMs: number,
): Promise<Res> {
  const started = performance.now();
  const metadata = { ...traceOf(call.request.io.env), ...timesOf(started - call.startedMs, timeoutMs) };
  const response = await callUnary(call.conf.socket, method, request, { timeoutMs, metadata, alone: true });
  call.log.debug("The agent answered", { method: method.path, ms: performance.now() - started });
  return response;
}

function timesOf(elapsedMs: number, timeoutMs: number): Record<string, string> {
  const now = uptimeMs();
  if (now === undefined) return {};
  return { [callTimes.startedMs]: String(now - elapsedMs), [callTimes.untilMs]: String(now + timeoutMs) };
}

/** The runtime's library names its trace in these variables; W3C Trace Context and Baggage name the headers. */
export function traceOf(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const metadata: Record<string, string> = {};
  for (const name of ["traceparent", "tracestate", "baggage"]) {
    const value = env[name.toUpperCase()] ?? "";
    if (value !== "" && value.length <= limits.traceHeaderBytes) metadata[name] = value;
  }
  return metadata;
}

function refusal(error: CmdError): CniError {
  // 0 is UNKNOWN in the proto, and no code that the specification knows.
  const code = error.code === 0 ? CniCode.unknownRpc : error.code;
  return new CniError(code, error.message || "Cannot finish the call: the agent gave no reason, wanted one");
}

/** What is printed as it comes must at least be a JSON object: runtimes fail on anything else, far from the cause. */
function wrongResult(text: string): CniError | undefined {
  try {
    if (isObject(parseJson(text))) return undefined;
  } catch {}
  const is = text === "" ? "empty" : "no JSON object";
  return new CniError(CniCode.unknownRpc, `Cannot use the agent's result: it is ${is}, wanted a CNI result`, {
    details: text.slice(0, 200),
  });
}
