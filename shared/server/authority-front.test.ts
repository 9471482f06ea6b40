import { existsSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Server, ServerCredentials } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { afterAll, beforeAll, expect, test } from "vitest";
import { describeWith } from "../../test/support/requires.ts";
import { CniCmdRequest, CniCmdResponse } from "../proto/cni-messages.ts";
import { cniService } from "../proto/services.ts";
import { callUnary } from "../rpc/call.ts";
import { H2Call, type Outcome } from "../rpc/h2-client.ts";
import { listenUnix, type UnixListener } from "./authority-front.ts";

const proto = new URL("../proto/cni.proto", import.meta.url).pathname;
const { "antrea_io.antrea.pkg.apis.cni.v1beta1.Cni": definition } = loadSync(proto, { defaults: true });

function startServer(): Server {
  const server = new Server();
  server.addService(definition as Parameters<Server["addService"]>[0], {
    CmdAdd: (call: { request: { cniArgs: { networkConfiguration: Buffer } } }, answer: (e: null, r: object) => void) =>
      answer(null, { cniResult: call.request.cniArgs.networkConfiguration }),
  });
  return server;
}

const cniArgs = (bytes: number) => ({
  containerId: "c1",
  netns: "/n",
  ifname: "eth0",
  args: "",
  path: "",
  networkConfiguration: new Uint8Array(bytes).fill(65),
});

/** One CmdAdd with this authority, its bytes written in pieces of that size. */
async function addWithAuthority(address: string, authority: string, pieceBytes: number): Promise<Outcome> {
  const call = new H2Call(
    [
      [":method", "POST"],
      [":scheme", "http"],
      [":path", cniService.cmdAdd.path],
      [":authority", authority],
      ["te", "trailers"],
      ["content-type", "application/grpc"],
    ],
    CniCmdRequest.encode({ cniArgs: cniArgs(10) }),
    "Cannot call",
  );
  const { promise, resolve } = Promise.withResolvers<void>();
  const socket = await Bun.connect({
    unix: address,
    socket: {
      data(_, chunk) {
        call.receive(chunk);
        if (call.outcome.t !== "pending") resolve();
      },
      close() {
        call.ended();
        resolve();
      },
    },
  });
  const bytes = call.take();
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    socket.write(bytes.subarray(at, at + pieceBytes));
    if (pieceBytes < bytes.length) await new Promise((next) => setImmediate(next));
  }
  await promise;
  socket.terminate();
  return call.outcome;
}

// A pipe has no permission bits, no queue to lengthen, and its clients send no path.
describeWith("the front of a gRPC server", ["linux"], () => {
  const folder = mkdtempSync(join(tmpdir(), "pt-front-"));
  const fronted = join(folder, "fronted.sock");
  const bare = join(folder, "bare.sock");
  const server = startServer();
  let listener: UnixListener;

  beforeAll(async () => {
    listener = await listenUnix(server, fronted);
    await new Promise<void>((resolve, reject) =>
      server.bindAsync(`unix:${bare}`, ServerCredentials.createInsecure(), (error) =>
        error === null ? resolve() : reject(error),
      ),
    );
  });

  afterAll(async () => {
    await listener.close();
    server.forceShutdown();
    rmSync(folder, { recursive: true });
  });

  test("serves a client that sends the socket's path, which the bare server refuses", async () => {
    expect(await addWithAuthority(bare, bare, 1_000_000)).toMatchObject({
      t: "failed",
      error: { message: expect.stringContaining("PROTOCOL_ERROR") },
    });
    for (const pieceBytes of [1_000_000, 1]) {
      const outcome = await addWithAuthority(fronted, fronted, pieceBytes);
      if (outcome.t !== "answered") throw new Error(`the outcome is ${JSON.stringify(outcome)}`);
      expect(CniCmdResponse.decode(outcome.message).cniResult).toHaveLength(10);
    }
  });

  test("carries long messages both ways", async () => {
    const response = await callUnary(
      fronted,
      cniService.cmdAdd,
      { cniArgs: cniArgs(4_000_000) },
      { timeoutMs: 20_000 },
    );
    expect(response.cniResult).toHaveLength(4_000_000);
  });

  test("ends what is not HTTP/2, and goes on serving", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const socket = await Bun.connect({ unix: fronted, socket: { data() {}, close: () => resolve() } });
    socket.write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    await promise;
    const response = await callUnary(fronted, cniService.cmdAdd, { cniArgs: cniArgs(5) }, { timeoutMs: 20_000 });
    expect(response.cniResult).toHaveLength(5);
  });

  test("a client that goes away in the middle leaves nothing open", async () => {
    const socket = await Bun.connect({ unix: fronted, socket: { data() {} } });
    socket.write("PRI * HTTP/2.0");
    socket.terminate();
    await expect
      .poll(() => Bun.spawnSync(["ss", "-xH", "state", "connected", "src", fronted]).stdout.toString())
      .toBe("");
  });

  test("makes the socket for its owner only", () => {
    expect(statSync(fronted).mode & 0o777).toBe(0o700);
  });

  test("has a queue as long as the kernel allows", async () => {
    const kernelMost = Number(await Bun.file("/proc/sys/net/core/somaxconn").text());
    const { stdout } = Bun.spawnSync(["ss", "-xlH", "src", fronted]);
    expect(Number(stdout.toString().trim().split(/\s+/)[3])).toBe(Math.min(4096, kernelMost));
  });

  test("1000 calls at once all get their answer", async () => {
    const calls = Array.from({ length: 1000 }, () =>
      callUnary(fronted, cniService.cmdAdd, { cniArgs: cniArgs(100) }, { timeoutMs: 60_000 }),
    );
    const lengths = await Promise.all(calls.map(async (call) => (await call).cniResult.length));
    expect(new Set(lengths)).toEqual(new Set([100]));
  });

  test("refuses a path that is taken, naming the error", async () => {
    await expect(listenUnix(startServer(), fronted)).rejects.toMatchObject({ code: "EADDRINUSE" });
  });

  test("closes twice, removes the socket, and lets the server shut down", async () => {
    const path = join(folder, "closing.sock");
    const own = startServer();
    const closing = await listenUnix(own, path, { mode: 0o600, backlog: 10 });
    await callUnary(path, cniService.cmdAdd, { cniArgs: cniArgs(1) }, { timeoutMs: 20_000 });
    await closing.close();
    await closing.close();
    expect(existsSync(path)).toBe(false);
    await new Promise<void>((resolve, reject) => own.tryShutdown((error) => (error ? reject(error) : resolve())));
  });
});
