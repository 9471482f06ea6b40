import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client, type ClientReadableStream, credentials, Metadata, type ServiceError } from "@grpc/grpc-js";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { limits } from "../limits.ts";
import { createLogger } from "../log.ts";
import type { CniCmdRequest, CniCmdResponse } from "../proto/cni-messages.ts";
import { ipamService } from "../proto/daemon-services.ts";
import type { LeaseMessage } from "../proto/ipam-messages.ts";
import { callTimes, cniService, type Method, nodeService } from "../proto/services.ts";
import { callUnary } from "../rpc/call.ts";
import { CallTracker } from "./call-tracker.ts";
import { type CallContext, rpc, streamingRpc } from "./handlers.ts";
import { RpcServer } from "./rpc-server.ts";

/** The server against @grpc/grpc-js: a client that keeps its connection and runs all its calls on it. */
describe("a client of grpc-js", () => {
  let directory: string;
  let socket: string;
  let server: RpcServer;
  let client: Client;
  /** Contexts of the calls that were handled. */
  let contexts: CallContext[];
  let lines: string[];
  let produced = 0;
  let listLength = 0;
  let listLeft = Promise.withResolvers<void>();

  const lease = (generation: number): LeaseMessage => ({
    network: "pods",
    containerId: "c1",
    ifname: "eth0",
    address: "10.0.0.2/24",
    gateway: "",
    state: "allocated",
    podNamespace: "",
    podName: "",
    podUid: "",
    generation,
    allocatedAtMs: 1,
    releasedAtMs: 0,
  });

  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), "pt-grpc-js-"));
    socket = join(directory, "s");
    contexts = [];
    lines = [];
    produced = 0;
    listLeft = Promise.withResolvers();
    const rpcs = [
      rpc(cniService.cmdAdd, async ({ cniArgs }, context) => {
        contexts.push(context);
        context.log.info("called");
        if (cniArgs?.containerId === "silence") await new Promise(() => undefined);
        return { cniResult: cniArgs?.networkConfiguration ?? new Uint8Array(0) };
      }),
      streamingRpc(ipamService.list, async function* () {
        try {
          for (; produced < listLength; ) yield lease(++produced);
        } finally {
          listLeft.resolve();
        }
      }),
    ];
    const logger = createLogger("debug", (line) => lines.push(line));
    server = await RpcServer.listen(socket, [rpcs], new CallTracker(), logger);
    client = connect();
  });
  afterEach(async () => {
    client.close();
    await server.close(0);
    rmSync(directory, { recursive: true });
  });

  const connect = (options: object = {}): Client =>
    new Client(`unix:${socket}`, credentials.createInsecure(), {
      "grpc.max_send_message_length": -1,
      "grpc.max_receive_message_length": -1,
      ...options,
    });

  interface Options {
    readonly deadlineMs?: number;
    readonly metadata?: Readonly<Record<string, string>>;
    readonly containerId?: string;
    readonly by?: Client;
    readonly cancelled?: Promise<void>;
  }

  function add(bytes: Uint8Array, options: Options = {}): Promise<CniCmdResponse> {
    const { deadlineMs = 20_000, metadata = {}, containerId = "echo", by = client, cancelled } = options;
    const cniArgs = { containerId, netns: "", ifname: "", args: "", path: "", networkConfiguration: bytes };
    const { path, request, response } = cniService.cmdAdd;
    const sent = new Metadata();
    for (const [key, value] of Object.entries(metadata)) sent.set(key, value);
    return new Promise((resolve, reject) => {
      const call = by.makeUnaryRequest(
        path,
        (value: CniCmdRequest) => Buffer.from(request.encode(value)),
        (answer) => response.decode(answer),
        { cniArgs },
        sent,
        { deadline: Date.now() + deadlineMs },
        (error, answer) => (answer === undefined ? reject(error) : resolve(answer)),
      );
      void cancelled?.then(() => call.cancel());
    });
  }

  const ask = <Req, Res>(method: Method<Req, Res>, request: Req): Promise<ServiceError | Res> =>
    new Promise((resolve) => {
      const encode = (value: Req): Buffer => Buffer.from(method.request.encode(value));
      client.makeUnaryRequest(method.path, encode, method.response.decode, request, (error, answer) =>
        resolve(error ?? (answer as Res)),
      );
    });

  const list = (): ClientReadableStream<LeaseMessage> => {
    const { path, request, response } = ipamService.list;
    const encode = (value: { network: string }): Buffer => Buffer.from(request.encode(value));
    return client.makeServerStreamRequest(path, encode, response.decode, { network: "" });
  };

  test("makes 64 calls at once on one connection, thrice, and all are answered with their own", async () => {
    for (let round = 0; round < 3; round++) {
      const calls = Array.from({ length: 64 }, (_, i) => add(new Uint8Array(1 + 100 * i).fill(i)));
      for (const [i, { cniResult }] of (await Promise.all(calls)).entries()) {
        expect(cniResult).toHaveLength(1 + 100 * i);
        expect(new Set(cniResult)).toEqual(new Set([i]));
      }
    }
    expect(
      Bun.spawnSync(["ss", "-xH", "state", "connected", "src", socket]).stdout.toString().trim().split("\n"),
    ).toHaveLength(1);
  });

  test("carries 3 MB both ways, several at once", async () => {
    const bytes = new Uint8Array(3_000_000).map((_, i) => (i * i) % 253);
    const answers = await Promise.all(Array.from({ length: 5 }, () => add(bytes)));
    for (const { cniResult } of answers) expect(Buffer.compare(cniResult, bytes)).toBe(0);
  });

  test("is told of an answer that is too long", async () => {
    const call = ask(nodeService.status, { network: "" });
    expect(await call).toMatchObject({ code: 12, details: expect.stringContaining("/pipette.v1.Node/Status") });
    await expect(add(new Uint8Array(limits.messageBytes))).rejects.toMatchObject({ code: 8 });
    expect((await add(new Uint8Array(7))).cniResult).toHaveLength(7);
  });

  test("that compresses is told that nothing does here", async () => {
    using other = new DisposableStack();
    const by = other.adopt(connect({ "grpc.default_compression_algorithm": 2 }), (own) => own.close());
    await expect(add(new Uint8Array(10_000), { by })).rejects.toMatchObject({ code: 12 });
  });

  test("reads a stream of 10000 messages in order", async () => {
    listLength = 10_000;
    let last = 0;
    for await (const { generation } of list()) expect(generation).toBe(++last);
    expect(last).toBe(10_000);
  });

  test("that reads slowly is not sent more than it has room for, and its other calls go on", async () => {
    listLength = 1_000_000;
    const stream = list();
    stream.on("error", () => undefined);
    const leases = stream[Symbol.asyncIterator]();
    await leases.next();
    for (let before = -1; before !== produced; await Bun.sleep(50)) before = produced;
    expect(produced).toBeLessThan(50_000);
    expect((await add(new Uint8Array(3))).cniResult).toHaveLength(3);
    stream.cancel();
    await listLeft.promise;
  });

  test("that cancels a call is heard by the handler", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const call = add(new Uint8Array(0), { containerId: "silence", cancelled: promise });
    await expect.poll(() => contexts.length).toBe(1);
    expect(contexts[0]?.signal.aborted).toBe(false);
    resolve();
    await expect(call).rejects.toMatchObject({ code: 1 });
    await expect.poll(() => contexts[0]?.signal.aborted).toBe(true);
  });

  test("whose deadline passes is answered so, and the handler hears of it", async () => {
    const call = add(new Uint8Array(0), { containerId: "silence", deadlineMs: 100 });
    await expect(call).rejects.toMatchObject({ code: 4 });
    await expect.poll(() => contexts[0]?.signal.aborted).toBe(true);
  });

  test("has its metadata told to the handler", async () => {
    const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const metadata = { traceparent, [callTimes.startedMs]: "17", [callTimes.untilMs]: "soon", other: "x" };
    await add(new Uint8Array(0), { metadata });
    expect(contexts[0]).toMatchObject({ startedUptimeMs: 17 });
    expect(contexts[0]?.untilUptimeMs).toBeUndefined();
    expect(JSON.parse(lines[0] ?? "{}")).toMatchObject({ message: "called", trace: traceparent });
  });

  test("is left in peace by whoever breaks the protocol beside it", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const said: Buffer[] = [];
    const handlers = { data: (_: unknown, chunk: Buffer) => void said.push(chunk), close: () => resolve() };
    const other = await Bun.connect({ unix: socket, socket: handlers });
    other.write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    await promise;
    expect(Buffer.concat(said).toString("latin1")).toContain("another protocol came, wanted HTTP/2");
    expect((await add(new Uint8Array(5))).cniResult).toHaveLength(5);
  });

  test("hears from a server that stops that its next call has to go elsewhere", async () => {
    await add(new Uint8Array(1));
    expect(await server.close(1_000)).toBe(true);
    await expect(add(new Uint8Array(1), { deadlineMs: 2_000 })).rejects.toMatchObject({ code: 14 });
  });

  test("1000 of our own calls at once all get their answer meanwhile", async () => {
    const cniArgs = {
      containerId: "echo",
      netns: "",
      ifname: "",
      args: "",
      path: "",
      networkConfiguration: new Uint8Array(100),
    };
    const calls = Array.from({ length: 1000 }, () =>
      callUnary(socket, cniService.cmdAdd, { cniArgs }, { timeoutMs: 60_000 }),
    );
    await add(new Uint8Array(1));
    const lengths = await Promise.all(calls.map(async (call) => (await call).cniResult.length));
    expect(new Set(lengths)).toEqual(new Set([100]));
  });
});
