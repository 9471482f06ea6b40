import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { nameOf } from "./corpus.ts";
import type { Progress, Report, WorkerOptions } from "./report.ts";
import { SharedInput } from "./shared-input.ts";

/** No input may keep its process busy for longer; a machine that is shared by many is slow now and then. */
const usualHangMs = 30_000;
/** Before its first input a process loads and instruments the product, half a minute's work; the same holds for it. */
const loadMs = 600_000;

export interface Outcome {
  readonly progress: Progress;
  readonly defects: readonly { readonly file: string; readonly kind: string; readonly why: string }[];
}

type Asked = Omit<WorkerOptions, "sharedFile">;

const none: Progress = { t: "progress", inputs: 0, seconds: 0, kept: 0, reached: 0, counters: 0 };

/**
 * Runs a target in a process of its own, with counting code. One that hangs is ended, and the input that it hangs on, or
 * that it died of, is a defect like any other.
 */
export async function supervise(
  asked: Asked,
  onProgress: (progress: Progress) => void = () => undefined,
  hangMs: number = usualHangMs,
): Promise<Outcome> {
  const directory = mkdtempSync(join(tmpdir(), "pipette-fuzz-"));
  const sharedFile = join(directory, "input");
  const shared = SharedInput.create(sharedFile);
  const defects: { file: string; kind: string; why: string }[] = [];
  let progress = none;
  let done = false;
  const onReport = (report: Report): void => {
    if (report.t === "defect") defects.push(report);
    if (report.t === "done") done = true;
    if (report.t !== "progress") return;
    progress = report;
    onProgress(report);
  };
  const worker = join(import.meta.dirname, "worker.ts");
  const preload = join(import.meta.dirname, "preload.ts");
  const options = JSON.stringify({ ...asked, sharedFile } satisfies WorkerOptions);
  const child = Bun.spawn([process.execPath, "--preload", preload, worker, options], {
    stdout: "pipe",
    stderr: "pipe",
    env: { ...process.env, TMPDIR: directory },
  });
  const stopWatching = watch(child, shared, hangMs);
  try {
    const [, stderr] = await Promise.all([readLines(child.stdout, onReport), new Response(child.stderr).text()]);
    await child.exited;
    if (!done) {
      mkdirSync(asked.foundDirectory, { recursive: true });
      const file = join(asked.foundDirectory, nameOf(shared.read()));
      writeFileSync(file, shared.read());
      const how = stopWatching()
        ? `no end after ${hangMs} ms`
        : `the process ended: ${child.signalCode ?? child.exitCode}`;
      defects.push({ file, kind: how, why: `${how}\n${stderr.slice(-4000)}` });
    }
    return { progress, defects };
  } finally {
    stopWatching();
    child.kill("SIGKILL");
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Ends a process that has been at one input for too long; what it answers when called tells whether it had to. */
function watch(child: Bun.Subprocess, shared: SharedInput, hangMs: number): () => boolean {
  let last = { count: -1, at: 0 };
  let hung = false;
  const timer = setInterval(() => {
    const now = performance.now();
    if (shared.count !== last.count) last = { count: shared.count, at: now };
    if (now - last.at < (shared.count === 0 ? Math.max(hangMs, loadMs) : hangMs)) return;
    hung = true;
    child.kill("SIGKILL");
  }, 500);
  return () => {
    clearInterval(timer);
    return hung;
  };
}

async function readLines(stream: ReadableStream<Uint8Array>, onReport: (report: Report) => void): Promise<void> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of stream) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) if (line.startsWith('{"t":')) onReport(JSON.parse(line) as Report);
  }
}
