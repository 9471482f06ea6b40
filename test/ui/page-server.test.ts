import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { EventCutter } from "../../ui/stream/sse.ts";
import { changed } from "../../ui/stream/store.ts";
import type { Frame } from "../../ui/stream/wire.ts";
import { eventually } from "../support/eventually.ts";
import { generatedNodes } from "./generated-documents.ts";
import { GeneratedSource } from "./generated-source.ts";
import { ServedPage } from "./served-page.ts";

const script = { "x-pipette-page": "1", "content-type": "application/json" };

describe("the page's server", () => {
  let source: GeneratedSource;
  let page: ServedPage;
  let cookie: string;
  let key: string;

  const enter = (token: string, headers: Record<string, string> = script): Promise<Response> =>
    fetch(`${page.origin}/api/v1/session`, { method: "POST", headers, body: JSON.stringify({ token }) });
  const ask = (path: string, headers: Record<string, string> = {}): Promise<Response> =>
    fetch(`${page.origin}${path}`, { headers: { cookie, "x-pipette-page": key, ...headers } });
  const command = (body: unknown, headers: Record<string, string> = {}): Promise<Response> =>
    fetch(`${page.origin}/api/v1/commands`, {
      method: "POST",
      headers: { cookie, ...script, "x-pipette-page": key, ...headers },
      body: typeof body === "string" ? body : JSON.stringify(body),
    });

  beforeAll(async () => {
    source = new GeneratedSource(generatedNodes(2, 3));
    page = await ServedPage.of(source, { node: ["--config", "/etc/a b.yaml"] });
    const entered = await enter(page.token);
    cookie = entered.headers.get("set-cookie")?.split(";")[0] ?? "";
    key = ((await entered.json()) as { key: string }).key;
  });
  afterAll(() => page[Symbol.asyncDispose]());

  test("its token opens it once", async () => {
    await using other = await ServedPage.of(source);
    const use = (token: string): Promise<Response> =>
      fetch(`${other.origin}/api/v1/session`, { method: "POST", headers: script, body: JSON.stringify({ token }) });
    expect((await use("x")).status).toBe(403);
    const first = await use(other.token);
    expect(first.status).toBe(200);
    expect(first.headers.get("set-cookie")).toMatch(/^pipette-\d+=[\w-]{43}; HttpOnly; SameSite=Strict; Path=\/$/);
    const second = await use(other.token);
    expect(second.status).toBe(403);
    expect(await second.json()).toMatchObject({ message: "the address has been used already" });
    // A cookie of one is none of the other.
    const foreign = { headers: { cookie, "x-pipette-page": key } };
    expect((await fetch(`${other.origin}/api/v1/about`, foreign)).status).toBe(401);
  });

  test("after ten wrong tokens the right one does not open it either", async () => {
    await using other = await ServedPage.of(source);
    const use = (token: unknown): Promise<Response> =>
      fetch(`${other.origin}/api/v1/session`, { method: "POST", headers: script, body: JSON.stringify({ token }) });
    for (let i = 0; i < 10; i++) await use(i % 2 === 0 ? 7 : `${other.token}x`);
    expect((await use(other.token)).status).toBe(403);
  });

  test.each([
    ["no cookie", { cookie: "" }, 401],
    ["another cookie", { cookie: "pipette=1" }, 401],
    ["the cookie alone, which servers on other ports are sent too", { "x-pipette-page": "" }, 401],
    ["the cookie with what asks to be let in", { "x-pipette-page": "1" }, 401],
    ["the key of somebody else", { "x-pipette-page": "x".repeat(43) }, 401],
    ["the key alone", { cookie: "pipette=1" }, 401],
    ["the host of somebody else", { host: "evil.example" }, 403],
    ["the host of somebody else who uses our port", { host: "evil.example:PORT" }, 403],
    ["no port in the host", { host: "127.0.0.1" }, 403],
    ["the origin of somebody else", { origin: "http://evil.example" }, 403],
    ["an origin that is none", { origin: "null" }, 403],
    ["a page of another site", { "sec-fetch-site": "cross-site" }, 403],
    ["a page of another port of this machine", { "sec-fetch-site": "same-site" }, 403],
  ])(
    "refuses %s; to the page itself, which tells nothing, only a host that is not ours",
    async (_, headers, status) => {
      const port = new URL(page.origin).port;
      const changed = Object.fromEntries(
        Object.entries(headers).map(([key, text]) => [key, text.replace("PORT", port)]),
      );
      expect((await ask("/api/v1/about", changed)).status).toBe(status);
      expect((await ask("/", changed)).status).toBe("host" in headers ? 403 : 200);
    },
  );

  test("takes no command without the header that only its own page sends, and none that is not offered", async () => {
    const doctor = { name: "doctor", fields: {} };
    expect((await command(doctor, { "x-pipette-page": "" })).status).toBe(401);
    expect((await command(doctor, { "x-pipette-page": "1" })).status).toBe(401);
    expect((await enter(page.token, { "content-type": "application/json" })).status).toBe(403);
    expect((await command(doctor, { "content-type": "text/plain" })).status).toBe(415);
    expect((await ask("/api/v1/commands")).status).toBe(404);
    // There is no API server here.
    expect((await command({ name: "matrix", fields: {} })).status).toBe(404);
    for (const name of ["cleanup", "constructor", "__proto__", ""])
      expect((await command({ name, fields: {} })).status).toBe(404);
    for (const body of ["{", "[]", "1", { name: 1 }, { name: "doctor" }, { name: "doctor", fields: { a: 1 } }])
      expect((await command(body)).status).toBe(400);
    for (const from of ["", "-x", "--control=/etc", "a\nb"])
      expect((await command({ name: "trace", fields: { from, to: "b" } })).status).toBe(422);
    expect((await command({ name: "trace", fields: { from: "x".repeat(700), to: "b" } })).status).toBe(413);
    expect(page.program.started).toEqual([]);
  });

  test("says which command it would be, and runs only that", async () => {
    const trace = { name: "trace", fields: { from: "shop/web", to: "it's; rm -rf /", protocol: "tcp", port: "80" } };
    const line = "pipette trace shop/web 'it'\\''s; rm -rf /' --tcp 80 --json --config '/etc/a b.yaml'";
    expect(await (await command({ ...trace, preview: true })).json()).toEqual({ line });
    expect(page.program.started).toEqual([]);
    page.program.answers.set("trace", { status: 1, json: { verdict: {} } });
    expect(await (await command(trace)).json()).toEqual({ line, status: 1, json: { verdict: {} }, said: "" });
    const args = ["trace", "shop/web", "it's; rm -rf /", "--tcp", "80", "--json", "--config", "/etc/a b.yaml"];
    expect(page.program.started).toEqual([{ args, input: "" }]);
  });

  test("has no answer without the headers that keep others out", async () => {
    for (const path of ["/", "/api/v1/about", "/api/v1/none", "/api/v1/events?topics=cluster"]) {
      const stop = new AbortController();
      const { headers } = await fetch(`${page.origin}${path}`, {
        headers: { cookie, "x-pipette-page": key },
        signal: stop.signal,
      });
      stop.abort();
      expect(headers.get("content-security-policy")).toMatch(
        /^default-src 'none'; script-src 'self'; .*frame-ancestors 'none'$/,
      );
      expect(headers.get("content-security-policy")).not.toContain("unsafe");
      expect(headers.get("x-content-type-options")).toBe("nosniff");
      expect(headers.get("referrer-policy")).toBe("no-referrer");
      expect(headers.get("cross-origin-opener-policy")).toBe("same-origin");
    }
  });

  test.each(["*/nothing", "a b/pods", "../pods", "a/pods/b/c", "*/pods/x", "cluster,%2"])(
    "refuses the topic %s",
    async (topic) => {
      const answer = await ask(`/api/v1/events?topics=${encodeURIComponent(topic)}`);
      expect(answer.status).toBe(400);
    },
  );

  test("garbage on its port harms nobody", async () => {
    for (const bytes of ["PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GET / HTTP/1.1\r\n\r\n", "\0".repeat(200)]) {
      const socket = connect(Number(new URL(page.origin).port), "127.0.0.1");
      socket.on("error", () => undefined);
      socket.end(bytes);
    }
    expect((await ask("/api/v1/about")).status).toBe(200);
  });

  /** Reads a stream of events, as the page does. */
  class Reader implements Disposable {
    readonly frames: { readonly id: string; readonly frame: Frame }[] = [];
    readonly #stop = new AbortController();

    constructor(topics: string, more: Record<string, string> = {}, kept = "") {
      void this.#read(`/api/v1/events?topics=${topics}&kept=${kept}`, more).catch(() => undefined);
    }

    async #read(path: string, headers: Record<string, string>): Promise<void> {
      const signal = this.#stop.signal;
      const { body } = await fetch(`${page.origin}${path}`, {
        headers: { cookie, "x-pipette-page": key, ...headers },
        signal,
      });
      const cutter = new EventCutter();
      const decoder = new TextDecoder();
      for await (const bytes of body ?? [])
        for (const { id, data } of cutter.take(decoder.decode(bytes, { stream: true })))
          this.frames.push({ id, frame: JSON.parse(data) });
    }

    get last(): string {
      return this.frames.at(-1)?.id ?? "";
    }

    /** What the page would have. */
    get has() {
      return this.frames.reduce((has, { frame }) => changed(has, frame.changes) ?? new Map(), changed(new Map(), [])!);
    }

    [Symbol.dispose](): void {
      this.#stop.abort();
    }
  }

  const podNames = (reader: Reader): unknown =>
    (reader.has.get("node-1/pods")?.document as { pods: { podName: string }[] } | undefined)?.pods.map(
      ({ podName }) => podName,
    );
  const addPod = (podName: string): void =>
    source.change("node-1", "pods", (before) => ({
      ...before,
      pods: [...before.pods, { ...before.pods[0]!, podName, containerId: podName }],
    }));

  test("a stream that breaks goes on where it was, by changes alone", async () => {
    const first = new Reader("*/pods");
    await eventually(() => first.has.size === 2, "both nodes' pods");
    addPod("during");
    await eventually(() => `${podNames(first)}`.endsWith("during"), "the new pod");
    const { last } = first;
    const before = first.has;
    first[Symbol.dispose]();
    addPod("meanwhile");
    using second = new Reader("*/pods", { "last-event-id": last }, "*/pods");
    const changes = await eventually(() => {
      const all = second.frames.flatMap(({ frame }) => frame.changes);
      return all.length > 0 && all;
    }, "what came meanwhile");
    expect(second.frames[0]?.frame.fresh).toBeUndefined();
    expect(changes).toHaveLength(1);
    expect(changes[0]).toMatchObject({ topic: "node-1/pods", steps: [{ do: "rows", gone: 0 }] });
    const after = changed(before, changes)?.get("node-1/pods")?.document as { pods: { podName: string }[] };
    expect(after.pods.map(({ podName }) => podName).slice(-2)).toEqual(["during", "meanwhile"]);
  });

  test.each(["", "nonsense", "00000000.1", "x.y.z"])("who comes with the number %j gets everything", async (id) => {
    using reader = new Reader("*/pods", id === "" ? {} : { "last-event-id": id }, "*/pods");
    await eventually(() => reader.frames.length > 0 && reader.has.size === 2, "both nodes' pods");
    expect(reader.frames[0]?.frame.fresh).toBe(true);
  });

  test("what a page has not followed up to then it gets whole", async () => {
    using first = new Reader("*/pods");
    await eventually(() => first.has.size === 2, "both nodes' pods");
    using second = new Reader("*/pods,*/node", { "last-event-id": first.last }, "*/node");
    await eventually(() => second.has.size === 4, "pods and states");
    expect(second.frames[0]?.frame.fresh).toBeUndefined();
  });

  test("a node that does not answer is named, and what it has said stays; it comes back, and goes", async () => {
    using reader = new Reader("*/pods");
    await eventually(() => reader.has.size === 2, "both nodes' pods");
    source.fail("node-2", 'Cannot ask node "node-2": it does not answer');
    const silent = await eventually(
      () => reader.has.get("node-2/pods")?.fault !== undefined && reader.has.get("node-2/pods"),
      "the fault",
    );
    expect(silent).toMatchObject({ fault: expect.stringContaining("node-2"), document: { kind: "pods" } });
    source.fail("node-2");
    await eventually(() => reader.has.get("node-2/pods")?.fault === undefined, "its answer");
    source.remove("node-2");
    await eventually(() => !reader.has.has("node-2/pods"), "the end of the node");
  });
});
