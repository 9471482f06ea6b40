import { describe, expect, test } from "vitest";
import { JsonRpc, maxRequests, type Reply } from "./json-rpc.ts";
import { maxMessageBytes } from "./json-splitter.ts";
import { MalformedValue } from "./values.ts";

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

/** The core with what it is told and what it sends in hand. */
class Bench {
  readonly told: unknown[] = [];
  readonly replies: Reply[] = [];
  readonly rpc = new JsonRpc((method, params) => {
    if (method === "strange") throw new MalformedValue("it is strange");
    this.told.push([method, params]);
  });

  ask(method = "list_dbs"): number | undefined {
    return this.rpc.request(method, [], (reply) => this.replies.push(reply));
  }

  receive(text: string, pieceBytes = text.length): void {
    const bytes = bytesOf(text);
    for (let at = 0; at < bytes.length; at += pieceBytes) this.rpc.receive(bytes.slice(at, at + pieceBytes));
  }

  sent(): unknown[] {
    const sent: unknown[] = [];
    for (let front = this.rpc.front(); front.length > 0; front = this.rpc.front()) {
      sent.push(JSON.parse(new TextDecoder().decode(front)));
      this.rpc.wrote(front.length);
    }
    return sent;
  }
}

describe("requests", () => {
  test("are answered in any order, each once, a byte at a time", () => {
    const bench = new Bench();
    expect([bench.ask("a"), bench.ask("b")]).toEqual([1, 2]);
    expect(bench.sent()).toEqual([
      { method: "a", params: [], id: 1 },
      { method: "b", params: [], id: 2 },
    ]);
    bench.receive('{"id":2,"result":["x"],"error":null}{"id":1,"result":null,"error":"unknown method"}', 1);
    bench.receive('{"id":1,"result":[],"error":null}');
    expect(bench.replies).toEqual([
      { t: "result", result: ["x"] },
      { t: "error", error: "unknown method" },
    ]);
    expect(bench.rpc).toMatchObject({ fault: undefined, running: 0 });
  });

  test("that are cancelled are told to the server, and their late answers pass", () => {
    const bench = new Bench();
    bench.ask();
    bench.rpc.cancel(1);
    bench.rpc.cancel(1);
    expect(bench.sent().slice(1)).toEqual([{ method: "cancel", params: [1], id: null }]);
    bench.receive('{"id":1,"result":null,"error":"canceled"}');
    expect(bench.replies).toEqual([]);
    expect(bench.rpc.fault).toBeUndefined();
  });

  test("go out in parts as the socket takes them", () => {
    const bench = new Bench();
    bench.ask("some-method");
    const first = new TextDecoder().decode(bench.rpc.front().subarray(0, 10));
    bench.rpc.wrote(10);
    expect(first + new TextDecoder().decode(bench.rpc.front())).toBe('{"method":"some-method","params":[],"id":1}');
  });

  test("are not taken where too many wait, or too many bytes", () => {
    const many = new Bench();
    for (let i = 0; i < maxRequests; i++) many.ask();
    expect(many.ask()).toBeUndefined();
    many.receive('{"id":7,"result":[],"error":null}');
    expect(many.ask()).toBe(maxRequests + 1);

    const long = new Bench();
    const half = "x".repeat(maxMessageBytes - 100);
    const request = () => long.rpc.request("echo", [half], () => undefined);
    expect([request(), request(), request()]).toEqual([1, 2, undefined]);
    expect(long.rpc.request("echo", [half + half], () => undefined)).toBeUndefined();
    expect(long.rpc.fault).toBeUndefined();
  });

  test("end with the connection, once, and there are no others", () => {
    const bench = new Bench();
    bench.ask();
    bench.rpc.end("it is over");
    bench.rpc.end("it is over twice");
    expect(bench.replies).toEqual([{ t: "gone", reason: "it is over" }]);
    expect(bench.ask()).toBeUndefined();
    expect(bench.sent()).toEqual([]);
  });
});

describe("what the server asks", () => {
  test("an echo is answered with what it holds; anything else is unknown", () => {
    const bench = new Bench();
    bench.receive('{"method":"echo","params":["a",{"b":1}],"id":"echo"}{"id":[7],"method":"dance","params":[]}', 1);
    expect(bench.sent()).toEqual([
      { id: "echo", result: ["a", { b: 1 }], error: null },
      { id: [7], result: null, error: "unknown method" },
    ]);
  });

  test("endlessly, without reading the answers, ends the connection", () => {
    const bench = new Bench();
    const echo = JSON.stringify({ method: "echo", params: ["x".repeat(1024 * 1024)], id: "echo" });
    for (let i = 0; i < 70; i++) bench.receive(echo);
    expect(bench.rpc.fault).toBe("the server asks without reading the answers");
    expect(bench.rpc.front()).toHaveLength(0);
  });

  test("notifications are told while they are read", () => {
    const bench = new Bench();
    bench.receive('{"method":"update","params":["m",{}],"id":null}{"method":"locked","params":[]}');
    expect(bench.told).toEqual([
      ["update", ["m", {}]],
      ["locked", []],
    ]);
  });
});

describe("what is malformed ends the connection, with the reason", () => {
  const bad: readonly [text: string, reason: RegExp][] = [
    ["{]", /^a message is not JSON/],
    ['{"a"}', /^a message is not JSON/],
    ['{"a":1', /^undefined$/],
    ["HTTP/1.1 400 Bad Request", /^a message begins with the byte 0x48$/],
    ["{}", /^an answer is to request undefined, which was never made$/],
    ['{"id":2,"result":[],"error":null}', /^an answer is to request 2, which was never made$/],
    ['{"id":"1","result":[],"error":null}', /^an answer is to request "1"/],
    ['{"id":1.5,"result":[]}', /^an answer is to request 1.5/],
    ['{"id":null,"result":[]}', /^an answer is to request null/],
    ['{"id":1}', /^an answer has neither result nor error$/],
    ['{"id":1,"error":null}', /^an answer has neither result nor error$/],
    ['{"method":5,"params":[],"id":null}', /^a request has method 5 and parameters \[\]$/],
    ['{"method":"echo","params":{},"id":1}', /^a request has method "echo" and parameters \{\}$/],
    ['{"method":"strange","params":[],"id":null}', /^a notification "strange" cannot be read: it is strange$/],
  ];
  test.each(bad)("%s", (text, reason) => {
    for (const size of [1, 1000]) {
      const bench = new Bench();
      bench.ask();
      bench.receive(text, size);
      expect(String(bench.rpc.fault)).toMatch(reason);
      expect(bench.replies).toHaveLength(bench.rpc.fault === undefined ? 0 : 1);
      bench.receive('{"method":"update","params":[],"id":null}');
      expect(bench.told).toEqual([]);
    }
  });

  test("what a receiver of ours throws for another reason is not hidden", () => {
    const rpc = new JsonRpc(() => {
      throw new Error("a mistake of ours");
    });
    expect(() => rpc.receive(bytesOf('{"method":"update","params":[],"id":null}'))).toThrow("a mistake of ours");
  });
});
