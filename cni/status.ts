import { CniCode, CniError } from "../shared/errors.ts";
import { limits } from "../shared/limits.ts";
import { nodeService } from "../shared/proto/services.ts";
import { GrpcCode, RpcError } from "../shared/rpc/rpc-error.ts";
import { callAgent } from "./agent-call.ts";
import type { Call } from "./call.ts";
import { delegate } from "./delegate.ts";
import { fromRpcError } from "./rpc-errors.ts";

/**
 * STATUS (specification 1.1.0, "STATUS: Check plugin status"): says why the node as a whole has no network for a pod.
 * What a runtime hears here makes its node not ready and in the end costs it all of its pods, so what affects only new
 * pods, such as a pool without a free address, is reported by ADD and by `pipette status` instead. Code 51 means that
 * running pods are affected too, which only the agent knows.
 */
export async function status(call: Call): Promise<undefined> {
  const { request, conf } = call;
  const problems: CniError[] = [];
  const step = async (run: () => Promise<unknown>): Promise<void> => {
    try {
      await run();
    } catch (caught) {
      problems.push(CniError.from(caught));
    }
  };
  if (conf.ipam.kind === "own") await requireUsableRanges(call);
  await step(() => agentWorks(call, problems));
  const { ipam } = conf;
  if (ipam.kind === "delegated") await step(() => delegate(request, ipam.type, "STATUS", limits.statusTimeoutMs));
  const worst = problems.find((problem) => problem.code === CniCode.limitedConnectivity) ?? problems[0];
  if (worst === undefined) return;
  const others = problems.filter((problem) => problem !== worst).map((problem) => problem.message);
  const details = [worst.details, ...others].filter((text) => text !== "").join("; ");
  throw new CniError(worst.code, worst.message, { details });
}

/** A configuration that no ADD can use is reported as invalid (code 7), not as a node without network (50). */
async function requireUsableRanges(call: Call): Promise<void> {
  const { conf, network, version } = call.request;
  const { parseIpamConfig } = await import("../ipam/mod.ts");
  parseIpamConfig({ conf, network, version, args: "" });
}

async function agentWorks(call: Call, problems: CniError[]): Promise<void> {
  const { network } = call.request;
  try {
    const answer = await callAgent(call, nodeService.status, { network }, limits.statusTimeoutMs - call.agedMs);
    for (const problem of answer.problems) problems.push(new CniError(codeOf(problem.code), problem.message));
  } catch (caught) {
    if (!(caught instanceof RpcError)) throw caught;
    // It answers but is another implementation, about which STATUS cannot say more.
    if (caught.grpcCode === GrpcCode.unimplemented) return;
    const { message, details } = fromRpcError(caught, call.conf.socket);
    problems.push(new CniError(CniCode.notAvailable, message, { cause: caught, details }));
  }
}

const codeOf = (code: number): CniCode =>
  code === CniCode.limitedConnectivity ? CniCode.limitedConnectivity : CniCode.notAvailable;
