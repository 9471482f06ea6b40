import { CniCode, CniError } from "../shared/errors.ts";
import { isWindows } from "../shared/os/platform.ts";
import { hasSystemd } from "../shared/os/systemd.ts";
import { GrpcCode, type RpcError } from "../shared/rpc/rpc-error.ts";

/**
 * What the reference system's plugin makes of a call that got no answer, so that runtimes see the same from both. It
 * stands in the events of a pod, before people who may never have heard of an agent: `details` say where to look.
 * @param waitedMs for how long somebody was waited for who is not there
 */
export function fromRpcError(error: RpcError, socket: string, waitedMs = 0): CniError {
  return new CniError(codeOf(error), error.message, { cause: error, details: detailsOf(error, socket, waitedMs) });
}

function detailsOf(error: RpcError, socket: string, waitedMs: number): string {
  // The text may be the server's own, which does not say who speaks.
  if (!error.message.includes(`"${socket}"`)) return `said by the agent at "${socket}"`;
  const where = whereToLook();
  return waitedMs > 0 ? `it was waited for ${waitedMs} ms; ${where}` : where;
}

/** Where nothing is known that starts the agent, no command is named that would fail. */
export function whereToLook(systemd: () => boolean = hasSystemd): string {
  const pod = "the log of the agent's pod on this node";
  const service = isWindows
    ? '"sc.exe query pipette-agent"'
    : systemd()
      ? '"systemctl status pipette-agent"'
      : undefined;
  return service === undefined
    ? `${pod}, or of what else starts "pipette agent" here, tells what keeps it`
    : `${service}, or ${pod}, tells what keeps it`;
}

function codeOf(error: RpcError): CniCode {
  // Nobody there, or nobody in time: the agent restarts, and the next attempt may find it.
  if (error.unreachable || error.grpcCode === GrpcCode.unavailable || error.grpcCode === GrpcCode.deadlineExceeded)
    return CniCode.tryAgainLater;
  // A server that does not know the method is of another make or age.
  if (error.grpcCode === GrpcCode.unimplemented) return CniCode.incompatibleApi;
  return CniCode.unknownRpc;
}
