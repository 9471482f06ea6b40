import { pause } from "../../../../shared/async/abortable.ts";
import { isWindows } from "../../../../shared/os/platform.ts";
import { reasonOf } from "../../../../shared/reason.ts";
import { type ConnectionEvent, OpenFlowClient, parseAddress } from "../../../protocols/openflow/mod.ts";
import type { ProgramBounds } from "./bounds.ts";

export interface KeptConnection {
  readonly management: string;
  readonly bounds: ProgramBounds;
  /** Aborted when there is to be no connection any more. */
  readonly closing: AbortSignal;
  /** Uses a connection until it ends, and throws then. */
  serve(client: OpenFlowClient): Promise<never>;
  /** What the switch tells by itself, once it was asked to. */
  heard(event: ConnectionEvent): void;
  /** There is none, and why. */
  down(reason: string): void;
}

/** Connects again and again until `closing`: at once after a restart of the switch, seldom where it stays away. */
export async function keepConnected({
  management,
  bounds,
  closing,
  serve,
  heard,
  down,
}: KeptConnection): Promise<void> {
  const address = parseAddress(management, isWindows);
  const timing = { connectMs: bounds.answerMs, requestMs: bounds.answerMs, idleMs: bounds.idleMs };
  const options = { ...timing, onEvent: heard };
  let goneAt = performance.now();
  let pauseMs: number = bounds.retryFirstMs;
  while (!closing.aborted) {
    const beganAt = performance.now();
    try {
      using client = await OpenFlowClient.connect(address, options);
      const close = (): void => client[Symbol.dispose]();
      closing.addEventListener("abort", close, { once: true });
      if (closing.aborted) close();
      await serve(client).finally(() => closing.removeEventListener("abort", close));
    } catch (caught) {
      down(reasonOf(caught));
    }
    const now = performance.now();
    // A switch that takes connections and ends them at once is no better than none.
    if (now - beganAt > bounds.retryMostMs) [goneAt, pauseMs] = [now, bounds.retryFirstMs];
    else if (now - goneAt > bounds.retryBriskMs) pauseMs = Math.min(2 * pauseMs, bounds.retryMostMs);
    await pause(pauseMs, closing);
  }
}
