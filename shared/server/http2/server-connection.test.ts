import { describe, expect, test } from "vitest";
import {
  ascii,
  data,
  echo,
  headers,
  opening,
  requestHeaders,
  ScriptedClient,
  wholeCall,
} from "../../../test/fakes/http2/scripted-client.ts";
import { empty, uint32 } from "../../../test/fakes/http2/scripted-server.ts";
import { limits } from "../../limits.ts";
import {
  concat,
  encodeFrame,
  encodeReset,
  encodeSettings,
  encodeWindowUpdate,
  FrameType,
  flags,
} from "../../rpc/h2-frames.ts";
import { encodeHeaders, type Header } from "../../rpc/hpack.ts";
import { createHuffmanTables, huffmanEncode } from "../../rpc/huffman.ts";
import { prefixed } from "../../rpc/message-frame.ts";
import { H2Code } from "./fault.ts";

const okHead: readonly Header[] = [
  [":status", "200"],
  ["content-type", "application/grpc"],
];
const okTrailers: readonly Header[] = [["grpc-status", "0"]];
const statusOf = (client: ScriptedClient, stream: number): [string | undefined, string | undefined] => {
  const { trailers } = client.answers().get(stream) ?? { trailers: [] };
  const find = (name: string): string | undefined => trailers.find(([each]) => each === name)?.[1];
  return [find("grpc-status"), find("grpc-message")];
};

describe("a call", () => {
  test("is answered with headers, message and trailers, in one piece with what opens the connection", async () => {
    const client = new ScriptedClient(async (call, message) => {
      await Promise.resolve();
      echo(call, message);
    });
    client.connection.receive(concat([opening, wholeCall(1)]));
    expect(client.connection.canWait).toBe(true);
    const frames = await client.read();
    expect(frames.map(({ type, stream, flags: bits }) => [type, stream, bits])).toEqual([
      [FrameType.settings, 0, 0],
      [FrameType.windowUpdate, 0, 0],
      [FrameType.settings, 0, flags.ack],
      [FrameType.headers, 1, flags.endHeaders],
      [FrameType.data, 1, 0],
      [FrameType.headers, 1, flags.endHeaders | flags.endStream],
    ]);
    expect(client.answers().get(1)).toEqual({ headers: okHead, data: prefixed(ascii("hello")), trailers: okTrailers });
    expect(client.connection.take()).toBeUndefined();
    expect(client.connection.isOver).toBe(false);
  });

  test("reads the same however its bytes are cut", async () => {
    const bytes = concat([
      opening,
      wholeCall(1),
      wholeCall(3, ascii("x".repeat(20_000)).subarray(0, 16_000)),
      wholeCall(5),
    ]);
    const whole = new ScriptedClient();
    await whole.send(bytes);
    for (const pieceBytes of [1, 2, 3, 7, 9, 10, 64, 1000]) {
      const client = new ScriptedClient();
      await client.send(bytes, pieceBytes);
      expect(client.events).toEqual(whole.events);
      expect(client.answers()).toEqual(whole.answers());
    }
    // And cut in two at every byte.
    for (let at = 1; at < opening.length + wholeCall(1).length; at++) {
      const client = new ScriptedClient();
      client.connection.receive(bytes.slice(0, at));
      await client.send(bytes.subarray(at));
      expect(client.events).toEqual(whole.events);
    }
  });

  test("tells its path, its metadata and its deadline, in whatever form HPACK has for them", async () => {
    const tables = createHuffmanTables();
    const coded = (text: string): Uint8Array => {
      const bytes = huffmanEncode(tables, text);
      return concat([new Uint8Array([0x80 | bytes.length]), bytes]);
    };
    // POST and http from the table, path and authority in Huffman code and remembered, then all of it from the table.
    const first = concat([
      new Uint8Array([0x83, 0x86, 0x44]),
      coded("/a.B/C"),
      new Uint8Array([0x41]),
      coded("/run/old go/cni.sock"),
      encodeHeaders([
        ["content-type", "application/grpc+proto"],
        ["grpc-timeout", "7S"],
        ["traceparent", "one"],
        ["traceparent", "two"],
      ]),
    ]);
    const second = concat([
      new Uint8Array([0x83, 0x86, 0xbf, 0xbe]),
      encodeHeaders([["content-type", "application/grpc"]]),
    ]);
    const blocks = [first, second].map((block, i) =>
      concat([
        encodeFrame(FrameType.headers, flags.endHeaders, 1 + 2 * i, block),
        data(1 + 2 * i, prefixed(empty), flags.endStream),
      ]),
    );
    const client = new ScriptedClient();
    await client.send(concat([opening, ...blocks]));
    expect(client.calls.map(({ head }) => [head.path, head.timeoutMs, head.metadata("traceparent")])).toEqual([
      ["/a.B/C", 7000, "one"],
      ["/a.B/C", undefined, undefined],
    ]);
    expect(client.goaway()).toBeUndefined();
  });

  test("may have its headers in many frames, padded, with a priority, and its end in a frame of its own", async () => {
    const block = encodeHeaders(requestHeaders());
    const padded = concat([new Uint8Array([3, 0, 0, 0, 0, 16]), block.subarray(0, 20), new Uint8Array(3)]);
    const message = prefixed(ascii("hello"));
    const bytes = concat([
      opening,
      encodeFrame(FrameType.headers, flags.padded | flags.priority, 1, padded),
      encodeFrame(FrameType.continuation, 0, 1, block.subarray(20, 21)),
      encodeFrame(FrameType.continuation, flags.endHeaders, 1, block.subarray(21)),
      data(1, concat([new Uint8Array([2]), message.subarray(0, 4), new Uint8Array(2)]), flags.padded),
      encodeFrame(FrameType.priority, 0, 1, new Uint8Array(5)),
      encodeFrame(0x2a, 0xff, 77, ascii("of a later version")),
      data(1, message.subarray(4)),
      data(1, empty, flags.endStream),
    ]);
    // Also cut between two frames of the headers, where the first waits for the second.
    for (const pieceBytes of [bytes.length, 1, 13, opening.length + 9 + padded.length]) {
      const client = new ScriptedClient();
      await client.send(bytes, pieceBytes);
      expect(client.answers().get(1)?.data).toEqual(message);
    }
  });

  test("may end its request with trailers", async () => {
    const client = new ScriptedClient();
    const trailers = headers(1, [["x", "y"]], flags.endStream);
    await client.send(concat([opening, headers(1), data(1, prefixed(ascii("hello"))), trailers]));
    expect(client.answers().get(1)?.trailers).toEqual(okTrailers);
  });

  test("runs beside others, and each is answered when it is done", async () => {
    const waiting: (() => void)[] = [];
    const client = new ScriptedClient(async (call, message) => {
      await new Promise<void>((resolve) => waiting.push(resolve));
      echo(call, message);
    });
    await client.send(concat([opening, headers(1), headers(3), wholeCall(5, ascii("five"))]));
    await client.send(data(3, prefixed(ascii("three")), flags.endStream));
    await client.send(data(1, prefixed(ascii("one")), flags.endStream));
    expect(client.events.filter((event) => event.startsWith("request"))).toEqual([
      "request 5",
      "request 3",
      "request 1",
    ]);
    for (const go of waiting.reverse()) go();
    await client.read();
    const ended = client.frames
      .filter((frame) => frame.stream > 0 && frame.flags & flags.endStream)
      .map((frame) => frame.stream);
    expect(ended).toEqual([1, 3, 5]);
  });

  test("without a message in its answer is answered with trailers alone, percent-encoded", async () => {
    const client = new ScriptedClient((call) => call.finish(9, "100% of \u7db2\n"));
    await client.send(concat([opening, wholeCall(1)]));
    expect(client.answers().get(1)).toEqual({
      headers: [],
      data: empty,
      trailers: [...okHead, ["grpc-status", "9"], ["grpc-message", "100%25 of %E7%B6%B2%0A"]],
    });
  });

  test("that has ended says no more", async () => {
    const client = new ScriptedClient((call, message) => {
      echo(call, message);
      call.finish(13, "again");
      call.send(message);
    });
    await client.send(concat([opening, wholeCall(1)]));
    expect(client.answers().get(1)?.trailers).toEqual(okTrailers);
    client.calls[0]?.send(ascii("late"));
    expect(await client.read()).toEqual([]);
  });

  test("that the caller resets is told to its handler, and its answer is dropped", async () => {
    let answer = (): void => undefined;
    const client = new ScriptedClient(async (call, message) => {
      await new Promise<void>((resolve) => {
        answer = resolve;
      });
      echo(call, message);
    });
    await client.send(concat([opening, wholeCall(1), encodeReset(1, 8)]));
    expect(client.events).toEqual(["open 1", "request 1", "gone 1"]);
    answer();
    expect(await client.read()).toEqual([]);
  });

  test("is gone with its connection", async () => {
    const client = new ScriptedClient(() => new Promise(() => undefined));
    await client.send(concat([opening, wholeCall(1), headers(3)]));
    client.connection.ended();
    expect(client.events.slice(-2)).toEqual(["gone 1", "gone 3"]);
    expect(client.connection.isOver).toBe(true);
  });
});

describe("a call that cannot be served", () => {
  const message = prefixed(ascii("hello"));
  test.each([
    ["no message", concat([headers(1), data(1, empty, flags.endStream)]), "13", "no whole message"],
    ["no DATA at all", headers(1, requestHeaders(), flags.endStream), "13", "no whole message"],
    [
      "half a message",
      concat([headers(1), data(1, message.subarray(0, 7), flags.endStream)]),
      "13",
      "no whole message",
    ],
    [
      "two messages",
      concat([headers(1), data(1, concat([message, message]), flags.endStream)]),
      "13",
      "behind its message",
    ],
    ["a compressed message", concat([headers(1), data(1, new Uint8Array([1, 0, 0, 0, 0]))]), "12", "compressed"],
    [
      "another encoding",
      concat([headers(1, requestHeaders({ "grpc-encoding": "gzip" })), data(1, message, flags.endStream)]),
      "12",
      "gzip",
    ],
    [
      "a long message",
      concat([headers(1), data(1, concat([new Uint8Array(1), uint32(limits.messageBytes + 1)]))]),
      "8",
      "4194305",
    ],
    ["a strange timeout", headers(1, requestHeaders({ "grpc-timeout": "1 s" })), "13", "1 s"],
  ])("%s", async (_, bytes, status, text) => {
    for (const pieceBytes of [bytes.length, 5]) {
      const client = new ScriptedClient();
      await client.send(concat([opening, bytes]), pieceBytes);
      const [code, words] = statusOf(client, 1);
      expect(code).toBe(status);
      expect(words).toContain(text);
      expect(client.events.filter((event) => event.startsWith("request"))).toEqual([]);
      // The connection goes on, and so does what is left of the refused call.
      await client.send(concat([data(1, empty, flags.endStream), wholeCall(3)]));
      expect(client.events).toContain("request 3");
      expect(client.goaway()).toBeUndefined();
      expect(client.memory.heldBytes).toBe(0);
    }
  });

  test("that is answered before it was heard out is told to say no more", async () => {
    const client = new ScriptedClient();
    await client.send(concat([opening, headers(1, requestHeaders({ "grpc-timeout": "x" })), wholeCall(3)]));
    expect(statusOf(client, 1)[0]).toBe("13");
    expect([client.resetOf(1), client.resetOf(3)]).toEqual([H2Code.noError, undefined]);
  });

  test.each([
    ["another method", { ":method": "GET" }, "405"],
    ["another type", { "content-type": "application/json" }, "415"],
    ["a type that begins alike", { "content-type": "application/grpc-web" }, "415"],
    ["no type", { "content-type": undefined }, "415"],
  ])("%s is HTTP and no gRPC", async (_, change, status) => {
    const client = new ScriptedClient();
    await client.send(concat([opening, headers(1, requestHeaders(change)), wholeCall(3)]));
    expect(client.answers().get(1)?.trailers).toEqual([[":status", status]]);
    expect(client.resetOf(1)).toBe(H2Code.noError);
    expect(client.events).toEqual(["open 3", "request 3"]);
  });

  test.each([
    ["no path", requestHeaders({ ":path": undefined })],
    ["no method", requestHeaders({ ":method": undefined })],
    ["no scheme", requestHeaders({ ":scheme": undefined })],
    ["a name in capitals", requestHeaders({ Trace: "x" })],
    ["a header of HTTP/1", requestHeaders({ connection: "close" })],
    ["another te", requestHeaders({ te: "gzip" })],
    ["an unknown pseudo-header", [[":protocol", "x"], ...requestHeaders()] as Header[]],
    ["a pseudo-header twice", [[":path", "/x"], ...requestHeaders()] as Header[]],
    ["a pseudo-header behind the others", [...requestHeaders({ ":path": undefined }), [":path", "/x"]] as Header[]],
    ["a name of no letters", [...requestHeaders(), ["", "x"]] as Header[]],
  ])("%s is malformed", async (_, list) => {
    const client = new ScriptedClient();
    await client.send(concat([opening, headers(1, list), wholeCall(3)]));
    expect(client.resetOf(1)).toBe(H2Code.protocolError);
    expect(client.events).toEqual(["open 3", "request 3"]);
  });

  test.each([
    ["DATA behind the end", data(1, ascii("more")), H2Code.streamClosed],
    ["headers behind the end", headers(1, [["x", "y"]], flags.endStream), H2Code.streamClosed],
    ["a window beyond 2^31", encodeWindowUpdate(1, 2 ** 31 - 1), H2Code.flowControlError],
    ["a window of nothing", encodeWindowUpdate(1, 0), H2Code.protocolError],
  ])("%s ends its stream only", async (_, bytes, code) => {
    const client = new ScriptedClient((call, message) =>
      call.head.path === "/a.B/C" ? new Promise(() => undefined) : echo(call, message),
    );
    await client.send(concat([opening, wholeCall(1), bytes]));
    expect(client.resetOf(1)).toBe(code);
    expect(client.events).toEqual(["open 1", "request 1", "gone 1"]);
    expect(client.goaway()).toBeUndefined();
  });

  test("trailers that do not end the request end the stream", async () => {
    const client = new ScriptedClient();
    await client.send(concat([opening, headers(1), headers(1, [["x", "y"]])]));
    expect(client.resetOf(1)).toBe(H2Code.protocolError);
    expect(client.events).toEqual(["open 1", "gone 1"]);
  });
});

describe("a connection", () => {
  test("answers PING and SETTINGS, and takes GOAWAY and acknowledgements as they come", async () => {
    const client = new ScriptedClient();
    await client.send(opening);
    const ping = ascii("12345678");
    const frames = await client.send(
      concat([
        encodeFrame(FrameType.ping, 0, 0, ping),
        encodeFrame(FrameType.ping, flags.ack, 0, ping),
        encodeFrame(FrameType.settings, flags.ack, 0, empty),
        encodeSettings([[0x99, 7]]),
        encodeFrame(FrameType.goaway, 0, 0, new Uint8Array(8)),
      ]),
    );
    expect(frames.map(({ type, flags: bits, payload }) => [type, bits, payload])).toEqual([
      [FrameType.ping, flags.ack, ping],
      [FrameType.settings, flags.ack, empty],
    ]);
    expect(client.connection.isOver).toBe(false);
  });

  test("opens at once where no call came along", async () => {
    const client = new ScriptedClient();
    client.connection.receive(opening);
    expect(client.connection.canWait).toBe(false);
    client.connection.receive(headers(1));
    expect(client.connection.canWait).toBe(false);
    expect((await client.read()).map(({ type }) => type)).toEqual([4, 8, 4]);
  });

  test("that leaves says so, finishes what was begun, and takes nothing new", async () => {
    let answer = (): void => undefined;
    const client = new ScriptedClient(async (call, message) => {
      await new Promise<void>((resolve) => {
        answer = resolve;
      });
      echo(call, message);
    });
    await client.send(concat([opening, wholeCall(1)]));
    client.connection.leave();
    client.connection.leave();
    await client.send(concat([wholeCall(3), encodeReset(3, 8), encodeWindowUpdate(3, 1)]));
    expect(client.frames.filter(({ type }) => type === FrameType.goaway)).toHaveLength(1);
    expect(client.goaway()).toEqual([1, H2Code.noError]);
    expect(client.events).toEqual(["open 1", "request 1"]);
    expect(client.connection.isOver).toBe(false);
    answer();
    await client.read();
    expect(client.answers().get(1)?.trailers).toEqual(okTrailers);
    expect(client.connection.isOver).toBe(true);
  });

  test("confirms a smaller table for our headers in its next block, once", async () => {
    const client = new ScriptedClient();
    await client.send(concat([opening, encodeSettings([[1, 100]]), wholeCall(1), wholeCall(3)]));
    const blocks = client.frames.filter(({ type }) => type === FrameType.headers).map(({ payload }) => payload[0]);
    expect(blocks).toEqual([0x20, 0, 0, 0]);
  });
});
