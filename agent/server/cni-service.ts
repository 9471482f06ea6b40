import { afterTurn } from "../../shared/async/after-turn.ts";
import { podOf } from "../../shared/cni/args.ts";
import type { ReadConf, readConf } from "../../shared/cni/dispatch.ts";
import type { Owner } from "../../shared/cni/types.ts";
import { CniCode, CniError } from "../../shared/errors.ts";
import { type LogFields, redactArgs } from "../../shared/log.ts";
import { uptimeMs } from "../../shared/os/uptime.ts";
import type { CmdError, CniCmdRequest, CniCmdResponse } from "../../shared/proto/cni-messages.ts";
import { cniService } from "../../shared/proto/services.ts";
import { type CallContext, type Rpc, rpc } from "../../shared/server/handlers.ts";
import { KnownConfs } from "../../shared/server/known-confs.ts";
import { runAdd } from "../attach/add.ts";
import { runCheck } from "../attach/check.ts";
import { type CmdRequest, type CmdVerb, parseCmdRequest } from "../attach/cmd-request.ts";
import { runDel } from "../attach/del.ts";
import { CallPhases, measurePhases } from "../metrics/call-phases.ts";
import type { AgentContext } from "../reconcile/mod.ts";

type Verb = (
  context: AgentContext,
  request: CmdRequest,
  call: CallContext,
  phases: CallPhases,
) => Promise<string | undefined>;

/** The agent's state, as far as the service depends on it. */
export interface Gate {
  /** @throws {CniError} code 11 before the node is reconciled */
  requireReady(): void;
  /**
   * The same for a caller that waits until its deadline, since a start takes a moment. Joining a cluster for the first
   * time may take for ever and is not waited for. `undefined`: nothing has to be waited for.
   */
  untilReady(call: CallContext): Promise<void> | undefined;
  /** @throws {CniError} code 11 where no new pod of the network may get an address now */
  requireAddresses(network: string): void;
  /** Reports that an ADD found no free address. */
  lackedAddress(): void;
}

/** One method of the service. */
interface Served {
  readonly verb: CmdVerb;
  readonly run: Verb;
  readonly readConf: typeof readConf;
}

/** The reference system's `Cni` service: every failure is an answer with a code, never a gRPC status. */
export function cniRpcs(context: AgentContext, gate: Gate): readonly Rpc[] {
  const confs = new KnownConfs();
  const readConf = (bytes: Uint8Array): ReadConf => confs.read(bytes);
  const method = (verb: CmdVerb, run: Verb) => (request: CniCmdRequest, call: CallContext) =>
    answer(context, gate, { verb, run, readConf }, request, call);
  return [
    rpc(cniService.cmdAdd, method("ADD", runAdd)),
    rpc(cniService.cmdCheck, method("CHECK", runCheck)),
    rpc(cniService.cmdDel, method("DEL", runDel)),
  ];
}

async function answer(
  context: AgentContext,
  gate: Gate,
  { verb, run, readConf }: Served,
  message: CniCmdRequest,
  call: CallContext,
): Promise<CniCmdResponse> {
  const startedMs = performance.now();
  const beganAtMs = Date.now();
  const phases = new CallPhases();
  phases.enter("queued");
  let network: string | undefined;
  const log = (level: "info" | "warn" | "error", outcome: LogFields): void => {
    const { containerId: container = "", ifname = "", args = "" } = message.cniArgs ?? {};
    const durationMs = Math.round((performance.now() - startedMs) * 10) / 10;
    const where = network === undefined ? {} : { network };
    // The caller does not wait for the line.
    afterTurn(() => {
      const fields = { verb, container, ifname, args: redactArgs(args), ...where };
      call.log[level]("served", { ...fields, ...outcome, durationMs });
    });
  };
  const served = (code: number, text: string): void => {
    const endedMs = performance.now();
    // Nor for the numbers.
    afterTurn(() => {
      record(context, { verb, code, message: text, network, beganAtMs, startedMs, endedMs }, message, phases);
      measure(context, { verb, code, startedMs, endedMs }, call);
    });
  };
  try {
    const request = parseCmdRequest(message, verb, context.config.dataPath, readConf);
    network = request.owner.network;
    // A DEL does not wait: the plugin records it, and the start finishes it.
    const starting = verb === "DEL" ? gate.requireReady() : gate.untilReady(call);
    if (starting !== undefined) await starting;
    if (verb === "ADD") requireAddresses(context, gate, request.owner);
    const result = (await run(context, request, call, phases)) ?? "";
    log("info", { outcome: "ok" });
    served(0, "");
    return { cniResult: new TextEncoder().encode(result) };
  } catch (caught) {
    const error = CniError.from(caught, `run ${verb}`);
    // The runtime will try again, and may find a free address then.
    if (verb === "ADD" && error.code === CniCode.ipamFailure) gate.lackedAddress();
    const told = toMessage(error);
    served(error.code, told.message);
    const level = error.code === CniCode.internal ? "error" : "warn";
    log(level, { outcome: "failed", code: error.code, error: error.message, details: error.details });
    return { cniResult: new Uint8Array(0), error: told };
  }
}

/** One mechanism for both: who looks for one call finds its parts in the ring, and the numbers are made of them. */
function record(
  { calls, meter }: Pick<AgentContext, "calls" | "meter">,
  ended: {
    readonly verb: CmdVerb;
    readonly code: number;
    readonly message: string;
    readonly network: string | undefined;
    readonly beganAtMs: number;
    readonly startedMs: number;
    readonly endedMs: number;
  },
  { cniArgs }: CniCmdRequest,
  timing: CallPhases,
): void {
  const { verb, code, message, network = "", beganAtMs, startedMs, endedMs } = ended;
  const phases = timing.end(endedMs);
  const failedIn = code === 0 ? undefined : timing.now;
  const pod = podOf(cniArgs?.args ?? "");
  calls.add({
    ...{ verb, code, message, network, beganAtMs, phases },
    sandbox: cniArgs?.containerId ?? "",
    ifname: cniArgs?.ifname ?? "",
    ...(pod === undefined ? {} : { pod }),
    durationMs: Math.round((endedMs - startedMs) * 1000) / 1000,
    ...(failedIn === undefined ? {} : { failedIn }),
  });
  if (meter !== undefined) measurePhases(meter, verb, phases, failedIn);
}

/** From the plugin's start, where it says when that was: what a pod waits for is not only our part. */
export function measure(
  { meter }: Pick<AgentContext, "meter">,
  ended: {
    readonly verb: CmdVerb | "GC" | "STATUS";
    readonly code: number;
    readonly startedMs: number;
    readonly endedMs: number;
  },
  { startedUptimeMs }: CallContext,
): void {
  if (meter === undefined) return;
  const { verb, code, startedMs, endedMs } = ended;
  const upMs = uptimeMs();
  const sinceMs = performance.now() - endedMs;
  const tookMs =
    startedUptimeMs === undefined || upMs === undefined ? endedMs - startedMs : upMs - sinceMs - startedUptimeMs;
  // Clocks in steps may put a start behind its end.
  const seconds = Math.max(0, tookMs) / 1000;
  meter.add("pipette_cni_requests_total", { verb, code });
  meter.observe("pipette_cni_request_duration_seconds", { verb }, seconds);
  if (verb === "ADD" && code === 0) meter.observe("pipette_pod_network_ready_seconds", {}, seconds);
}

/**
 * A pod that has its addresses already gets the same answer again, whether or not new pods get addresses.
 * @throws as `Gate.requireAddresses`
 */
function requireAddresses({ allocator }: AgentContext, gate: Gate, owner: Owner): void {
  try {
    gate.requireAddresses(owner.network);
  } catch (caught) {
    if (allocator.find(owner).length === 0) throw caught;
  }
}

/**
 * `details` of the proto are typed messages, so our text is appended to the message. The stack of an internal error
 * stays in the log.
 */
function toMessage(error: CniError): CmdError {
  const details = error.code === CniCode.internal ? "the agent's log tells where" : error.details;
  return { code: error.code, message: details === "" ? error.message : `${error.message}; ${details}`, details: [] };
}
