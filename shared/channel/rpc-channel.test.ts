import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { scratchDir } from "../../test/support/scratch-dir.ts";
import { createLogger } from "../log.ts";
import { ipamService } from "../proto/daemon-services.ts";
import type { LeaseMessage } from "../proto/ipam-messages.ts";
import { nodeService } from "../proto/services.ts";
import { GrpcCode } from "../rpc/rpc-error.ts";
import { CallTracker } from "../server/call-tracker.ts";
import { type CallContext, rpc, streamingRpc } from "../server/handlers.ts";
import { RpcServer } from "../server/rpc-server.ts";
import { RpcChannel, statusOf } from "./rpc-channel.ts";

let scratch: ReturnType<typeof scratchDir>;
let socket: string;
let server: RpcServer | undefined;

beforeEach(() => {
  scratch = scratchDir();
  socket = `${scratch.path}/s`;
});
afterEach(async () => {
  await server?.close(0);
  scratch[Symbol.dispose]();
});

const lease: LeaseMessage = {
  network: "n",
  containerId: "c",
  ifname: "eth0",
  address: "",
  gateway: "",
  state: "",
  podNamespace: "",
  podName: "",
  podUid: "",
  generation: 0,
  allocatedAtMs: 0,
  releasedAtMs: 0,
};

/** A server whose calls wait as `handle` says before they answer. */
async function serve(handle: (call: CallContext) => Promise<void> = async () => undefined): Promise<void> {
  const rpcs = [
    rpc(nodeService.listInterfaces, async (_request, call) => {
      await handle(call);
      return { interfaces: [] };
    }),
    streamingRpc(ipamService.list, async function* (_request, call) {
      for (let generation = 1; ; generation++) {
        yield { ...lease, generation };
        await handle(call);
      }
    }),
  ];
  const logger = createLogger("error", () => undefined);
  server = await RpcServer.listen(socket, [rpcs], new CallTracker(), logger);
}

const ask = (channel: RpcChannel, options: { timeoutMs?: number; signal?: AbortSignal } = {}) =>
  channel.unary(nodeService.listInterfaces, {}, { timeoutMs: 20_000, ...options });

const read = (channel: RpcChannel, options: { timeoutMs?: number; signal?: AbortSignal } = {}) =>
  channel.stream(ipamService.list, { network: "" }, { timeoutMs: 20_000, ...options });

/** Waits until the caller has gone, and then says so. */
function untilGone(): { readonly handle: (call: CallContext) => Promise<void>; readonly gone: Promise<void> } {
  const { promise, resolve } = Promise.withResolvers<void>();
  const handle = async ({ signal }: CallContext): Promise<void> => {
    await new Promise((gone) => signal.addEventListener("abort", gone));
    resolve();
  };
  return { handle, gone: promise };
}

describe("a channel", () => {
  test("calls again and again on one connection", async () => {
    await serve();
    using channel = new RpcChannel(socket);
    for (let i = 0; i < 20; i++) expect(await ask(channel)).toEqual({ interfaces: [] });
    expect(await Promise.all(Array.from({ length: 50 }, () => ask(channel)))).toHaveLength(50);
  });

  test("says that nobody listens, and finds a server that comes later", async () => {
    using channel = new RpcChannel(socket);
    const nobody = {
      grpcCode: GrpcCode.unavailable,
      unreachable: true,
      message: `Cannot call /pipette.v1.Node/ListInterfaces at "${socket}": nobody listens`,
    };
    await expect(ask(channel)).rejects.toMatchObject(nobody);
    await expect(read(channel).next()).rejects.toMatchObject({ unreachable: true });
    await serve();
    const later = async (): Promise<unknown> => ask(channel).catch(() => Bun.sleep(20).then(later));
    expect(await later()).toEqual({ interfaces: [] });
  });

  test("ends a call at its deadline, and the server hears of it", async () => {
    const { handle, gone } = untilGone();
    await serve(handle);
    using channel = new RpcChannel(socket);
    await expect(ask(channel, { timeoutMs: 100 })).rejects.toMatchObject({ grpcCode: GrpcCode.deadlineExceeded });
    await gone;
  });

  test("ends a call when its signal says so, be it before, meanwhile or too late", async () => {
    const { handle, gone } = untilGone();
    await serve(handle);
    using channel = new RpcChannel(socket);
    const cancelled = { grpcCode: GrpcCode.cancelled };
    await expect(ask(channel, { signal: AbortSignal.abort() })).rejects.toMatchObject(cancelled);
    await expect(read(channel, { signal: AbortSignal.abort() }).next()).rejects.toMatchObject(cancelled);
    const controller = new AbortController();
    const call = ask(channel, { signal: controller.signal });
    await Bun.sleep(50);
    controller.abort();
    await expect(call).rejects.toMatchObject(cancelled);
    await gone;
    controller.abort();
  });

  test("ends a stream when its signal says so, or its loop is left", async () => {
    let waiting = 0;
    await serve(async ({ signal }) => {
      waiting++;
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      waiting--;
    });
    using channel = new RpcChannel(socket);
    const controller = new AbortController();
    const stream = read(channel, { signal: controller.signal });
    expect((await stream.next()).value?.generation).toBe(1);
    const next = stream.next();
    controller.abort();
    await expect(next).rejects.toMatchObject({ grpcCode: GrpcCode.cancelled });
    for await (const { generation } of read(channel)) {
      expect(generation).toBe(1);
      break;
    }
    expect(await server?.close(10_000)).toBe(true);
    expect(waiting).toBe(0);
  });

  test("that is disposed of ends what runs, and calls no more", async () => {
    await serve(untilGone().handle);
    const channel = new RpcChannel(socket);
    const call = ask(channel).catch((error: unknown) => error);
    await Bun.sleep(50);
    channel[Symbol.dispose]();
    channel[Symbol.dispose]();
    expect(await call).toMatchObject({ name: "RpcError", grpcCode: GrpcCode.cancelled });
    const closed = { grpcCode: GrpcCode.cancelled, message: expect.stringContaining("the channel is closed") };
    await expect(ask(channel)).rejects.toMatchObject(closed);
    await expect(read(channel).next()).rejects.toMatchObject(closed);
  });

  test("tells of a method that the server has not", async () => {
    await serve();
    using channel = new RpcChannel(socket);
    const call = channel.unary(nodeService.status, { network: "" }, { timeoutMs: 20_000 });
    await expect(call).rejects.toMatchObject({ grpcCode: GrpcCode.unimplemented, unreachable: false });
  });
});

describe("what grpc-js says", () => {
  const rst = "Received RST_STREAM with code 2 triggered by internal client error: ";
  const internal = { code: GrpcCode.internal as number };

  test("a pipe that breaks under a call is one that can be tried again", () => {
    expect(statusOf({ ...internal, details: `${rst}EPIPE: broken pipe, write` })).toEqual({
      code: GrpcCode.unavailable,
      details: "the connection was lost (EPIPE: broken pipe, write)",
    });
  });

  test.each([
    { ...internal, details: `${rst}a frame of the wrong size` },
    { ...internal, details: "EPIPE: broken pipe, write" },
    { ...internal, details: "what a server says" },
    { ...internal, details: `a server says: ${rst}EPIPE` },
    { code: GrpcCode.cancelled, details: `${rst}EPIPE: broken pipe, write` },
  ])("$details stays what it is", (said) => {
    expect(statusOf(said)).toEqual(said);
  });
});
