import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { atOnce, data, headers, opening, wholeCall } from "../../test/fakes/http2/scripted-client.ts";
import { limits } from "../limits.ts";
import { concat, encodeFrame, encodeWindowUpdate, FrameType, frameHeaderBytes, readFrame } from "../rpc/h2-frames.ts";
import type { ServerCall } from "./http2/server-stream.ts";
import { ServedConnection } from "./served-connection.ts";

/** A socket that takes as many bytes as it is told to. */
class ScriptedSocket {
  readonly events: string[] = [];
  readonly written: Uint8Array[] = [];
  /** -1 is a peer that has closed. */
  takes = Number.POSITIVE_INFINITY;

  write(bytes: Uint8Array): number {
    if (this.takes < 0) return -1;
    const part = bytes.slice(0, this.takes);
    this.takes -= part.length;
    if (part.length > 0) this.written.push(part);
    return part.length;
  }

  get types(): number[] {
    const bytes = concat(this.written);
    const types: number[] = [];
    for (let at = 0; at < bytes.length; ) {
      const frame = readFrame(bytes, at);
      if (frame === undefined) break;
      types.push(frame.type);
      at += frameHeaderBytes + frame.payload.length;
    }
    return types;
  }

  pause = (): void => void this.events.push("pause");
  resume = (): void => void this.events.push("resume");
  shutdown = (): void => void this.events.push("shutdown");
  end = (): void => void this.events.push("end");
  terminate = (): void => void this.events.push("terminate");
}

describe("a connection on its socket", () => {
  let socket: ScriptedSocket;
  let connection: ServedConnection;
  let handle: (call: ServerCall, message: Uint8Array) => Promise<void>;

  beforeEach(() => {
    vi.useFakeTimers();
    socket = new ScriptedSocket();
    handle = async (call, message) => {
      call.send(message);
      call.finish(0);
    };
    connection = new ServedConnection(socket as unknown as ConstructorParameters<typeof ServedConnection>[0], {
      memory: { heldBytes: 0 },
      turns: atOnce,
      open: (call) => ({
        request: (message) => handle(call, message),
        room: () => undefined,
        gone: () => undefined,
      }),
    });
  });
  afterEach(() => void vi.useRealTimers());

  const turn = (): Promise<unknown> => vi.advanceTimersByTimeAsync(0);
  const idle = async (): Promise<void> => {
    await vi.advanceTimersByTimeAsync(limits.idleConnectionMs + 1);
    connection.sweep(performance.now());
  };

  test("answers a first call, opening included, in one write", async () => {
    handle = async (call, message) => {
      await Promise.resolve();
      call.send(message);
      call.finish(0);
    };
    connection.receive(concat([opening, wholeCall(1)]));
    expect(socket.written).toHaveLength(0);
    await turn();
    expect(socket.written).toHaveLength(1);
    expect(socket.types).toEqual([4, 8, 4, 1, 0, 1]);
  });

  test("opens by itself where the answer takes long", async () => {
    handle = () => new Promise(() => undefined);
    connection.receive(concat([opening, wholeCall(1)]));
    await vi.advanceTimersByTimeAsync(limits.openingMs);
    expect(socket.types).toEqual([4, 8, 4]);
  });

  test("that takes no bytes is not read from until it does", async () => {
    socket.takes = 10;
    connection.receive(concat([opening, wholeCall(1)]));
    await turn();
    expect(socket.events).toEqual(["pause"]);
    socket.takes = 20;
    connection.flush();
    expect(socket.events).toEqual(["pause"]);
    socket.takes = Number.POSITIVE_INFINITY;
    connection.flush();
    expect(socket.events).toEqual(["pause", "resume"]);
    expect(socket.types).toEqual([4, 8, 4, 1, 0, 1]);
  });

  test("whose bytes carry nothing on is given up, however often they come", async () => {
    connection.receive(concat([opening, headers(1)]));
    for (let i = 0; i < 40; i++) {
      await vi.advanceTimersByTimeAsync(limits.idleConnectionMs / 20);
      connection.receive(new Uint8Array([0]));
      connection.sweep(performance.now());
    }
    expect(socket.events).toContain("terminate");
  });

  test("that takes no bytes for long is given up", async () => {
    socket.takes = 10;
    connection.receive(opening);
    await idle();
    expect(socket.events).toEqual(["pause", "terminate"]);
  });

  test("whose peer has closed is given up at the next write", () => {
    socket.takes = -1;
    connection.receive(opening);
    expect(socket.events).toEqual(["terminate"]);
  });

  test.each([
    ["says nothing", []],
    ["says no more than hello", [opening]],
    ["has its answers", [opening, wholeCall(1)]],
  ])("that %s for long ends with GOAWAY, and not before", async (_, pieces) => {
    for (const piece of pieces) connection.receive(piece);
    await vi.advanceTimersByTimeAsync(limits.idleConnectionMs - 1000);
    connection.sweep(performance.now());
    expect(socket.events).toEqual([]);
    await idle();
    expect(socket.types.at(-1)).toBe(FrameType.goaway);
    expect(socket.events).toEqual(["shutdown"]);
    await idle();
    expect(socket.events).toEqual(["shutdown", "terminate"]);
  });

  test("that has ended still reads: a call that comes too late is dropped, and a fault closes", async () => {
    connection.receive(concat([opening, wholeCall(1)]));
    await turn();
    connection.leave();
    const written = socket.types;
    expect(socket.events).toEqual(["shutdown"]);
    connection.receive(concat([wholeCall(3), encodeFrame(FrameType.ping, 0, 0, new Uint8Array(8))]));
    await turn();
    expect(connection.isHandling).toBe(false);
    expect(socket.types).toEqual(written);
    expect(socket.events).toEqual(["shutdown"]);
    connection.receive(encodeWindowUpdate(0, 0));
    expect(socket.events).toEqual(["shutdown", "end"]);
  });

  test("counts from its last call, also where that is not answered", async () => {
    handle = async (call) => {
      await vi.advanceTimersByTimeAsync(0);
      call.finish(0);
    };
    connection.receive(opening);
    await turn();
    await vi.advanceTimersByTimeAsync(limits.idleConnectionMs - 1000);
    socket.takes = 0;
    connection.receive(wholeCall(1));
    await turn();
    await vi.advanceTimersByTimeAsync(2000);
    connection.sweep(performance.now());
    expect(socket.events).not.toContain("terminate");
  });

  test("with a call at work stays, however long that takes", async () => {
    handle = () => new Promise(() => undefined);
    connection.receive(concat([opening, wholeCall(1)]));
    for (let times = 0; times < 4; times++) await idle();
    expect(socket.types).toEqual([4, 8, 4]);
    expect(socket.events).toEqual([]);
  });

  test.each([
    ["the request", concat([opening, headers(1), data(1, new Uint8Array(3))])],
    [
      "room for the answer",
      concat([opening, wholeCall(1, new Uint8Array(16_000)), encodeFrame(4, 0, 0, new Uint8Array([0, 4, 0, 0, 0, 0]))]),
    ],
  ])("whose peer keeps back %s is told to go, then given up", async (what, bytes) => {
    if (what !== "the request") {
      handle = async (call) => {
        call.send(new Uint8Array(100_000));
        call.finish(0);
      };
    }
    connection.receive(bytes);
    await turn();
    await idle();
    expect(socket.types).toContain(FrameType.goaway);
    expect(socket.events).toEqual([]);
    await idle();
    expect(socket.events).toEqual(["terminate"]);
  });

  test("that breaks the protocol ends once GOAWAY is out", () => {
    socket.takes = 10;
    connection.receive(concat([opening, encodeWindowUpdate(0, 0)]));
    expect(socket.events).toEqual(["pause"]);
    socket.takes = Number.POSITIVE_INFINITY;
    connection.flush();
    expect(socket.types.at(-1)).toBe(FrameType.goaway);
    expect(socket.events.at(-1)).toBe("end");
  });
});
