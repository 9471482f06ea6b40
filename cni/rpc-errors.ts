import { CniCode, CniError } from "../shared/errors.ts";
import { hasSystemd, isWindows } from "../shared/os/platform.ts";
import { GrpcCode, type RpcError } from "../shared/rpc/rpc-error.ts";

/**
 * The CNI error for a call that got no answer, with the codes of the reference plugin (Antrea's). It appears in a pod's
 * events, read by people who may not know of the agent, so `details` say where to look.
 * @param waitedMs how long the plugin waited for an agent to listen
 */
export function fromRpcError(error: RpcError, socket: string, waitedMs = 0): CniError {
  return new CniError(codeOf(error), error.message, { cause: error, details: detailsOf(error, socket, waitedMs) });
}

function detailsOf(error: RpcError, socket: string, waitedMs: number): string {
  // A text from the server does not name the server.
  if (!error.message.includes(`"${socket}"`)) return `said by the agent at "${socket}"`;
  const where = whereToLook();
  return waitedMs > 0 ? `it was waited for ${waitedMs} ms; ${where}` : where;
}

/** Without a known service manager no command is named, since it would fail. */
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
  // Not reachable, or not in time: the agent may be restarting, so the runtime should try again.
  if (error.unreachable || error.grpcCode === GrpcCode.unavailable || error.grpcCode === GrpcCode.deadlineExceeded)
    return CniCode.tryAgainLater;
  // A server without this method is another implementation, or another version.
  if (error.grpcCode === GrpcCode.unimplemented) return CniCode.incompatibleApi;
  return CniCode.unknownRpc;
}
