import { createServer, type Server, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { features, hello, message } from "../../../test/fakes/openflow/scripted-switch.ts";
import { scratchDir } from "../../../test/support/scratch-dir.ts";
import { type ClientOptions, OpenFlowClient } from "./client.ts";
import type { ConnectionEvent } from "./connection.ts";
import { MessageType } from "./constants.ts";
import { flow } from "./flow.ts";
import { addFlow } from "./flow-wire.ts";
import { type Frame, FrameReader } from "./message.ts";
import { addMeter, meter } from "./meter.ts";
import { connectTransport } from "./transport.ts";

/** What a switch answers to one message; nothing is said to one that is left out. */
type Script = (frame: Frame) => Uint8Array | undefined;

const polite: Script = ({ type, xid }) => {
  if (type === MessageType.HELLO) return hello();
  if (type === MessageType.FEATURES_REQUEST) return features(xid);
  if (type === MessageType.ECHO_REQUEST) return message(MessageType.ECHO_REPLY, xid);
  return type === MessageType.BARRIER_REQUEST ? message(MessageType.BARRIER_REPLY, xid) : undefined;
};

async function* lines(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  for await (const chunk of stream)
    yield* new TextDecoder()
      .decode(chunk)
      .split("\n")
      .filter((line) => line !== "");
}

describe("a client of a scripted switch", () => {
  let scratch: ReturnType<typeof scratchDir>;
  let server: Server | undefined;
  const sockets: Socket[] = [];
  const heard: number[] = [];

  beforeEach(() => {
    scratch = scratchDir();
    heard.length = 0;
  });
  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy();
    await new Promise((closed) => (server === undefined ? closed(undefined) : server.close(closed)));
    server = undefined;
    scratch[Symbol.dispose]();
  });

  /** Listens, and answers in pieces of `cut` bytes. */
  async function listen(script: Script, cut = Number.POSITIVE_INFINITY, isBusy = () => false): Promise<void> {
    const made = createServer((socket) => {
      sockets.push(socket);
      if (isBusy()) return void socket.destroy();
      socket.on("error", () => undefined);
      const reader = new FrameReader();
      socket.on("data", (chunk: Uint8Array) => {
        for (const frame of reader.push(chunk)) {
          heard.push(frame.type);
          const answer = script(frame);
          for (let at = 0; at < (answer?.length ?? 0); at += cut) socket.write(answer!.subarray(at, at + cut));
        }
      });
    });
    server = made;
    await new Promise<void>((listening) => made.listen(`${scratch.path}/s`, listening));
  }

  const connect = (options: ClientOptions = {}) =>
    OpenFlowClient.connect({ t: "path", path: `${scratch.path}/s` }, options);

  test("connects and asks, whatever pieces the answers come in", async () => {
    await listen(polite, 1);
    using client = await connect();
    expect(client.features.tables).toBe(254);
    await client.echo();
    expect(await client.run([addFlow(flow({}))])).toEqual([]);
    expect(await client.run([])).toEqual([]);
  });

  test("says that nobody listens", async () => {
    const error = { kind: "lost", message: expect.stringContaining(`Cannot connect to "${scratch.path}/s": `) };
    await expect(connect()).rejects.toMatchObject(error);
  });

  test("greets a switch once more that was too busy to read the greeting, and gives up on one that always is", async () => {
    let busy = 2;
    await listen(polite, Number.POSITIVE_INFINITY, () => busy-- > 0);
    using client = await connect();
    expect(client.features.tables).toBe(254);
    expect(sockets).toHaveLength(3);
    busy = Number.POSITIVE_INFINITY;
    await expect(connect()).rejects.toMatchObject({ kind: "lost" });
    expect(sockets).toHaveLength(6);
  });

  test("greets once more also where this process was held up until the switch had given up", async () => {
    const path = `${scratch.path}/other`;
    const server = `require("node:net").createServer((one) => { one.destroy(); console.log("taken"); }).listen("${path}", () => console.log("up"))`;
    const child = Bun.spawn([process.execPath, "-e", server], { stdout: "pipe" });
    try {
      const taken = lines(child.stdout);
      expect((await taken.next()).value).toBe("up");
      const heldUp: ClientOptions["connect"] = (address, listener) => {
        const transport = connectTransport(address, listener);
        Bun.sleepSync(300);
        return transport;
      };
      const connecting = OpenFlowClient.connect({ t: "path", path }, { connect: heldUp });
      await expect(connecting).rejects.toMatchObject({ kind: "lost", message: expect.stringContaining("ECONNRESET") });
      for (let i = 0; i < 3; i++) expect((await taken.next()).value).toBe("taken");
    } finally {
      child.kill();
      await child.exited;
    }
  });

  test("does not wait for ever for HELLO, or for what the switch is", async () => {
    for (const silent of [MessageType.HELLO, MessageType.FEATURES_REQUEST]) {
      await listen((frame) => (frame.type === silent ? undefined : polite(frame)));
      const error = { kind: "late", message: expect.stringContaining("nothing came for 100 ms") };
      await expect(connect({ connectMs: 100 })).rejects.toMatchObject(error);
      await new Promise((closed) => server?.close(closed));
    }
  });

  test("a switch that closes at once is lost", async () => {
    await listen(() => {
      sockets.at(-1)?.end();
      return undefined;
    });
    await expect(connect()).rejects.toMatchObject({
      kind: "lost",
      message: expect.stringContaining("the switch closed the connection"),
    });
  });

  test("each request has its time", async () => {
    await listen((frame) => (frame.type === MessageType.BARRIER_REQUEST ? undefined : polite(frame)));
    using client = await connect({ requestMs: 60 });
    const started = performance.now();
    const late = { kind: "late" };
    await Promise.all([
      expect(client.run([])).rejects.toMatchObject(late),
      expect(client.do(addFlow(flow({})), 200)).rejects.toMatchObject({
        ...late,
        message: 'Cannot add flow "actions=drop": no answer came in time',
      }),
      client.echo(20_000),
    ]);
    expect(performance.now() - started).toBeGreaterThan(190);
    await client.echo(20_000);
  });

  test("asks a silent switch whether it is there, and gives it up where it is not", async () => {
    let silent = false;
    await listen((frame) => (silent ? undefined : polite(frame)));
    using client = await connect({ idleMs: 30, requestMs: 1500 });
    await expect.poll(() => heard.filter((type) => type === MessageType.ECHO_REQUEST).length).toBeGreaterThan(2);
    silent = true;
    expect(await client.closed).toMatchObject({
      kind: "late",
      message: "Cannot hear from the switch: no answer came in time",
    });
  });

  test("what is disposed of ends what waits, asks no more, and says so", async () => {
    await listen((frame) => (frame.type === MessageType.BARRIER_REQUEST ? undefined : polite(frame)));
    const client = await connect();
    const waiting = client.run([]).catch((error: unknown) => error);
    client[Symbol.dispose]();
    client[Symbol.dispose]();
    const is = "the connection was closed from this side";
    expect(await waiting).toMatchObject({ kind: "lost", message: expect.stringContaining(is) });
    expect(await client.closed).toMatchObject({ message: expect.stringContaining(is) });
    await expect(client.echo()).rejects.toMatchObject({ kind: "lost" });
    expect(() => client.features).toThrow(is);
  });

  test("a bundle takes flows and groups, not meters, and not more than a bound", async () => {
    await listen(polite);
    using client = await connect();
    await expect(client.bundle([addMeter(meter({ id: 1, unit: "kbps", rate: 1 }))])).rejects.toThrow(
      '"add meter 1" is not for bundles',
    );
    const one = addFlow(flow({}));
    await expect(client.bundle(Array.from({ length: 100_001 }, () => one))).rejects.toMatchObject({ kind: "full" });
    expect(heard).not.toContain(MessageType.BUNDLE_CONTROL);
  });

  test("more than a socket takes at once goes out whole, in order", async () => {
    await listen(polite);
    using client = await connect();
    const many = Array.from({ length: 20_000 }, (_, i) => addFlow(flow({ cookie: BigInt(i) })));
    expect(await client.run(many)).toEqual([]);
    expect(heard.filter((type) => type === MessageType.FLOW_MOD)).toHaveLength(20_000);
    expect(heard.at(-1)).toBe(MessageType.BARRIER_REQUEST);
  }, 30_000);

  test("events come in order, with what is broken among them", async () => {
    const events: ConnectionEvent[] = [];
    const forwarded = (type: number) => message(MessageType.REQUESTFORWARD, 0, message(type, 7));
    const broken = message(MessageType.REQUESTFORWARD, 0, "06");
    await listen((frame) =>
      frame.type === MessageType.BARRIER_REQUEST
        ? Buffer.concat([
            forwarded(MessageType.GROUP_MOD),
            broken,
            forwarded(MessageType.METER_MOD),
            message(MessageType.BARRIER_REPLY, frame.xid),
          ])
        : polite(frame),
    );
    using client = await connect({ onEvent: (event) => events.push(event) });
    await client.run([]);
    expect(events).toMatchObject([
      { t: "request-forwarded", changed: "group" },
      { t: "unreadable" },
      { t: "request-forwarded", changed: "meter" },
    ]);
  });
});
