import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { atOnce, data, headers, requestHeaders, wholeCall } from "../../test/fakes/http2/scripted-client.ts";
import { limits } from "../limits.ts";
import { createLogger } from "../log.ts";
import { nodeService } from "../proto/services.ts";
import { callUnary } from "../rpc/call.ts";
import { concat, encodeFrame, encodeSettings, FrameType, preface } from "../rpc/h2-frames.ts";
import { prefixed } from "../rpc/message-frame.ts";
import { CallTracker } from "./call-tracker.ts";
import { ConnectionRegistry } from "./connection-registry.ts";
import { rpc } from "./handlers.ts";
import type { ServerCall } from "./http2/server-stream.ts";
import { RpcServer } from "./rpc-server.ts";
import { ServedConnection } from "./served-connection.ts";

const answer = { problems: [], version: "0", pid: 1, startedAtMs: 1, dataPath: "none", networks: ["pods"] };
const status = {
  ...answer,
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
const most = 4;

describe("a server with more clients than it can have", () => {
  let directory: string;
  let socket: string;
  let server: RpcServer;
  let release: () => void;
  const held = { calls: 0 };

  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), "pipette-registry-"));
    socket = join(directory, "s");
    held.calls = 0;
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    const handle = async ({ network }: { network: string }) => {
      if (network === "wait") {
        held.calls++;
        await gate;
      }
      return status;
    };
    const services = [[rpc(nodeService.status, handle)]];
    const logger = createLogger("error", () => undefined);
    server = await RpcServer.listen(socket, services, new CallTracker(), logger, { connections: most });
  });
  afterEach(async () => {
    release();
    await server.close(0);
    rmSync(directory, { recursive: true, force: true });
  });

  const ask = (network: string) => callUnary(socket, nodeService.status, { network }, { timeoutMs: 10_000 });

  /** One that connects, says this, and nothing more. */
  async function connect(says: Uint8Array): Promise<{ closed: boolean }> {
    const state = { closed: false };
    const close = (): void => {
      state.closed = true;
    };
    const socketHandlers = { data: () => undefined, close, end: close, error: () => undefined };
    const client = await Bun.connect({ unix: socket, socket: socketHandlers });
    client.write(says);
    return state;
  }

  test("ends those that have been idle longest, and serves all that call", async () => {
    const waiting = ask("wait");
    await expect.poll(() => held.calls).toBe(1);
    const idle: { closed: boolean }[] = [];
    for (let i = 0; i < 10; i++) {
      idle.push(await connect(new TextEncoder().encode(preface.slice(0, i))));
      expect((await ask("")).version).toBe("0");
    }
    // The last ones, one of them for whoever asked, and the call at work, which is the oldest of all.
    await expect.poll(() => idle.map(({ closed }) => closed)).toEqual([...Array(8).fill(true), false, false]);
    release();
    expect((await waiting).version).toBe("0");
  });
});

describe("connections that hold the memory for requests", () => {
  const logger = createLogger("error", () => undefined);
  const opening = concat([new TextEncoder().encode(preface), encodeSettings([])]);
  const long = (id: number): Uint8Array => headers(id, requestHeaders({ long: "x".repeat(900) }));
  const message = prefixed(new Uint8Array(30_000));
  const part = (from: number, to: number): Uint8Array => data(1, message.subarray(from, to));
  const beginning = (bytes: number): Uint8Array => encodeFrame(FrameType.headers, 0, 1, new Uint8Array(bytes));

  test("go where there is no more of it, who holds the most first, and nobody else", () => {
    const registry = new ConnectionRegistry(logger, 10);
    const ended: number[] = [];
    const connect = (bytes: number): ServedConnection => {
      const terminate = (): void => void ended.push(bytes);
      const nothing = (): void => undefined;
      const socket = { write: (sent: Uint8Array) => sent.length, pause: nothing, resume: nothing, shutdown: nothing };
      const connection = new ServedConnection(
        { ...socket, end: nothing, terminate },
        { memory: registry, turns: atOnce, open: () => expect.fail() },
      );
      registry.enter(connection);
      connection.receive(concat([opening, beginning(bytes)]));
      return connection;
    };
    for (const bytes of [0, 20, 10_000, 300]) connect(bytes);
    expect(registry.heldBytes).toBe(10_320);
    registry.makeRoom();
    registry.makeRoom();
    expect([ended, registry.heldBytes, registry.size]).toEqual([[10_000, 300], 20, 2]);
    registry.makeRoom();
    registry.makeRoom();
    expect([ended, registry.heldBytes, registry.size]).toEqual([[10_000, 300, 20], 0, 1]);
  });

  test.each([
    { what: "headers", says: [beginning(10_000), encodeFrame(FrameType.continuation, 0, 1, new Uint8Array(10_000))] },
    { what: "a message", says: [headers(1), part(0, 10_000), part(10_000, 20_000)] },
    { what: "another call", says: [headers(1), part(0, 14_000), long(3), long(5)] },
  ])("give all of it back where they go over their own part: $what", ({ says }) => {
    const registry = new ConnectionRegistry(logger, 10);
    const terminate = vi.fn();
    const gone = vi.fn();
    const nothing = (): void => undefined;
    const socket = {
      write: (sent: Uint8Array) => sent.length,
      pause: nothing,
      resume: nothing,
      shutdown: nothing,
      end: nothing,
      terminate,
    };
    const open = () => ({ request: () => expect.fail(), room: nothing, gone });
    const connection = new ServedConnection(socket, { memory: registry, turns: atOnce, open });
    registry.enter(connection);
    const others = limits.requestBytesHeld - 15_000;
    registry.heldBytes += others;
    for (const said of [opening, ...says]) connection.receive(said);
    expect([terminate.mock.calls.length, gone.mock.calls.length <= 1]).toEqual([1, true]);
    expect([registry.size, registry.heldBytes]).toEqual([0, others]);
  });

  test("keep none of it for what is half said beside a call at work, which goes on", async () => {
    const registry = new ConnectionRegistry(logger, 10);
    const nothing = (): void => undefined;
    const terminate = vi.fn();
    const socket = {
      write: (sent: Uint8Array) => sent.length,
      pause: nothing,
      resume: nothing,
      shutdown: nothing,
      end: nothing,
      terminate,
    };
    const work = Promise.withResolvers<void>();
    const served: ServerCall[] = [];
    const gone: number[] = [];
    const open = (call: ServerCall) => {
      const at = served.push(call);
      return { request: () => work.promise, room: nothing, gone: () => void gone.push(at) };
    };
    const busy = new ServedConnection(socket, { memory: registry, turns: atOnce, open });
    const other = new ServedConnection(socket, { memory: registry, turns: atOnce, open });
    for (const connection of [busy, other]) {
      registry.enter(connection);
      connection.receive(opening);
    }
    busy.receive(concat([wholeCall(3), headers(5), data(5, message.subarray(0, 10_000))]));
    registry.heldBytes += limits.requestBytesHeld - registry.heldBytes;
    other.receive(wholeCall(1));
    expect([served.length, gone, terminate.mock.calls.length]).toEqual([3, [2], 0]);
    expect([busy.halfBytes, busy.isHandling, other.isHandling]).toEqual([0, true, true]);
    work.resolve();
  });
});
