import type { TraceDocument, TraceProtocol } from "../../shared/documents/mod.ts";
import { CniCode, CniError } from "../../shared/errors.ts";
import type { OptionSpec } from "../../shared/terminal/command.ts";
import { exitStatus } from "../../shared/terminal/exit-status.ts";
import { printableLines } from "../../shared/terminal/printable.ts";
import type { TerminalIo } from "../../shared/terminal/terminal-io.ts";
import type { DocumentSource } from "../document-source.ts";
import { asData, type OutputForm } from "../output.ts";
import { anybody, NotThere } from "./ends.ts";
import { traceInjected } from "./inject.ts";
import { traceLive } from "./live.ts";
import { traceText } from "./trace-text.ts";

/** Options of a trace that goes by packets. */
export const acrossOptions = {
  inject: { help: "sends a packet in the pod's name, and follows it through the nodes; nobody gets it" },
  live: { help: "waits for the next real connection that matches, and follows its first packet" },
  dropped: { help: "of real connections only those that are dropped (with --live)" },
  follow: {
    value: "TIME",
    help: "how long to wait for one, such as 30s or 5m (with --live; default 1m, at most 10m)",
    rule: {
      wrong: (text: string) => (secondsIn(text) === undefined ? `"${text}"` : undefined),
      wanted: "a time such as 30s or 5m, from 1s to 10m",
    },
  },
  family: { value: "FAMILY", of: ["4", "6"], help: "of the packet's addresses (with --inject)" },
} as const satisfies Readonly<Record<string, OptionSpec>>;

/** Digits and a unit. */
export function secondsIn(text: string): number | undefined {
  const unit = { s: 1, m: 60 }[text.slice(-1)];
  const digits = text.slice(0, -1);
  if (unit === undefined || digits.length === 0 || digits.length > 4) return undefined;
  if ([...digits].some((char) => char < "0" || char > "9")) return undefined;
  const seconds = Number(digits) * unit;
  return seconds >= 1 && seconds <= 600 ? seconds : undefined;
}

export interface AcrossRequest {
  readonly from: string;
  readonly to: string;
  readonly protocol?: TraceProtocol;
  readonly port?: number;
  readonly mode: "inject" | "live";
  readonly dropped: boolean;
  /** Of `--live`. */
  readonly seconds: number;
  readonly family?: 4 | 6;
}

/** @throws {CniError} */
export function traceAcross(
  source: DocumentSource,
  { mode, dropped, seconds, family, ...ends }: AcrossRequest,
  signal: AbortSignal,
): Promise<TraceDocument> {
  if (mode === "inject") return traceInjected(source, { ...ends, ...(family && { family }) }, signal);
  if (ends.from === anybody && ends.to === anybody)
    throw new CniError(CniCode.invalidConfig, 'Cannot trace packets: both ends are "any", wanted a pod as one of them');
  return traceLive(source, { ...ends, dropped, seconds }, signal);
}

const statuses: Readonly<Record<TraceDocument["verdict"]["t"], number>> = {
  delivered: exitStatus.done,
  forwardedOutOfNetwork: exitStatus.done,
  forwarded: exitStatus.done,
  dropped: exitStatus.failed,
  rejected: exitStatus.failed,
  lost: exitStatus.failed,
  unknown: exitStatus.cannotTell,
  nothing: exitStatus.notThere,
};

/** Traces, and prints the way. @returns the exit status */
export async function printTrace(
  open: () => Promise<DocumentSource>,
  request: AcrossRequest,
  form: OutputForm,
  io: TerminalIo,
): Promise<number> {
  const signal = new AbortController().signal;
  try {
    await using source = await open();
    if (request.mode === "live" && io.stderrIsTerminal)
      io.stderr(`waiting up to ${request.seconds} s for a connection that matches ...\n`);
    const trace = await traceAcross(source, request, signal);
    io.stdout(form === "json" || form === "yaml" ? asData(form, trace) : traceText(trace));
    for (const { reason } of trace.failures) io.stderr(`${printableLines(reason)}\n`);
    return statuses[trace.verdict.t];
  } catch (caught) {
    const { message } = CniError.from(caught, "trace packets");
    io.stderr(`${printableLines(message)}\n`);
    return caught instanceof NotThere ? exitStatus.notThere : exitStatus.cannotTell;
  }
}
