import { describe, expect, test } from "vitest";
import {
  ascii,
  data,
  type echo,
  headers,
  opening,
  requestHeaders,
  ScriptedClient,
  wholeCall,
} from "../../../test/fakes/http2/scripted-client.ts";
import { empty, randomNumbers } from "../../../test/fakes/http2/scripted-server.ts";
import { limits } from "../../limits.ts";
import {
  concat,
  encodeFrame,
  encodeReset,
  encodeSettings,
  encodeWindowUpdate,
  type Frame,
  FrameType,
  flags,
  readUint32,
  settingIds,
} from "../../rpc/h2-frames.ts";
import { encodeHeaders } from "../../rpc/hpack.ts";
import { prefixed } from "../../rpc/message-frame.ts";
import { H2Code } from "./fault.ts";

/** What the headers of a call as `headers` sends it take. */
const headBytes = requestHeaders().reduce((sum, [name, value]) => sum + name.length + value.length, 0);

const bytes32 = (value: number): Uint8Array => new Uint8Array([0, 0, 0, value]);

const dataBytes = (frames: readonly Frame[], stream?: number): number =>
  frames
    .filter((frame) => frame.type === FrameType.data && (stream === undefined || frame.stream === stream))
    .reduce((sum, frame) => sum + frame.payload.length, 0);

/** A request's message in DATA frames as large as they may be. */
function inFrames(stream: number, message: Uint8Array): Uint8Array[] {
  const bytes = prefixed(message);
  const frames: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += 16_384)
    frames.push(data(stream, bytes.subarray(at, at + 16_384), at + 16_384 >= bytes.length ? flags.endStream : 0));
  return frames;
}

describe("answers go out as the windows open", () => {
  const long = (bytes: number) => (call: Parameters<typeof echo>[0]) => {
    call.send(new Uint8Array(bytes).fill(7));
    call.finish(0);
  };

  test("the stream's, the connection's, and a setting that changes the stream's", async () => {
    const client = new ScriptedClient(long(200_000));
    expect(dataBytes(await client.send(concat([opening, wholeCall(1)])))).toBe(65_535);
    expect(await client.send(encodeWindowUpdate(1, 1_000_000))).toEqual([]);
    expect(dataBytes(await client.send(encodeWindowUpdate(0, 34_465)))).toBe(34_465);
    // The stream may send 934,465 more: a smaller initial window leaves it with nothing.
    const shrink = encodeSettings([[settingIds.initialWindowSize, 0]]);
    await client.send(concat([shrink, encodeSettings([[settingIds.initialWindowSize, 0]])]));
    await client.send(encodeWindowUpdate(0, 1_000_000));
    expect(client.answers().get(1)?.data).toHaveLength(200_005);
  });

  test("a window that became negative has to be filled first", async () => {
    const client = new ScriptedClient(long(100_000));
    await client.send(concat([opening, wholeCall(1)]));
    await client.send(concat([encodeWindowUpdate(0, 1_000_000), encodeSettings([[settingIds.initialWindowSize, 5]])]));
    expect(await client.send(encodeWindowUpdate(1, 65_530))).toEqual([]);
    expect(dataBytes(await client.send(encodeWindowUpdate(1, 10)))).toBe(10);
    expect(dataBytes(await client.send(encodeSettings([[settingIds.initialWindowSize, 100_000]])))).toBe(34_460);
  });

  test("several streams share the connection's window, and none waits for another that is held up", async () => {
    const client = new ScriptedClient(long(100_000));
    const narrow = encodeSettings([[settingIds.initialWindowSize, 0]]);
    await client.send(concat([opening, narrow, wholeCall(1), wholeCall(3), wholeCall(5)]));
    expect(dataBytes(client.frames)).toBe(0);
    await client.send(encodeWindowUpdate(5, 30_000));
    expect(dataBytes(client.frames, 5)).toBe(30_000);
    await client.send(concat([encodeWindowUpdate(1, 30_000), encodeWindowUpdate(3, 30_000)]));
    expect(dataBytes(client.frames, 1)).toBe(30_000);
    expect(dataBytes(client.frames)).toBe(65_535);
    await client.send(encodeWindowUpdate(0, 1_000_000));
    expect(dataBytes(client.frames, 3)).toBe(30_000);
  });

  test("in frames as large as the peer takes, and in pieces that a socket takes", async () => {
    const client = new ScriptedClient(long(1_000_000));
    const wide = encodeSettings([
      [settingIds.initialWindowSize, 2_000_000],
      [settingIds.maxFrameSize, 50_000],
    ]);
    client.connection.receive(concat([opening, wide, encodeWindowUpdate(0, 2_000_000), wholeCall(1)]));
    for (let turn = 0; turn < 5; turn++) await Promise.resolve();
    const piece = client.connection.take() ?? new Uint8Array(0);
    expect(piece.length).toBeGreaterThan(limits.writeBytes);
    expect(piece.length).toBeLessThan(limits.writeBytes + 1000);
    const frames = await client.read();
    expect(Math.max(...frames.map(({ payload }) => payload.length))).toBe(50_000);
  });

  test("a stream hears of room once enough has gone out", async () => {
    const message = new Uint8Array(40_000);
    const client = new ScriptedClient((call) => {
      call.send(message);
      expect(call.hasRoom).toBe(true);
      call.send(message);
      call.send(message);
      expect(call.hasRoom).toBe(false);
      return new Promise(() => undefined);
    });
    const narrow = encodeSettings([[settingIds.initialWindowSize, 50_000]]);
    await client.send(concat([opening, narrow, wholeCall(1)]));
    expect(client.events).toEqual(["open 1", "request 1"]);
    await client.send(encodeWindowUpdate(1, 5_000));
    expect(client.events).toContain("room 1");
    expect(client.calls[0]?.hasRoom).toBe(true);
  });
});

describe("requests come as the windows allow", () => {
  test("both windows are given back while the longest message comes, and nothing of it is lost", async () => {
    const message = new Uint8Array(limits.messageBytes).map((_, i) => i % 251);
    const lengths: number[] = [];
    const client = new ScriptedClient((call, received) => {
      lengths.push(Buffer.compare(message, received));
      call.finish(0);
    });
    await client.send(concat([opening, headers(1)]));
    const windows = new Map([
      [0, limits.receiveWindowBytes],
      [1, limits.receiveWindowBytes],
    ]);
    for (const frame of inFrames(1, message)) {
      for (const [stream, left] of windows) windows.set(stream, left - (frame.length - 9));
      expect(Math.min(...windows.values())).toBeGreaterThanOrEqual(0);
      for (const { type, stream, payload } of await client.send(frame))
        if (type === FrameType.windowUpdate) windows.set(stream, (windows.get(stream) ?? 0) + readUint32(payload, 0));
    }
    expect(lengths).toEqual([0]);
    expect(client.memory.heldBytes).toBe(0);
  });

  test("padding is given back as well", async () => {
    const client = new ScriptedClient();
    await client.send(concat([opening, headers(1)]));
    const padding = data(1, concat([new Uint8Array([255]), new Uint8Array(255)]), flags.padded);
    const frames: Frame[] = [];
    // More than two windows in all; something else in between, for padding alone carries nothing on.
    for (let i = 0; i < 10_000; i++) {
      frames.push(...(await client.send(padding)));
      if (i % 500 === 0) await client.send(wholeCall(3 + 2 * i));
    }
    expect(client.goaway()).toBeUndefined();
    expect(frames.filter(({ type, stream }) => type === FrameType.windowUpdate && stream === 1)).toHaveLength(4);
    await client.send(data(1, prefixed(ascii("hello")), flags.endStream));
    expect(client.events).toContain("request 1");
  });

  test("all requests together are held within a bound, and room comes back", async () => {
    const client = new ScriptedClient(() => new Promise(() => undefined));
    const others = limits.requestBytesHeld - 2 * headBytes - 15;
    client.memory.heldBytes = others;
    await client.send(concat([opening, wholeCall(1), wholeCall(3)]));
    expect(client.events).toEqual(["open 1", "request 1", "open 3", "gone 3"]);
    expect(client.answers().get(3)?.trailers).toContainEqual(["grpc-status", "8"]);
    await client.send(encodeReset(1, 8));
    expect(client.memory.heldBytes).toBe(others + headBytes + prefixed(ascii("hello")).length);
  });

  test("headers count too: of calls whose request does not come, and those that are not whole", async () => {
    const client = new ScriptedClient();
    await client.send(concat([opening, headers(1)]));
    expect(client.memory.heldBytes).toBe(headBytes);
    const part = encodeFrame(FrameType.headers, 0, 3, new Uint8Array(1000));
    await client.send(part);
    expect([client.memory.heldBytes, client.connection.heldBytes]).toEqual([headBytes + 1000, headBytes + 1000]);
    client.connection.ended();
    expect([client.memory.heldBytes, client.connection.heldBytes]).toEqual([0, 0]);
  });

  test("where there is no room for headers their call is turned away, unless somebody makes room", async () => {
    const client = new ScriptedClient();
    client.memory.heldBytes = limits.requestBytesHeld;
    expect(await client.send(concat([opening, wholeCall(1)]))).toContainEqual(
      expect.objectContaining({ type: FrameType.rstStream, stream: 1, payload: bytes32(H2Code.refusedStream) }),
    );
    client.memory.makeRoom = () => {
      client.memory.heldBytes = 0;
    };
    await client.send(wholeCall(3));
    expect(client.events).toEqual(["open 3", "request 3"]);
  });
});

describe("a peer that costs more than it should", () => {
  const idOf = (i: number): number => 1 + 2 * i;
  const ping = encodeFrame(FrameType.ping, 0, 0, new Uint8Array(8));
  const most = limits.controlFrames;
  const many = (frame: Uint8Array): Uint8Array => concat(Array.from({ length: most + 1 }, () => frame));

  test.each([
    ["PING", many(ping)],
    ["SETTINGS", many(encodeSettings([]))],
    ["acknowledgements", many(encodeFrame(FrameType.settings, flags.ack, 0, empty))],
    ["WINDOW_UPDATE", many(encodeWindowUpdate(0, 1))],
    ["PRIORITY", many(encodeFrame(FrameType.priority, 0, 9, new Uint8Array(5)))],
    ["unknown frames", many(encodeFrame(99, 0, 0, empty))],
    ["empty DATA", concat([headers(1), many(data(1, empty))])],
    ["headers of calls that are over", concat([wholeCall(1), encodeReset(1, 8), many(headers(1))])],
    ["malformed calls", concat(Array.from({ length: most + 1 }, (_, i) => headers(1 + 2 * i, [["x", "y"]])))],
    [
      "calls and their resets",
      concat(Array.from({ length: most + 1 }, (_, i) => [wholeCall(1 + 2 * i), encodeReset(1 + 2 * i, 8)]).flat()),
    ],
  ])("%s", async (_, bytes) => {
    const client = new ScriptedClient(async () => undefined);
    await client.send(concat([opening, bytes]));
    expect(client.goaway()?.[1]).toBe(H2Code.enhanceYourCalm);
  });

  test("may do so again after a call was answered, a message moved, or some time has passed", async () => {
    const half = concat(Array.from({ length: most - 10 }, () => ping));
    const client = new ScriptedClient();
    await client.send(concat([opening, half]));
    await client.send(wholeCall(1));
    await client.send(half);
    client.connection.refresh();
    await client.send(half);
    await client.send(concat([headers(3), data(3, ascii("x"))]));
    await client.send(half);
    expect(client.goaway()).toBeUndefined();
    await client.send(half);
    expect(client.goaway()?.[1]).toBe(H2Code.enhanceYourCalm);
  });

  test("a long answer through a narrow window is no such thing", async () => {
    const client = new ScriptedClient((call) => {
      call.send(new Uint8Array(300_000));
      call.finish(0);
    });
    await client.send(concat([opening, encodeWindowUpdate(0, 300_000), encodeSettings([[4, 100]]), wholeCall(1)]));
    // As Go's client does, which measures the line by it.
    for (let i = 0; i < 3000; i++) await client.send(concat([ping, encodeWindowUpdate(1, 100)]));
    expect(client.answers().get(1)?.trailers).toEqual([["grpc-status", "0"]]);
  });

  test("nor is a peer that gives back each of many small messages by itself", async () => {
    const messages = 2 * limits.controlFrames;
    const client = new ScriptedClient((call) => {
      for (let i = 0; i < messages; i++) call.send(new Uint8Array(1));
    });
    const frames = await client.send(concat([opening, wholeCall(1)]));
    expect(frames.filter(({ type }) => type === FrameType.data)).toHaveLength(messages);
    const back = concat([encodeWindowUpdate(1, 6), encodeWindowUpdate(0, 6)]);
    await client.send(concat(new Array<Uint8Array>(messages).fill(back)));
    expect(client.goaway()).toBeUndefined();
    // What was never sent cannot be given back without end.
    await client.send(concat(new Array<Uint8Array>(limits.controlFrames).fill(back)));
    expect(client.goaway()).toEqual([1, H2Code.enhanceYourCalm]);
  });

  test("calls beyond the bound are refused, and one that was reset counts until its handler has ended", async () => {
    const ends: (() => void)[] = [];
    const client = new ScriptedClient(() => new Promise((resolve) => ends.push(resolve)));
    const calls = Array.from({ length: limits.concurrentStreams + 1 }, (_, i) => wholeCall(idOf(i)));
    await client.send(concat([opening, ...calls]));
    const refused = idOf(limits.concurrentStreams);
    expect(client.resetOf(refused)).toBe(H2Code.refusedStream);
    await client.send(concat([encodeReset(1, 8), wholeCall(refused + 2)]));
    expect(client.resetOf(refused + 2)).toBe(H2Code.refusedStream);
    ends[0]?.();
    await client.send(empty);
    await client.send(wholeCall(refused + 4));
    expect(client.resetOf(refused + 4)).toBeUndefined();
  });

  test("answers that nobody takes end the connection", async () => {
    const message = new Uint8Array(limits.messageBytes);
    const client = new ScriptedClient((call) => {
      call.send(message);
      call.finish(0);
    });
    await client.send(opening);
    for (let i = 0; i < 18 && client.goaway() === undefined; i++) await client.send(wholeCall(1 + 2 * i));
    expect(client.goaway()).toEqual([33, H2Code.enhanceYourCalm]);
  });

  test("answers that their callers do not want any more do not count", async () => {
    const message = new Uint8Array(limits.messageBytes);
    const client = new ScriptedClient((call) => call.send(message));
    await client.send(opening);
    for (let i = 0; i < 20; i++) await client.send(concat([wholeCall(1 + 2 * i), encodeReset(1 + 2 * i, 8)]));
    for (let i = 20; i < 40; i++) {
      await client.send(wholeCall(1 + 2 * i));
      await client.send(encodeReset(1 + 2 * i, 8));
    }
    expect(client.goaway()).toBeUndefined();
  });
});

describe("whatever comes", () => {
  test("frames by chance, cut by chance, end in answers, resets or GOAWAY, and hold no memory", async () => {
    const random = randomNumbers(20_260_101);
    let ended = 0;
    for (let i = 0; i < 4000; i++) {
      const client = new ScriptedClient();
      const frames = Array.from({ length: 1 + random(12) }, () => {
        const stream = random(8);
        const kind = random(4);
        if (kind === 0) return wholeCall(1 + 2 * stream);
        if (kind === 1) return headers(stream, requestHeaders(), random(2));
        const payload = Uint8Array.from({ length: random(40) }, () => random(256));
        return encodeFrame(random(11), random(64), stream, payload);
      });
      const bytes = concat([opening, ...frames]);
      // A few bytes of some are changed.
      for (let change = random(4); change > 0; change--) bytes[random(bytes.length)] = random(256);
      await client.send(bytes, 1 + random(60));
      if (client.goaway() !== undefined) ended++;
      if (client.goaway() !== undefined) expect(client.connection.isOver).toBe(true);
      client.connection.ended();
      await client.read();
      expect(client.memory.heldBytes).toBe(0);
    }
    // Both happen: the table would be no test if all ended at once, or none.
    expect(ended).toBeGreaterThan(1000);
    expect(ended).toBeLessThan(3900);
  });

  test("garbage behind the opening leads to an end", async () => {
    const random = randomNumbers(7);
    for (let i = 0; i < 300; i++) {
      const client = new ScriptedClient();
      await client.send(concat([opening, Uint8Array.from({ length: 3000 }, () => random(256))]), 1 + random(500));
      client.connection.ended();
      expect(client.memory.heldBytes).toBe(0);
    }
  });

  test("header blocks by chance are answered or end the connection", async () => {
    const random = randomNumbers(11);
    for (let i = 0; i < 2000; i++) {
      const client = new ScriptedClient();
      const block = encodeHeaders(requestHeaders());
      for (let change = 1 + random(5); change > 0; change--) block[random(block.length)] = random(256);
      await client.send(concat([opening, encodeFrame(FrameType.headers, 5, 1, block), wholeCall(3)]));
      const seen = client.goaway() ?? client.resetOf(1) ?? client.answers().get(1);
      expect(seen).toBeDefined();
    }
  });
});
