import { expect, test, vi } from "vitest";
import type { EndSignal } from "../async/late-signal.ts";
import { nextTurn } from "../async/next-turn.ts";
import { CniCode, CniError } from "../errors.ts";
import { createLogger } from "../log.ts";
import { nodeService } from "../proto/services.ts";
import { GrpcCode, RpcError } from "../rpc/rpc-error.ts";
import { callDirectly } from "./direct-call.ts";
import { type CallContext, type CallMetadata, type Rpc, rpc } from "./handlers.ts";

const answer = { removed: [], failures: [], leftOut: 0 };
const gc = (handle: (call: CallContext) => Promise<typeof answer>): readonly Rpc[] => [
  rpc(nodeService.gc, (_, call) => handle(call)),
];

function call(rpcs: readonly Rpc[], signal = new AbortController().signal, metadata: CallMetadata = {}) {
  const lines: string[] = [];
  const logger = createLogger("info", (line) => lines.push(line));
  const options = { ...metadata, timeoutMs: 1_000, signal, logger, what: () => 'Cannot ask the agent at "/s"' };
  return { lines, ended: callDirectly(rpcs, nodeService.gc, { network: "n", valid: [] }, options) };
}

test("a handler has what it would have of a call over the socket", async () => {
  const metadata = { startedUptimeMs: 5, untilUptimeMs: 7, trace: "00-a" };
  const { lines, ended } = call(
    gc(async ({ startedUptimeMs, untilUptimeMs, log }) => {
      log.info("served", { startedUptimeMs, untilUptimeMs });
      return answer;
    }),
    undefined,
    metadata,
  );
  expect(await ended).toBe(answer);
  const line = { message: "served", trace: "00-a", request: expect.any(String), startedUptimeMs: 5, untilUptimeMs: 7 };
  expect(lines.map((text) => JSON.parse(text))).toMatchObject([line]);
});

test("failures are those that a client hears of", async () => {
  const locked = new CniError(CniCode.tryAgainLater, "Cannot take it: it is locked", { details: "by a\nby b" });
  await expect(call(gc(() => Promise.reject(locked))).ended).rejects.toMatchObject({
    grpcCode: GrpcCode.unavailable,
    message: "Cannot take it: it is locked; by a; by b",
    unreachable: false,
  });
  const own = new RpcError(GrpcCode.dataLoss, "Cannot: so");
  await expect(call(gc(() => Promise.reject(own))).ended).rejects.toBe(own);
  await expect(call([]).ended).rejects.toMatchObject({ grpcCode: GrpcCode.unimplemented });
});

test("a handler that takes too long is told so, and nobody waits for it", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  try {
    let seen: EndSignal | undefined;
    const { ended } = call(
      gc(({ signal }) => {
        seen = signal;
        return new Promise(() => undefined);
      }),
    );
    const refused = expect(ended).rejects.toMatchObject({
      grpcCode: GrpcCode.deadlineExceeded,
      message: 'Cannot ask the agent at "/s": there is no answer after 1000 ms',
    });
    // Its timer is set once it has not ended at once.
    await nextTurn();
    vi.advanceTimersByTime(1_000);
    await refused;
    expect(seen?.aborted).toBe(true);
  } finally {
    vi.useRealTimers();
  }
});

test("a handler hears that its caller has gone", async () => {
  const gone = new AbortController();
  const { ended } = call(
    gc(async ({ signal }) => {
      gone.abort();
      expect(signal.aborted).toBe(true);
      return answer;
    }),
    gone.signal,
  );
  expect(await ended).toBe(answer);
});
