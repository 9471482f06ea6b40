import type { Page } from "playwright-core";

interface TraceEvent {
  readonly name: string;
  readonly ph: string;
  readonly pid: number;
  readonly tid: number;
  /** Processor time, in microseconds. */
  readonly tdur?: number;
  readonly args?: { readonly name?: string };
}

/**
 * How much processor time the longest piece of a page's own work takes meanwhile: other than a frame's time it does not
 * depend on what else the machine does.
 * @returns milliseconds
 */
export async function longestTask<T>(
  page: Page,
  work: () => Promise<T>,
): Promise<{ readonly ms: number; readonly result: T }> {
  const session = await page.context().newCDPSession(page);
  const events: TraceEvent[] = [];
  session.on("Tracing.dataCollected", ({ value }) => events.push(...(value as unknown as TraceEvent[])));
  await session.send("Tracing.start", {
    transferMode: "ReportEvents",
    traceConfig: { includedCategories: ["toplevel", "devtools.timeline"] },
  });
  const result = await work();
  const complete = new Promise<void>((resolve) => session.once("Tracing.tracingComplete", () => resolve()));
  await session.send("Tracing.end");
  await complete;
  await session.detach();
  const main = events.filter(({ ph, args }) => ph === "M" && args?.name === "CrRendererMain");
  const own = events.filter(
    ({ ph, pid, tid }) => ph === "X" && main.some((each) => each.pid === pid && each.tid === tid),
  );
  return { ms: own.reduce((so, { tdur = 0 }) => Math.max(so, tdur / 1000), 0), result };
}
