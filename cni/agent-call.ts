import { Backoff } from "../shared/async/backoff.ts";
import { CniCode, CniError } from "../shared/errors.ts";
import { uptimeMs } from "../shared/os/uptime.ts";
import type { CmdError } from "../shared/proto/cni-messages.ts";
import { cniService, type Method } from "../shared/proto/services.ts";
import { GrpcCode, RpcError } from "../shared/rpc/rpc-error.ts";
import { parseJson } from "../shared/schema/json.ts";
import { isObject } from "../shared/schema/json-fields.ts";
import type { Call } from "./call.ts";
import type { AskedWith } from "./plugin-context.ts";
import { fromRpcError } from "./rpc-errors.ts";

/** The size of these headers that W3C Trace Context and Baggage oblige every party to pass on. */
export const maxTraceHeaderBytes = 8 * 1024;

/** Pauses between two attempts to reach an agent that is being replaced; hundreds of plugins may try at once. */
const lookTimes = { firstMs: 20, longestMs: 250 };

/** How a call to the agent ended. Each way leaves another state behind, so none of them is an exception. */
export type Answer =
  | { readonly t: "result"; readonly text: string }
  /**
   * The agent refused, and has undone its own part. `seen`: an earlier attempt of this call was lost with an agent that
   * ended.
   */
  | { readonly t: "refused"; readonly error: CniError; readonly seen: boolean }
  /** No usable answer. With `seen` false the call certainly reached no agent. */
  | { readonly t: "lost"; readonly error: CniError; readonly seen: boolean };

/**
 * Calls one method of the reference `Cni` service. ADD and CHECK wait for an agent that is being replaced; a DEL is
 * durable without one.
 * @param networkConfiguration to send: what came on stdin, or that with the addresses
 * @param timeoutMs for all of it
 */
export async function callCni(
  call: Call,
  method: keyof typeof cniService,
  networkConfiguration: Uint8Array,
  timeoutMs: number,
): Promise<Answer> {
  const { containerId, netns, ifname, args, path } = call.request.env;
  const cniArgs = { containerId, netns, ifname, args, path, networkConfiguration };
  const attempt = new Attempts(timeoutMs - call.agedMs, method !== "cmdDel", call.context.seen);
  for (;;) {
    try {
      const response = await callAgent(call, cniService[method], { cniArgs }, attempt.leftMs);
      if (response.error !== undefined) return { t: "refused", error: refusal(response.error), seen: attempt.seen };
      const text = new TextDecoder().decode(response.cniResult);
      if (method !== "cmdAdd") return { t: "result", text };
      const problem = call.context.isOwnAgent ? undefined : wrongResult(text);
      return problem === undefined ? { t: "result", text } : { t: "lost", error: problem, seen: true };
    } catch (caught) {
      if (!(caught instanceof RpcError)) throw caught;
      if (await attempt.again(caught)) continue;
      return { t: "lost", error: fromRpcError(caught, call.conf.socket, attempt.waitedMs), seen: attempt.seen };
    }
  }
}

/** Whether a call that got no answer is made once more, and when. */
class Attempts {
  /** Whether a server may have received one of the attempts. */
  seen: boolean;
  /** Time spent waiting for an agent to listen. */
  waitedMs = 0;
  readonly #untilMs: number;
  readonly #waits: boolean;
  #backoff: Backoff | undefined;

  constructor(timeoutMs: number, waits: boolean, seen = false) {
    this.seen = seen;
    this.#untilMs = performance.now() + timeoutMs;
    this.#waits = waits;
  }

  get leftMs(): number {
    return Math.max(1, Math.ceil(this.#untilMs - performance.now()));
  }

  /**
   * Waits before it answers `true`. An agent that is not there may still come. An agent that ended during the call is
   * asked once more, since the same ADD again gives the same answer; a call that ends agents twice is not repeated.
   */
  async again(error: RpcError): Promise<boolean> {
    const ended = error.grpcCode === GrpcCode.unavailable && !error.unreachable;
    const mayCome = error.absent || (ended && !this.seen);
    this.seen ||= !error.unreachable;
    if (!this.#waits || !mayCome) return false;
    this.#backoff ??= new Backoff(lookTimes);
    const pauseMs = this.#backoff.next();
    if (this.leftMs <= pauseMs) return false;
    await Bun.sleep(pauseMs);
    this.waitedMs += pauseMs;
    return true;
  }
}

/**
 * Any unary call to the agent. Its metadata carry the trace of the runtime's call and the caller's deadline, so that an
 * agent that was frozen meanwhile does not begin an abandoned call.
 * @throws {RpcError}
 */
export async function callAgent<Req, Res>(
  call: Call,
  method: Method<Req, Res>,
  request: Req,
  waitsMs: number,
): Promise<Res> {
  const timeoutMs = Math.max(1, Math.ceil(waitsMs));
  const times = timesOf(call.startedMs, timeoutMs);
  const started = performance.now();
  const about = { timeoutMs, trace: traceOf(call.request.io.env), ...times };
  const response = await call.context.ask(call.conf.socket, method, request, about);
  call.log.debug("The agent answered", { method: method.path, ms: performance.now() - started });
  return response;
}

function timesOf(startedMs: number, timeoutMs: number): Partial<Pick<AskedWith, "startedUptimeMs" | "untilUptimeMs">> {
  const now = uptimeMs();
  const elapsedMs = performance.now() - startedMs;
  return now === undefined ? {} : { startedUptimeMs: now - elapsedMs, untilUptimeMs: now + timeoutMs };
}

/** The runtime's library names its trace in these variables; W3C Trace Context and Baggage name the headers. */
export function traceOf(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const metadata: Record<string, string> = {};
  const add = (name: string, value = ""): void => {
    if (value !== "" && value.length <= maxTraceHeaderBytes) metadata[name] = value;
  };
  add("traceparent", env["TRACEPARENT"]);
  add("tracestate", env["TRACESTATE"]);
  add("baggage", env["BAGGAGE"]);
  return metadata;
}

function refusal(error: CmdError): CniError {
  // 0 is UNKNOWN in the proto and no code of the CNI specification.
  const code = error.code === 0 ? CniCode.unknownRpc : error.code;
  return new CniError(code, error.message || "Cannot finish the call: the agent gave no reason");
}

/**
 * The answer is printed unchanged, so it must at least be a JSON object: runtimes fail on anything else, far from the
 * cause.
 */
function wrongResult(text: string): CniError | undefined {
  try {
    if (isObject(parseJson(text))) return undefined;
  } catch {}
  const is = text === "" ? "empty" : "no JSON object";
  return new CniError(CniCode.unknownRpc, `Cannot use the agent's result: it is ${is}, wanted a CNI result`, {
    details: text.slice(0, 200),
  });
}
