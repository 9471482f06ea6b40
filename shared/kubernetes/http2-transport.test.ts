import { createServer, type ServerHttp2Stream } from "node:http2";
import { type AddressInfo, connect } from "node:net";
import type { TLSSocket } from "node:tls";
import { afterEach, beforeEach, expect, test } from "vitest";
import { eventually } from "../../test/support/eventually.ts";
import { Http2Session } from "./http2-transport.ts";

let server: ReturnType<typeof createServer>;
let session: Http2Session;
/** What the server does with a stream, and how many have ended there. */
let play: (stream: ServerHttp2Stream, path: string) => void;
let ended: number;

beforeEach(async () => {
  ended = 0;
  server = createServer();
  server.on("stream", (stream, headers) => {
    stream.on("error", () => undefined);
    stream.once("close", () => ended++);
    play(stream as ServerHttp2Stream, String(headers[":path"]));
  });
  server.listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as AddressInfo;
  const url = new URL(`http://127.0.0.1:${port}`);
  session = new Http2Session(url, connect(port, "127.0.0.1") as TLSSocket, { pingMs: 50, pongMs: 20_000 });
});
afterEach(async () => {
  await session.destroy();
  server.close();
});

const ask = (path: string, signal = new AbortController().signal, body = "") =>
  session.request({ method: "POST", path, headers: { "content-type": "text/plain" }, body } as never, signal);
async function textOf(body: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}
const answer = (stream: ServerHttp2Stream): void => {
  stream.respond({ ":status": 201, "x-kind": "answer" });
  stream.write("one ");
};

test("answers with status, headers and the whole body, many at a time", async () => {
  play = (stream, path) => {
    answer(stream);
    stream.end(path);
  };
  const answers = await Promise.all(["/a", "/b", "/c"].map((path) => ask(path)));
  expect(answers.map(({ status, header }) => [status, header("x-kind"), header("x-other")])).toEqual(
    Array(3).fill([201, "answer", undefined]),
  );
  expect(await Promise.all(answers.map(({ body }) => textOf(body)))).toEqual(["one /a", "one /b", "one /c"]);
  expect([session.isOpen, session.isClosed]).toEqual([true, false]);
});

test("that is retired takes no more, ends what is under way, and closes with that", async () => {
  let last: ServerHttp2Stream | undefined;
  play = (stream) => {
    last = stream;
    answer(stream);
  };
  const { body } = await ask("/a");
  session.retire();
  session.retire();
  expect([session.isOpen, session.isClosed]).toEqual([false, false]);
  last?.end("two");
  expect(await textOf(body)).toBe("one two");
  await eventually(() => session.isClosed, "the end of the connection");
});

test("a part of an answer is no answer", async () => {
  play = (stream) => {
    answer(stream);
    stream.destroy(new Error("cut off"));
  };
  await expect(ask("/a").then(({ body }) => textOf(body))).rejects.toThrow();
  play = (stream) => void stream.close(8);
  await expect(ask("/a")).rejects.toThrow();
});

test("a request that is cancelled ends on both sides, before its answer and in it", async () => {
  const controller = new AbortController();
  play = () => controller.abort(new Error("enough"));
  await expect(ask("/a", controller.signal)).rejects.toThrow("enough");
  await expect(ask("/a", controller.signal)).rejects.toThrow("enough");
  const later = new AbortController();
  play = answer;
  const { body } = await ask("/a", later.signal);
  const reading = textOf(body);
  later.abort(new Error("enough"));
  await expect(reading).rejects.toThrow("enough");
  // Who leaves the loop needs no more of it.
  for await (const _ of (await ask("/a")).body) break;
  await eventually(() => ended === 3, "the end of all streams");
});

test("a connection that is lost fails what is under way", async () => {
  play = answer;
  const { body } = await ask("/a");
  await session.destroy();
  await expect(textOf(body)).rejects.toThrow();
  expect([session.isOpen, session.isClosed]).toEqual([false, true]);
});
