import type { Exchange } from "../../shared/https/mod.ts";
import type { Change, Frame } from "../../ui/stream/wire.ts";
import type { Follower, Hub } from "./hub.ts";

/** Shorter than what lies between gives an idle answer. */
const heartbeatMs = 15_000;
/** A reader that takes nothing for so long is gone. */
const patienceMs = 60_000;

/**
 * One page's events: first what it does not have, then each change. A page that reads too slowly is left out until it
 * has read; then it gets everything anew, and how many frames it has missed.
 * @param ended when aborted, they are told nothing more
 */
export function streamEvents(
  exchange: Exchange,
  hub: Hub,
  { wishes, kept }: Pick<Follower, "wishes" | "kept">,
  headers: Record<string, string>,
  ended?: AbortSignal,
): void {
  const encoder = new TextEncoder();
  let skipped = 0;
  let isBehind = false;
  let lost: ReturnType<typeof setTimeout> | undefined;
  const stop = (): void => {
    hub.leave(follower);
    clearInterval(beat);
    clearTimeout(lost);
    ended?.removeEventListener("abort", end);
  };
  const end = (): void => {
    stop();
    out.end();
  };
  const write = (text: string): void => {
    if (out.write(encoder.encode(text))) return;
    isBehind = true;
    lost ??= setTimeout(() => out.destroy(), patienceMs);
  };
  const send = (id: string, frame: Frame): void => write(`id: ${id}\ndata: ${JSON.stringify(frame)}\n\n`);
  const follower = {
    wishes,
    kept,
    changed: (id: string, changes: readonly Change[]) => {
      if (isBehind) skipped++;
      else send(id, { changes });
    },
  };
  const drained = (): void => {
    clearTimeout(lost);
    lost = undefined;
    isBehind = false;
    if (skipped === 0) return;
    const missed = skipped;
    skipped = 0;
    send(hub.id, { changes: hub.snapshot(wishes), fresh: true, skipped: missed });
  };
  const out = exchange.stream("text/event-stream; charset=utf-8", { drained, closed: stop }, headers);
  const beat = setInterval(() => {
    if (!isBehind) write(": beat\n\n");
  }, heartbeatMs);
  ended?.addEventListener("abort", end);
  if (ended?.aborted) {
    end();
    return;
  }
  const { fresh, changes } = hub.follow(follower, exchange.header("last-event-id"));
  send(hub.id, { changes, ...(fresh ? { fresh } : {}) });
}
