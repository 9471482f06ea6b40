import { readFileSync } from "node:fs";
import { connect as connectHttp2 } from "node:http2";
import { request as requestHttps } from "node:https";
import { connect as connectTcp } from "node:net";
import { connect as connectTls } from "node:tls";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Certificates } from "../../test/support/certificates.ts";
import { eventually } from "../../test/support/eventually.ts";
import { describeWith } from "../../test/support/requires.ts";
import { scratchDir } from "../../test/support/scratch-dir.ts";
import type { Exchange, WatchOut } from "./exchange.ts";
import { HttpsServer, type ServerTls } from "./https-server.ts";

describeWith("the HTTPS server", ["openssl"], () => {
  let resources: AsyncDisposableStack;
  let certificates: Certificates;
  let server: HttpsServer;
  let handle: (exchange: Exchange) => void;
  // A handshake takes time on a busy machine.
  const patientMs = 30_000;
  const impatientMs = 300;

  const text = (file: string): string => readFileSync(certificates.file(file), "utf8");
  const tlsOf = (name: string): ServerTls => ({
    cert: text(`${name}.pem`),
    key: text(`${name}.key`),
    clientCas: [text("clients.pem")],
  });

  beforeEach(async () => {
    resources = new AsyncDisposableStack();
    certificates = new Certificates(resources.use(scratchDir()).path);
    for (const name of ["ca", "clients", "strangers"]) await certificates.make(name);
    for (const name of ["server", "renewed"]) await certificates.make(name, "ca", "127.0.0.1");
    await certificates.make("known", "clients");
    await certificates.make("unknown", "strangers");
    handle = (exchange) => exchange.answer(200, "text/plain", "ok");
    server = await listen(patientMs);
  });
  afterEach(() => resources.disposeAsync());

  /** @param strangerMs how long a client that is not known may be silent */
  async function listen(strangerMs: number): Promise<HttpsServer> {
    const place = { host: "127.0.0.1", port: 0 };
    return resources.use(
      await HttpsServer.listen(place, tlsOf("server"), (exchange) => handle(exchange), { strangerMs }),
    );
  }

  /** @param as whose certificate the client shows */
  const clientTls = (as?: string) => ({
    ca: text("ca.pem"),
    ...(as === undefined ? {} : { cert: text(`${as}.pem`), key: text(`${as}.key`) }),
  });

  function overHttp1(as?: string): Promise<string> {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const asked = requestHttps({ host: "127.0.0.1", port: server.port, agent: false, ...clientTls(as) }, (answer) =>
      answer.once("data", (chunk) => resolve(String(chunk))),
    );
    asked.once("error", reject);
    asked.end();
    return promise;
  }

  async function overHttp2(as?: string): Promise<string> {
    const session = connectHttp2(`https://127.0.0.1:${server.port}`, clientTls(as));
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    session.once("error", reject);
    const stream = session.request({ ":path": "/" });
    stream.once("data", (chunk) => resolve(String(chunk)));
    stream.once("error", reject);
    return await promise.finally(() => session.destroy());
  }

  test.each([
    ["HTTP/1.1", overHttp1],
    ["HTTP/2", overHttp2],
  ])("over %s only a certificate that a known authority has signed says who a client is", async (_, ask) => {
    handle = (exchange) =>
      exchange.answer(200, "text/plain", exchange.certificate === undefined ? "nobody" : "somebody");
    expect(await ask()).toBe("nobody");
    expect(await ask("known")).toBe("somebody");
    expect(await ask("unknown")).toBe("nobody");
  });

  test.each(["HTTP/1.1", "HTTP/2"])("a certificate is replaced while a watch over %s goes on", async (name) => {
    let out: WatchOut | undefined;
    handle = (exchange) => {
      out = exchange.stream("text/plain", { drained: () => undefined, closed: () => undefined });
      out.write(new TextEncoder().encode("first"));
    };
    const heard: string[] = [];
    const take = (chunk: unknown): void => void heard.push(String(chunk));
    if (name === "HTTP/2") {
      const session = connectHttp2(`https://127.0.0.1:${server.port}`, clientTls());
      resources.defer(() => session.destroy());
      session.request({ ":path": "/" }).on("data", take);
    } else {
      const place = { host: "127.0.0.1", port: server.port, agent: false, ...clientTls() };
      const asked = requestHttps(place, (answer) => answer.on("data", take));
      resources.defer(() => void asked.destroy());
      asked.on("error", () => undefined);
      asked.end();
    }
    await eventually(() => heard.length === 1, "the first piece");
    const shown = async (): Promise<string | undefined> => {
      const socket = connectTls({ host: "127.0.0.1", port: server.port, ...clientTls() });
      await new Promise((resolve) => socket.once("secureConnect", resolve));
      const { subject } = socket.getPeerCertificate();
      socket.destroy();
      return String(subject.CN);
    };
    expect(await shown()).toBe("server");
    server.replaceTls(tlsOf("renewed"));
    expect(await shown()).toBe("renewed");
    out?.write(new TextEncoder().encode("second"));
    await eventually(() => heard.join(" ") === "first second", "the second piece");
  });

  test.each([
    ["with other authorities of clients", [], true],
    ["with another certificate of its own", undefined, false],
  ] as const)("%s the connection of a client that is not known ends: %j, %j", async (_, before, ends) => {
    // None ends for its silence.
    server = await listen(10 * patientMs);
    const { clientCas, ...own } = tlsOf("server");
    server.replaceTls({ ...own, ...(before === undefined ? { clientCas: clientCas ?? [] } : { clientCas: before }) });
    handle = (exchange) => {
      if (exchange.header("authorization") !== undefined) exchange.authenticated();
      exchange.answer(200, "text/plain", exchange.certificate === undefined ? "nobody" : "somebody");
    };
    const ended: string[] = [];
    const connected = (name: string, headers: Record<string, string>) => {
      const session = connectHttp2(`https://127.0.0.1:${server.port}`, clientTls("known"));
      resources.defer(() => session.destroy());
      session.on("error", () => undefined);
      session.once("close", () => ended.push(name));
      return () => {
        const stream = session.request({ ":path": "/", ...headers });
        return new Promise((resolve) => stream.once("data", (chunk) => resolve(String(chunk))));
      };
    };
    const [stranger, withToken] = [connected("stranger", {}), connected("with a token", { authorization: "x" })];
    const first = ends ? "nobody" : "somebody";
    expect([await stranger(), await withToken()]).toEqual([first, first]);
    server.replaceTls(tlsOf("renewed"));
    if (ends) await eventually(() => ended.length > 0, "the end of the stranger's");
    // One that is known goes on, and whoever comes anew is judged by what counts now.
    expect([await withToken(), await overHttp2("known"), ended]).toEqual([first, "somebody", ends ? ["stranger"] : []]);
  });

  test("who connects and asks for nothing is cut off, before a handshake and after it", async () => {
    server = await listen(impatientMs);
    const closed: string[] = [];
    const tcp = connectTcp(server.port, "127.0.0.1");
    const tls = connectTls({ host: "127.0.0.1", port: server.port, ...clientTls() });
    for (const [name, socket] of [
      ["tcp", tcp],
      ["tls", tls],
    ] as const) {
      socket.on("error", () => undefined);
      socket.once("close", () => closed.push(name));
      socket.resume();
    }
    await eventually(() => server.connections === 2, "both connections");
    await eventually(() => closed.length === 2 && server.connections === 0, "the end of both");
  });

  test("without a certificate it is plain HTTP, with the same bounds", async () => {
    const bounds = { strangerMs: patientMs / 10, maxConnections: 2 };
    const place = { host: "127.0.0.1", port: 0 };
    server = resources.use(await HttpsServer.listen(place, undefined, (exchange) => handle(exchange), bounds));
    const asked: (Uint8Array | undefined)[] = [];
    handle = (exchange) => {
      asked.push(exchange.certificate);
      exchange.answer(200, "text/plain", exchange.path);
    };
    expect(await (await fetch(`http://127.0.0.1:${server.port}/metrics`)).text()).toBe("/metrics");
    expect(asked).toEqual([undefined]);
    await eventually(() => server.connections === 0, "the end of one that asks no more");
    const closed: number[] = [];
    const sockets = [0, 1, 2].map((number) => {
      const socket = connectTcp(server.port, "127.0.0.1");
      socket.on("error", () => undefined);
      socket.once("close", () => closed.push(number));
      return socket.resume();
    });
    await eventually(() => closed.length === 1, "the end of one too many");
    expect(server.connections).toBe(2);
    await eventually(() => closed.length === 3, "the end of the others, who ask for nothing");
    for (const socket of sockets) socket.destroy();
  });

  test.each([
    ["of somebody who is known stays, though nothing is asked any more", true],
    ["of somebody who is not known ends some time after its answer", false],
  ])("a connection %s", async (_, isKnown) => {
    server = await listen(patientMs / 10);
    handle = (exchange) => {
      if (isKnown) exchange.authenticated();
      exchange.answer(200, "text/plain", "ok");
    };
    const session = connectHttp2(`https://127.0.0.1:${server.port}`, clientTls());
    resources.defer(() => session.destroy());
    session.on("error", () => undefined);
    const stream = session.request({ ":path": "/" });
    expect(await new Promise((resolve) => stream.once("data", (chunk) => resolve(String(chunk))))).toBe("ok");
    await Bun.sleep(patientMs / 10 + impatientMs);
    await eventually(() => server.connections === (isKnown ? 1 : 0), "what becomes of it");
  });

  test("an answer that goes on is not cut off, whoever gets it", async () => {
    server = await listen(patientMs / 10);
    let out: WatchOut | undefined;
    handle = (exchange) => {
      out = exchange.stream("text/plain", { drained: () => undefined, closed: () => undefined });
      out.write(new TextEncoder().encode("first"));
    };
    const session = connectHttp2(`https://127.0.0.1:${server.port}`, clientTls());
    resources.defer(() => session.destroy());
    const heard: string[] = [];
    session.request({ ":path": "/" }).on("data", (chunk) => heard.push(String(chunk)));
    await eventually(() => heard.length === 1, "the first piece");
    await Bun.sleep(patientMs / 10 + impatientMs);
    out?.write(new TextEncoder().encode("second"));
    await eventually(() => heard.length === 2, "the second piece");
  });

  test("a body ends at its bound, and another request on the connection is answered", async () => {
    handle = (exchange) => {
      const said = (text: string): void => exchange.answer(200, "text/plain", text);
      exchange.body(10).then(
        ({ length }) => said(String(length)),
        (caught) => said(caught.message),
      );
    };
    const session = connectHttp2(`https://127.0.0.1:${server.port}`, clientTls());
    resources.defer(() => session.destroy());
    const post = (body: string): Promise<string> => {
      const stream = session.request({ ":path": "/", ":method": "POST" });
      stream.end(body);
      return new Promise((resolve) => stream.once("data", (chunk) => resolve(String(chunk))));
    };
    expect(await post("0123456789")).toBe("10");
    expect(await post("0123456789a")).toBe("the body has more than 10 bytes");
    expect(await post("012")).toBe("3");
  });
});
