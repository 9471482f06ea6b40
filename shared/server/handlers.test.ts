import { describe, expect, test, vi } from "vitest";
import { CniCode, CniError } from "../errors.ts";
import { limits } from "../limits.ts";
import { createLogger } from "../log.ts";
import { ipamService } from "../proto/daemon-services.ts";
import type { LeaseMessage } from "../proto/ipam-messages.ts";
import { nodeService } from "../proto/services.ts";
import { CallTracker } from "./call-tracker.ts";
import { type CallContext, openCalls, type Rpc, rpc, streamingRpc } from "./handlers.ts";
import type { ServerCall } from "./http2/server-stream.ts";

/** A call as its handler's side sees it. */
class ScriptedCall implements ServerCall {
  readonly head: ServerCall["head"];
  readonly sent: Uint8Array[] = [];
  readonly finished: (readonly [code: number, message: string | undefined])[] = [];
  hasRoom = true;

  constructor(path: string, timeoutMs?: number) {
    this.head = { path, metadata: () => undefined, ...(timeoutMs === undefined ? {} : { timeoutMs }) };
  }

  send(message: Uint8Array): void {
    this.sent.push(message);
  }

  finish(code: number, message?: string): void {
    this.finished.push([code, message]);
  }
}

const nothing = new Uint8Array(0);
const open = (rpcs: readonly Rpc[], tracker = new CallTracker()) =>
  openCalls(
    rpcs,
    tracker,
    createLogger("error", () => undefined),
  );
const empty = {
  problems: [],
  version: "",
  pid: 0,
  startedAtMs: 0,
  dataPath: "",
  networks: [],
  callsInFlight: 0,
  departing: 0,
  cluster: "",
  policies: "",
  policyDifferences: [],
  services: "",
  serviceDifferences: [],
  servicesFault: "",
  shortcomings: [],
  refusals: [],
  state: "ready",
  registryTroubles: [],
  peerTroubles: [],
  configuration: [],
};

describe("a handled call", () => {
  test("whose deadline passes is answered so at once, and its handler told, though the caller stays", async () => {
    vi.useFakeTimers();
    try {
      let context: CallContext | undefined;
      const status = rpc(nodeService.status, async (_, call) => {
        context = call;
        await new Promise((resolve) => setTimeout(resolve, 1000));
        return empty;
      });
      const call = new ScriptedCall(nodeService.status.path, 100);
      const handled = open([status])(call).request(nothing);
      await vi.advanceTimersByTimeAsync(99);
      expect(call.finished).toEqual([]);
      await vi.advanceTimersByTimeAsync(1);
      expect(call.finished[0]).toEqual([4, expect.stringContaining("no answer after 100 ms")]);
      expect(context?.signal.aborted).toBe(true);
      await vi.advanceTimersByTimeAsync(1000);
      await handled;
    } finally {
      vi.useRealTimers();
    }
  });

  test("counts its deadline from its headers, and not beyond its end", async () => {
    vi.useFakeTimers();
    try {
      const listen = open([rpc(nodeService.status, async () => empty)]);
      const late = new ScriptedCall(nodeService.status.path, 100);
      listen(late);
      const done = new ScriptedCall(nodeService.status.path, 100);
      await listen(done).request(nothing);
      const gone = new ScriptedCall(nodeService.status.path, 100);
      listen(gone).gone();
      await vi.advanceTimersByTimeAsync(200);
      expect([late, done, gone].map((call) => call.finished.map(([code]) => code))).toEqual([[4], [0], []]);
    } finally {
      vi.useRealTimers();
    }
  });

  test("of a method that is not there is answered before its request comes", () => {
    const call = new ScriptedCall("/a.B/C");
    open([])(call);
    expect(call.finished).toEqual([[12, expect.stringContaining("/a.B/C")]]);
  });

  test("whose answer is too long fails with that, not with the answer", async () => {
    const version = "x".repeat(limits.messageBytes);
    const call = new ScriptedCall(nodeService.status.path);
    await open([rpc(nodeService.status, async () => ({ ...empty, version }))])(call).request(nothing);
    expect(call.sent).toEqual([]);
    expect(call.finished).toEqual([[8, expect.stringContaining("wanted at most 4194304")]]);
  });

  test("that comes when the server stops is turned away", async () => {
    const tracker = new CallTracker();
    await tracker.close(0);
    const call = new ScriptedCall(nodeService.status.path);
    await open([rpc(nodeService.status, async () => empty)], tracker)(call).request(nothing);
    expect(call.finished).toEqual([[14, expect.stringContaining("the server stops")]]);
  });
});

describe("a handled stream", () => {
  const lease: LeaseMessage = {
    network: "pods",
    containerId: "",
    ifname: "",
    address: "",
    gateway: "",
    state: "allocated",
    podNamespace: "",
    podName: "",
    podUid: "",
    generation: 0,
    allocatedAtMs: 0,
    releasedAtMs: 0,
  };
  let produced = 0;
  const list = streamingRpc(ipamService.list, async function* () {
    for (produced = 0; produced < 5; produced++) yield lease;
    throw new CniError(CniCode.tryAgainLater, "Cannot go on");
  });
  const turns = async (): Promise<void> => {
    for (let i = 0; i < 20; i++) await Promise.resolve();
  };

  test("waits for room before it makes the next message, and ends with its failure", async () => {
    const call = new ScriptedCall(ipamService.list.path);
    const handled = open([list])(call);
    call.hasRoom = false;
    const done = handled.request(nothing);
    await turns();
    expect([produced, call.sent.length]).toEqual([0, 1]);
    handled.room();
    await turns();
    expect([produced, call.sent.length]).toEqual([1, 2]);
    call.hasRoom = true;
    handled.room();
    await done;
    expect(call.sent).toHaveLength(5);
    expect(call.finished).toEqual([[14, "Cannot go on"]]);
  });

  test("whose caller has gone while it waited makes no more", async () => {
    const call = new ScriptedCall(ipamService.list.path);
    const handled = open([list])(call);
    call.hasRoom = false;
    const done = handled.request(nothing);
    await turns();
    handled.gone();
    await done;
    expect(call.sent).toHaveLength(1);
  });
});
