import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client, credentials } from "@grpc/grpc-js";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { opening } from "../../test/fakes/http2/scripted-client.ts";
import { RpcChannel } from "../channel/rpc-channel.ts";
import { CniCode, CniError } from "../errors.ts";
import { limits } from "../limits.ts";
import { createLogger } from "../log.ts";
import { ipamService } from "../proto/daemon-services.ts";
import type { LeaseMessage } from "../proto/ipam-messages.ts";
import type { StatusResponse } from "../proto/pipette-messages.ts";
import { nodeService } from "../proto/services.ts";
import { callUnary } from "../rpc/call.ts";
import { encodeFrame, FrameType } from "../rpc/h2-frames.ts";
import { CallTracker } from "./call-tracker.ts";
import { ConnectionRegistry } from "./connection-registry.ts";
import { type CallContext, rpc, streamingRpc } from "./handlers.ts";
import { RpcServer } from "./rpc-server.ts";

const answer: StatusResponse = {
  problems: [],
  version: "0",
  pid: 1,
  startedAtMs: 1,
  dataPath: "none",
  networks: ["pods"],
  callsInFlight: 0,
  departing: 0,
  cluster: "",
  policies: "",
  policyDifferences: [],
  services: "",
  serviceDifferences: [],
  servicesFault: "",
  shortcomings: [],
  refusals: [],
  state: "ready",
  registryTroubles: [],
  peerTroubles: [],
  configuration: [],
};

let directory: string;
let socket: string;
let server: RpcServer | undefined;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "pipette-rpc-"));
  socket = join(directory, "s");
});
afterEach(async () => {
  await server?.close(0);
  rmSync(directory, { recursive: true, force: true });
});

/** A server whose Status is `handle`; answers the lines of its log. */
async function serve(handle: (call: CallContext) => Promise<StatusResponse>): Promise<string[]> {
  const lines: string[] = [];
  const logger = createLogger("debug", (line) => lines.push(line));
  const rpcs = [rpc(nodeService.status, (_request, call) => handle(call))];
  server = await RpcServer.listen(socket, [rpcs], new CallTracker(), logger);
  return lines;
}

const ask = (timeoutMs = 10_000, metadata: Readonly<Record<string, string>> = {}): Promise<StatusResponse> =>
  callUnary(socket, nodeService.status, { network: "" }, { timeoutMs, metadata });

describe("RpcServer", () => {
  test("answers, and logs under an id of the call with the trace that it belongs to", async () => {
    const lines = await serve(async ({ log }) => {
      log.info("seen");
      return answer;
    });
    const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    expect(await ask(10_000, { traceparent })).toEqual(answer);
    expect(await ask()).toEqual(answer);
    const [first, second] = lines.map((line) => JSON.parse(line));
    expect(first).toMatchObject({ message: "seen", trace: traceparent });
    expect(second.trace).toBeUndefined();
    expect(first.request).not.toBe(second.request);
  });

  test("gives a failure its gRPC status", async () => {
    await serve(async () => {
      throw new CniError(CniCode.ipamFailure, "Cannot give an address", { details: "all are taken" });
    });
    await expect(ask()).rejects.toMatchObject({
      grpcCode: 8,
      message: expect.stringContaining("Cannot give an address; all are taken"),
    });
  });

  test("tells the handler that its caller has gone", async () => {
    const gone = Promise.withResolvers<void>();
    await serve(({ signal }) => {
      signal.addEventListener("abort", () => gone.resolve());
      return new Promise(() => undefined);
    });
    await expect(ask(50)).rejects.toMatchObject({ grpcCode: 4 });
    await gone.promise;
  });

  test("closing waits for the call in flight, answers it, and takes no other", async () => {
    const begun = Promise.withResolvers<void>();
    await serve(async () => {
      begun.resolve();
      await Bun.sleep(1_000);
      return answer;
    });
    const call = ask();
    await begun.promise;
    const closed = server?.close(10_000);
    expect(existsSync(socket)).toBe(false);
    await expect(ask()).rejects.toMatchObject({ unreachable: true });
    expect(await call).toEqual(answer);
    expect(await closed).toBe(true);
  });

  test("closing fails no client that is still writing, which might not read its answer then", async () => {
    await serve(async () => answer);
    const client = connect({ path: socket, allowHalfOpen: true });
    const errors: Error[] = [];
    client.on("error", (error) => errors.push(error));
    client.write(opening);
    await once(client, "readable");
    const closed = server?.close(10_000);
    const ended = once(client, "end");
    client.resume();
    await ended;
    await new Promise((written) => client.write(encodeFrame(FrameType.ping, 0, 0, new Uint8Array(8)), written));
    client.end();
    expect(await closed).toBe(true);
    expect(errors).toEqual([]);
  });

  test("closing waits for no client that has gone before", async () => {
    await serve(async () => answer);
    for (let i = 0; i < 10; i++) await ask();
    const connected = (): string => Bun.spawnSync(["ss", "-xH", "state", "connected", "src", socket]).stdout.toString();
    await expect.poll(connected).toBe("");
    using sleep = vi.spyOn(Bun, "sleep");
    expect(await server?.close(0)).toBe(true);
    expect(sleep).not.toHaveBeenCalled();
  });

  test("looks for connections that wait too long, all the while", async () => {
    using sweep = vi.spyOn(ConnectionRegistry.prototype, "sweep");
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    try {
      await serve(async () => answer);
      vi.advanceTimersByTime(limits.idleConnectionMs);
    } finally {
      vi.useRealTimers();
    }
    expect(sweep.mock.calls.length).toBeGreaterThan(1);
  });

  test("closing waits no longer than it may", async () => {
    const begun = Promise.withResolvers<void>();
    await serve(() => {
      begun.resolve();
      return new Promise(() => undefined);
    });
    const call = ask(60_000).catch((error: unknown) => error);
    await begun.promise;
    expect(await server?.close(20)).toBe(false);
    expect(await call).toBeInstanceOf(Error);
  });
});

const lease: LeaseMessage = {
  network: "pods",
  containerId: "x".repeat(10_000),
  ifname: "eth0",
  address: "10.0.0.2/24",
  gateway: "",
  state: "allocated",
  podNamespace: "",
  podName: "",
  podUid: "",
  generation: 1,
  allocatedAtMs: 1,
  releasedAtMs: 0,
};

describe("a stream", () => {
  let produced = 0;
  let ended = Promise.withResolvers<void>();

  /** A server whose List answers `count` leases; says when it has been left. */
  async function serveList(count: number, failure?: Error): Promise<RpcChannel> {
    produced = 0;
    ended = Promise.withResolvers();
    const rpcs = [
      streamingRpc(ipamService.list, async function* () {
        try {
          for (; produced < count; produced++) yield { ...lease, generation: produced + 1 };
          if (failure !== undefined) throw failure;
        } finally {
          ended.resolve();
        }
      }),
    ];
    server = await RpcServer.listen(
      socket,
      [rpcs],
      new CallTracker(),
      createLogger("error", () => undefined),
    );
    return new RpcChannel(socket);
  }

  const list = (channel: RpcChannel, timeoutMs = 20_000) =>
    channel.stream(ipamService.list, { network: "" }, { timeoutMs });

  test("brings everything, in order, and ends with its status", async () => {
    using channel = await serveList(2_000, new CniError(CniCode.tryAgainLater, "Cannot go on"));
    let last = 0;
    const read = async (): Promise<void> => {
      for await (const { generation } of list(channel)) expect(generation).toBe(++last);
    };
    await expect(read()).rejects.toMatchObject({ grpcCode: 14, message: "Cannot go on" });
    expect(last).toBe(2_000);
  });

  test("of which nobody reads on is not produced on either, and goes on when somebody does", async () => {
    using channel = await serveList(100_000);
    const leases = list(channel);
    await leases.next();
    // Windows and buffers fill; then nothing moves.
    for (let before = -1; before !== produced; await Bun.sleep(100)) before = produced;
    expect(produced).toBeGreaterThan(1);
    expect(produced).toBeLessThan(2_000);
    const stood = produced;
    for (let i = 0; i < 3_000; i++) expect((await leases.next()).value?.generation).toBe(i + 2);
    expect(produced).toBeGreaterThan(stood);
    await leases.return();
    await ended.promise;
  });

  test("that nobody reads does not keep the server when it closes", async () => {
    using channel = await serveList(100_000);
    await list(channel).next();
    expect(await server?.close(100)).toBe(false);
    await ended.promise;
  });

  test("whose server is silent ends at its deadline", async () => {
    const rpcs = [
      streamingRpc(ipamService.list, async function* (_request, { signal }) {
        yield lease;
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
        ended.resolve();
      }),
    ];
    ended = Promise.withResolvers();
    server = await RpcServer.listen(
      socket,
      [rpcs],
      new CallTracker(),
      createLogger("error", () => undefined),
    );
    using channel = new RpcChannel(socket);
    // Long enough for the first on a busy machine.
    const leases = list(channel, 1_500);
    await leases.next();
    await expect(leases.next()).rejects.toMatchObject({
      grpcCode: 4,
      message: expect.stringContaining("nothing came for 1500 ms"),
    });
    await ended.promise;
  });
});

describe("a request that will not do", () => {
  /** Sends these bytes as the request of Status; answers code and message. */
  async function send(bytes: Uint8Array, deadlineMs = 20_000): Promise<readonly [number, string]> {
    const client = new Client(`unix:${socket}`, credentials.createInsecure(), { "grpc.max_send_message_length": -1 });
    const options = { deadline: Date.now() + deadlineMs };
    try {
      return await new Promise((resolve) => {
        const same = (value: Uint8Array): Buffer => Buffer.from(value);
        client.makeUnaryRequest(nodeService.status.path, same, same, bytes, options, (error) =>
          resolve([error?.code ?? 0, error?.details ?? ""]),
        );
      });
    } finally {
      client.close();
    }
  }

  test.each([
    ["a length beyond the end", [0x0a, 0x7f]],
    ["no UTF-8", [0x0a, 0x01, 0xff]],
    ["a group that does not end", [0x0b]],
    ["a wire type that there is not", [0x0f]],
  ])("because it is no such message (%s) is the caller's fault, and says why", async (_, bytes) => {
    await serve(async () => answer);
    expect(await send(new Uint8Array(bytes))).toEqual([
      3,
      expect.stringMatching(/^Cannot read the request of \/pipette.v1.Node\/Status: Cannot .+: .+/),
    ]);
    expect(await send(nodeService.status.request.encode({ network: "pods" }))).toEqual([0, ""]);
  });

  test("because it is too long is refused, and the server goes on", async () => {
    await serve(async () => answer);
    expect((await send(new Uint8Array(limits.messageBytes + 1)))[0]).toBe(8);
    expect(await ask()).toEqual(answer);
  });

  test("because its deadline has passed ends with that", async () => {
    await serve(() => new Promise(() => undefined));
    expect((await send(new Uint8Array(0), 100))[0]).toBe(4);
  });
});
