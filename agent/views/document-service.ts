import { LateSignal } from "../../shared/async/late-signal.ts";
import { type LogLevel, logLevels } from "../../shared/log.ts";
import { brief } from "../../shared/printable.ts";
import { documentsService } from "../../shared/proto/daemon-services.ts";
import { GrpcCode, RpcError } from "../../shared/rpc/rpc-error.ts";
import { type Rpc, rpc } from "../../shared/server/handlers.ts";
import type { TraceSessions } from "./trace-sessions.ts";
import type { Views } from "./views.ts";

/** What is logged. */
export interface LogLevels {
  level(): LogLevel;
  /** Absent: it stays as it is. @param by who wants it, for the log */
  set?(level: LogLevel, by: string): void;
}

/** The documents of this node, and traces, for those who may use the socket. */
export function documentRpcs(views: Views, levels: LogLevels, traces: Pick<TraceSessions, "answer">): readonly Rpc[] {
  return [
    rpc(documentsService.get, async (request, { signal }) => {
      const made = await views.call(request, LateSignal.real(signal));
      if (made === undefined)
        return { revision: request.ifNotRevision, atMs: 0, json: new Uint8Array(), unchanged: true };
      return { ...made, unchanged: false };
    }),
    rpc(documentsService.logLevel, ({ level }) => {
      if (level !== "") changeLevel(levels, level, "somebody at the socket");
      return Promise.resolve({ level: levels.level() });
    }),
    rpc(documentsService.trace, async ({ json }, { signal }) => ({
      json: await views.counted(() => traces.answer(json, "somebody at the socket", LateSignal.real(signal))),
    })),
  ];
}

/** @throws {RpcError} for what is no level, and where none can be set */
function changeLevel(levels: LogLevels, wanted: string, by: string): void {
  const level = levelOf(wanted);
  if (levels.set === undefined)
    throw new RpcError(GrpcCode.failedPrecondition, "Cannot change the log level: this agent's stays as it is");
  levels.set(level, by);
}

/** @throws {RpcError} for what is no level */
export function levelOf(text: string): LogLevel {
  const level = logLevels.find((one) => one === text);
  if (level !== undefined) return level;
  const is = `it is "${brief(text, 40)}", wanted one of ${logLevels.join(", ")}`;
  throw new RpcError(GrpcCode.invalidArgument, `Cannot change the log level: ${is}`);
}
