import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { decodeAnswers, encodeRequest, type RequestText } from "../../../test/fakes/forward-request.ts";
import { atOnce } from "../../../test/fakes/http2/scripted-client.ts";
import type { EndSignal } from "../../async/late-signal.ts";
import { limits } from "../../limits.ts";
import { createLogger } from "../../log.ts";
import { uptimeMs } from "../../os/uptime.ts";
import { concat } from "../../rpc/h2-frames.ts";
import { CallTracker } from "../call-tracker.ts";
import { ForwardedCalls, maxCallBytes, maxForwardedCalls } from "./forwarded-calls.ts";
import { ForwardedConnection, requestMs } from "./forwarded-connection.ts";
import type { CniRunner, HostedCall } from "./run-forwarded.ts";

const buildId = Uint8Array.from({ length: 16 }, (_, i) => i + 1);
const env = { CNI_COMMAND: "ADD" };

/** A connection with both ends in hand. */
class Peer {
  readonly memory = { heldBytes: 0 };
  readonly connection: ForwardedConnection;
  readonly #parts: Uint8Array[] = [];
  isTrusted = true;

  constructor(calls: ForwardedCalls, memory = { heldBytes: 0 }) {
    this.memory = memory;
    this.connection = new ForwardedConnection({
      calls,
      memory,
      turns: atOnce,
      isTrusted: () => this.isTrusted,
      flush: () => this.#read(),
    });
  }

  get answers() {
    return decodeAnswers(concat(this.#parts));
  }

  async send(request: RequestText, cutAt?: number): Promise<readonly string[]> {
    const bytes = encodeRequest({ env, stdin: "{}", buildId, ...request });
    if (cutAt !== undefined) this.connection.receive(bytes.slice(0, cutAt));
    this.connection.receive(bytes.slice(cutAt ?? 0));
    await settled();
    return this.answers.map(({ kind }) => kind);
  }

  #read(): void {
    for (let part = this.connection.take(); part !== undefined; part = this.connection.take()) this.#parts.push(part);
  }
}

async function settled(): Promise<void> {
  for (let i = 0; i < 20; i++) await Promise.resolve();
}

describe("a connection with one forwarded call", () => {
  let ran: string[];
  let runner: CniRunner;
  let tracker: CallTracker;
  let calls: ForwardedCalls;
  let lines: string[];

  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    ran = [];
    lines = [];
    runner = async (io, hosted) => {
      ran.push(`${io.env["CNI_COMMAND"]} ${new TextDecoder().decode(await io.readStdin())}`);
      hosted.take(30_000);
      io.log("a line");
      await io.writeResult("{}");
      return 0;
    };
    tracker = new CallTracker();
    const run: CniRunner = (io, hosted) => runner(io, hosted);
    const logger = createLogger("info", (line) => lines.push(line));
    calls = new ForwardedCalls({ buildId, runners: { pipette: run } }, tracker, logger);
  });
  afterEach(() => vi.useRealTimers());

  test("is taken, carried out and answered, wherever its bytes are cut", async () => {
    const { length } = encodeRequest({ env, stdin: "{}", buildId });
    for (let cutAt = 0; cutAt < length; cutAt++) {
      const peer = new Peer(calls);
      expect(await peer.send({}, cutAt)).toEqual(["taken", "done"]);
      expect(peer.answers[1]).toMatchObject({ status: 0, stdout: "{}\n", stderr: "a line\n" });
      expect(peer.answers[0]?.moreMs).toBeGreaterThan(29_000);
      expect([peer.connection.isOver, peer.memory.heldBytes, vi.getTimerCount()]).toEqual([true, 0, 0]);
    }
    expect(ran).toHaveLength(length);
    expect(new Set(ran)).toEqual(new Set(["ADD {}"]));
  });

  test("keeps its own copy of what came, whose memory the next connection's bytes overwrite", async () => {
    runner = async (io, hosted) => {
      hosted.take(30_000);
      await Promise.resolve();
      ran.push(new TextDecoder().decode(await io.readStdin()));
      return 0;
    };
    const memory = new Uint8Array(1024);
    const bytes = encodeRequest({ env, stdin: "{}", buildId });
    // At a place that is no multiple of four, as it may lie in a larger buffer.
    memory.set(bytes, 1);
    const peer = new Peer(calls);
    peer.connection.receive(memory.subarray(1, 1 + bytes.length));
    memory.fill(0x78);
    await settled();
    expect([ran, peer.answers.map(({ kind }) => kind)]).toEqual([["{}"], ["taken", "done"]]);
  });

  test.each<readonly [string, RequestText]>([
    ["of another build", { buildId: new Uint8Array(16) }],
    ["of another protocol", { protocol: 2 }],
    ["to a face that is not served", { face: 1 }],
    ["to no face", { face: 7 }],
    ["without variables", { env: {} }],
    ["with variables that cannot be read", { env: new TextEncoder().encode("A=1\0A=2\0") }],
    ["with too many variables", { env: { CNI_ARGS: "x".repeat(70_000) } }],
    ["with a long configuration", { stdin: "x".repeat(maxCallBytes) }],
    ["with one without measure", { stdin: "x".repeat(10_000_000) }],
    ["that nobody waits for any more", { startedUs: 1, untilUs: 2 }],
  ])("one %s is passed, and nothing has been done", async (_, request) => {
    const peer = new Peer(calls);
    expect(await peer.send(request, 10)).toEqual(["pass"]);
    expect([ran, peer.memory.heldBytes, peer.connection.isOver]).toEqual([[], 0, true]);
  });

  test("one of somebody else than root is passed", async () => {
    const peer = new Peer(calls);
    peer.isTrusted = false;
    expect(await peer.send({})).toEqual(["pass"]);
    expect(ran).toEqual([]);
  });

  test("one that comes when the server stops, or has no room, is passed", async () => {
    const full = new Peer(calls, { heldBytes: limits.requestBytesHeld });
    expect(await full.send({})).toEqual(["pass"]);
    await tracker.close(0);
    expect(await new Peer(calls).send({})).toEqual(["pass"]);
    expect(ran).toEqual([]);
  });

  test("there are so many at a time, those at work whose caller has gone among them", async () => {
    const { promise, resolve } = Promise.withResolvers<number>();
    runner = () => promise;
    const peers = Array.from({ length: maxForwardedCalls }, () => new Peer(calls));
    for (const peer of peers) expect(await peer.send({})).toEqual([]);
    peers[0]?.connection.ended();
    expect(await new Peer(calls).send({})).toEqual(["pass"]);
    resolve(0);
    await settled();
    expect(await new Peer(calls).send({})).toEqual(["done"]);
    expect(peers[0]?.answers).toEqual([]);
    expect(peers[1]?.answers).toMatchObject([{ kind: "done", status: 0 }]);
  });

  test("half a request is none: it has a second, and its bytes may be taken back", async () => {
    const bytes = encodeRequest({ env, stdin: "{}", buildId });
    const [slow, pressed] = [new Peer(calls), new Peer(calls)];
    for (const { connection } of [slow, pressed]) connection.receive(bytes.slice(0, 60));
    expect(slow.connection.halfBytes).toBeGreaterThan(0);
    pressed.connection.refuseHalf();
    expect(pressed.connection.heldBytes).toBe(0);
    pressed.connection.receive(bytes.slice(60));
    expect(pressed.answers.map(({ kind }) => kind)).toEqual(["pass"]);
    vi.advanceTimersByTime(requestMs);
    expect([slow.connection.isOver, slow.memory.heldBytes, slow.answers]).toEqual([true, 0, []]);
    slow.connection.receive(bytes.slice(60));
    await settled();
    expect(ran).toEqual([]);
  });

  test("what begins as no request, or goes on behind one, ends without a word", async () => {
    const strange = new Peer(calls);
    strange.connection.receive(new Uint8Array(100));
    expect([strange.connection.isOver, strange.answers]).toEqual([true, []]);
    let signal: EndSignal | undefined;
    runner = (_, hosted) => {
      ({ signal } = hosted);
      return new Promise(() => undefined);
    };
    const talkative = new Peer(calls);
    await talkative.send({});
    expect(signal?.aborted).toBe(false);
    talkative.connection.receive(new Uint8Array(1));
    expect([talkative.connection.isOver, signal?.aborted, talkative.answers]).toEqual([true, true, []]);
  });

  test("a runner passes before anything is done, whatever its plugin makes of it", async () => {
    runner = async (io, hosted) => {
      try {
        hosted.pass();
      } catch {
        await io.writeResult('{"code":7}');
      }
      return 1;
    };
    expect(await new Peer(calls).send({})).toEqual(["pass"]);
  });

  test("one that was lost is ended without an answer, and so is one too long to answer", async () => {
    runner = async (_, hosted) => hosted.lose(new Error("damaged"));
    const lost = new Peer(calls);
    expect([await lost.send({}), lost.connection.isOver]).toEqual([[], true]);
    runner = async (io) => {
      await io.writeResult("x".repeat(5_000_000));
      return 0;
    };
    const long = new Peer(calls);
    expect([await long.send({}), long.connection.isOver]).toEqual([[], true]);
  });

  test("a fault of the plugin is the error that its process would print, and its log is bounded", async () => {
    runner = async (io) => {
      for (let i = 0; i < 3_000; i++) io.log("y".repeat(1_000));
      throw new Error("of our own");
    };
    const peer = new Peer(calls);
    expect(await peer.send({})).toEqual(["done"]);
    const [{ status, stdout, stderr } = { status: 0, stdout: "", stderr: "" }] = peer.answers;
    expect([status, JSON.parse(stdout).code, stdout.endsWith("\n")]).toEqual([1, 100, true]);
    expect(stderr.length).toBeLessThan(1_100_000);
  });

  test("nothing is taken for a caller whose time is over", async () => {
    const taken: unknown[] = [];
    runner = async (_, hosted: HostedCall) => {
      hosted.take(500);
      taken.push(hosted);
      return 0;
    };
    const startedUs = Math.floor(((uptimeMs() ?? 0) - 600) * 1000);
    expect(await new Peer(calls).send({ startedUs })).toEqual(["pass"]);
    expect(taken).toEqual([]);
  });
});
