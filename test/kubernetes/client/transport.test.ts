import { readFileSync, writeFileSync } from "node:fs";
import {
  createSecureServer,
  type Http2SecureServer,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import { type AddressInfo, createServer } from "node:net";
import { createServer as createTlsServer, type TLSSocket } from "node:tls";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { ApiClient, type ClusterAccess, Connection, type TlsMaterial } from "../../../shared/kubernetes/mod.ts";
import {
  concat,
  encodeFrame,
  encodeGoaway,
  encodeReset,
  encodeSettings,
  FrameType,
  flags,
} from "../../../shared/rpc/h2-frames.ts";
import { encodeHeaders } from "../../../shared/rpc/hpack.ts";
import { eventually } from "../../support/agent-process.ts";
import { Certificates } from "../../support/certificates.ts";
import { describeWith } from "../../support/requires.ts";
import { scratchDir } from "../../support/scratch-dir.ts";

type Headers = Readonly<Record<string, unknown>>;

describeWith("the connection to a server that speaks HTTP/2 and errs", ["linux", "openssl"], () => {
  const scratch = scratchDir();
  const certificates = new Certificates(scratch.path);
  const pem = (name: string): string => readFileSync(certificates.file(name), "utf8");
  const sessions: ServerHttp2Session[] = [];
  const asked: { readonly path: string; readonly client: string | undefined; readonly session: number }[] = [];
  let play: (stream: ServerHttp2Stream, path: string) => void;
  let server: Http2SecureServer;
  let material: TlsMaterial;

  beforeAll(async () => {
    for (const name of ["ca", "other"]) await certificates.make(name);
    for (const name of ["server", "client-1", "client-2"]) await certificates.make(name, "ca", "127.0.0.1");
  });
  afterAll(() => scratch[Symbol.dispose]());

  beforeEach(async () => {
    sessions.length = 0;
    asked.length = 0;
    play = (stream) => ok(stream);
    material = { ca: pem("ca.pem") };
    const { cert, key } = { cert: pem("server.pem"), key: pem("server.key") };
    server = createSecureServer({ cert, key, ca: pem("ca.pem"), requestCert: true, rejectUnauthorized: false });
    server.on("session", (session) => {
      sessions.push(session);
      session.on("error", () => undefined);
    });
    server.on("stream", (stream: ServerHttp2Stream, headers: Headers) => {
      stream.on("error", () => undefined);
      const { session } = stream;
      const peer = (session?.socket as TLSSocket | undefined)?.getPeerCertificate?.();
      const name = peer?.subject === undefined ? undefined : String(peer.subject.CN);
      const path = String(headers[":path"]);
      asked.push({ path, client: name, session: sessions.indexOf(session as ServerHttp2Session) });
      play(stream, path);
    });
    await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", () => resolve()));
  });
  afterEach(async () => {
    for (const session of sessions) session.destroy();
    await new Promise<void>((resolve) => void server.close(() => resolve()));
  });

  const ok = (stream: ServerHttp2Stream): void => {
    stream.respond({ ":status": 200, "content-type": "application/json" });
    stream.end('{"kind":"Status"}');
  };
  const url = (host = "127.0.0.1"): string => `https://${host}:${(server.address() as AddressInfo).port}`;
  const accessTo = (where = url()): ClusterAccess => ({
    server: where,
    tls: () => Promise.resolve(material),
    credentials: { authorization: () => Promise.resolve("Bearer secret"), renew: () => Promise.resolve(false) },
  });
  const ask = { path: "/api", action: "ask" };

  test("a part of an answer never counts as all of it, however it breaks off", async () => {
    // It would be a whole one.
    const part = concat([
      encodeFrame(FrameType.headers, flags.endHeaders, 1, encodeHeaders([[":status", "200"]])),
      encodeFrame(FrameType.data, 0, 1, new TextEncoder().encode('{"items":[]}')),
    ]);
    let fault: (socket: TLSSocket) => void = () => undefined;
    const raw = createTlsServer(
      { cert: pem("server.pem"), key: pem("server.key"), ALPNProtocols: ["h2"] },
      (socket) => {
        socket.on("error", () => undefined);
        socket.once("data", () => {
          socket.write(concat([encodeSettings([]), part]));
          setTimeout(() => fault(socket), 50);
        });
      },
    );
    await new Promise<void>((resolve) => void raw.listen(0, "127.0.0.1", () => resolve()));
    const where = `https://127.0.0.1:${(raw.address() as AddressInfo).port}`;
    const faults: readonly [RegExp, typeof fault][] = [
      [/HTTP\/2 code 2|INTERNAL_ERROR/, (socket) => socket.write(encodeReset(1, 2))],
      [/./, (socket) => socket.end(encodeGoaway(0, 0, "going"))],
      [/./, (socket) => socket.end()],
      [/./, (socket) => socket.destroy()],
      [/./, (socket) => socket.write(new Uint8Array(100).fill(255))],
    ];
    for (const [i, [is, how]] of faults.entries()) {
      fault = how;
      await using client = new ApiClient(accessTo(where));
      const error = await client.get(ask).then(String, (caught: Error) => caught.message);
      expect(error, `fault ${i}`).toMatch(/^Cannot ask: /);
      expect(error, `fault ${i}`).toMatch(is);
    }
    await new Promise<void>((resolve) => void raw.close(() => resolve()));
  });

  test("a stream that is refused, or has no answer, leaves the connection as it is", async () => {
    await using client = new ApiClient(accessTo());
    for (const code of [7, 2]) {
      play = (stream) => stream.close(code);
      await expect(client.get(ask)).rejects.toThrow(/^Cannot ask: /);
      play = ok;
      expect(await client.get(ask)).toEqual({ kind: "Status" });
    }
    expect(asked.map(({ session }) => session)).toEqual([0, 0, 0, 0]);
  });

  test("an answer that ends long before it is read is whole", async () => {
    await using connection = new Connection(accessTo(), {});
    const answer = await connection.request({ method: "GET", path: "/", headers: {} }, new AbortController().signal);
    await Bun.sleep(200);
    const chunks = await Array.fromAsync(answer.body);
    expect(chunks.map((chunk) => new TextDecoder().decode(chunk)).join("")).toBe('{"kind":"Status"}');
  });

  test("a server that says GOAWAY gets no more requests on that connection, and ends those that it has", async () => {
    await using client = new ApiClient(accessTo());
    let slow: ServerHttp2Stream | undefined;
    play = (stream) => {
      slow = stream;
    };
    const first = client.get(ask);
    await eventually(() => slow !== undefined, "the first request");
    slow?.session?.goaway(0);
    await Bun.sleep(100);
    play = ok;
    await client.get(ask);
    expect(asked.map(({ session }) => session)).toEqual([0, 1]);
    if (slow !== undefined) ok(slow);
    expect(await first).toEqual({ kind: "Status" });
  });

  test("a certificate that is rotated is shown from then on, and what is under way goes on", async () => {
    material = { ca: pem("ca.pem"), cert: pem("client-1.pem"), key: pem("client-1.key") };
    await using client = new ApiClient(accessTo());
    let slow: ServerHttp2Stream | undefined;
    play = (stream) => {
      slow = stream;
    };
    const first = client.get(ask);
    await eventually(() => slow !== undefined, "the first request");
    material = { ca: pem("ca.pem"), cert: pem("client-2.pem"), key: pem("client-2.key") };
    play = ok;
    await Promise.all([client.get(ask), client.get(ask)]);
    expect(asked.map(({ client: name, session }) => `${name} ${session}`)).toEqual([
      "client-1 0",
      "client-2 1",
      "client-2 1",
    ]);
    if (slow !== undefined) ok(slow);
    expect(await first).toEqual({ kind: "Status" });
    await eventually(() => sessions[0]?.destroyed === true, "the end of the first connection");
  });

  test("only a server that the authority signed, for the name that was asked, hears the token", async () => {
    const before = process.env["NODE_TLS_REJECT_UNAUTHORIZED"];
    process.env["NODE_TLS_REJECT_UNAUTHORIZED"] = "0";
    const tried = async (tls: TlsMaterial, host?: string): Promise<string> => {
      material = tls;
      await using client = new ApiClient(accessTo(url(host)));
      return await client.get(ask).then(
        () => "answered",
        (error: Error) => error.message,
      );
    };
    try {
      const ca = pem("ca.pem");
      expect(await tried({ ca: pem("other.pem") })).toMatch(/is not trusted .*, wanted one that the given CA signed$/);
      expect(await tried({})).toMatch(/is not trusted/);
      expect(await tried({ ca }, "localhost")).toMatch(/is for another name/);
      expect(await tried({ ca, serverName: "elsewhere.test" })).toMatch(/is for another name/);
      expect(asked).toEqual([]);
      expect(await tried({ ca, serverName: "127.0.0.1" }, "localhost")).toBe("answered");
      expect(await tried({ insecure: true }, "localhost")).toBe("answered");
    } finally {
      if (before === undefined) delete process.env["NODE_TLS_REJECT_UNAUTHORIZED"];
      else process.env["NODE_TLS_REJECT_UNAUTHORIZED"] = before;
    }
  });

  test("who waits for a server that never speaks can stop waiting, and so can all the rest", async () => {
    const mute = createServer(() => undefined);
    await new Promise<void>((resolve) => void mute.listen(0, "127.0.0.1", () => resolve()));
    const client = new ApiClient(accessTo(`https://127.0.0.1:${(mute.address() as AddressInfo).port}`));
    const patience = AbortSignal.timeout(200);
    await expect(client.get({ ...ask, signal: patience })).rejects.toThrow(/^Cannot ask: .*The operation timed out/);
    const waiting = client.get(ask).catch((error: Error) => error.message);
    await client[Symbol.asyncDispose]();
    expect(await waiting).toBe("Cannot ask: the client of the API server has ended");
    mute.close();
  });

  test("a server that takes certificates for tokens is told who asks by what a file holds", async () => {
    writeFileSync(certificates.file("token"), "one");
    material = { ca: pem("ca.pem"), cert: pem("client-1.pem"), key: pem("client-1.key") };
    await using client = new ApiClient(accessTo());
    await client.get(ask);
    expect(asked).toEqual([{ path: "/api", client: "client-1", session: 0 }]);
  });
});
