import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, expect, test } from "vitest";
import { cniService } from "../../shared/proto/services.ts";
import { callUnary } from "../../shared/rpc/call.ts";
import { GrpcCode, RpcError } from "../../shared/rpc/rpc-error.ts";
import { answer, settings } from "../fakes/http2/scripted-server.ts";
import { describeWith } from "../support/requires.ts";
import { startPeer } from "./peer.ts";

/** What real servers do not do on request: no listener, a full queue, an end in the middle. */

const folder = mkdtempSync(join(tmpdir(), "pt-rpc-strange-"));
const open: { server: Server; sockets: Set<Socket> }[] = [];

afterEach(async () => {
  for (const { server, sockets } of open.splice(0)) {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  }
});
afterAll(() => rmSync(folder, { recursive: true }));

/** A listener that does this with each connection. */
async function listen(name: string, onConnection: (socket: Socket) => void): Promise<string> {
  const path = join(folder, name);
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    onConnection(socket);
  });
  open.push({ server, sockets });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  return path;
}

async function failureOf(address: string, timeoutMs: number, bytes = 10): Promise<RpcError> {
  const networkConfiguration = new Uint8Array(bytes);
  const cniArgs = { containerId: "echo", netns: "", ifname: "", args: "", path: "", networkConfiguration };
  const caught: unknown = await callUnary(address, cniService.cmdAdd, { cniArgs }, { timeoutMs }).then(
    () => new Error("answered"),
    (error: unknown) => error,
  );
  if (caught instanceof RpcError) return caught;
  throw caught;
}

// Pipes have no files to be left behind; what is the same there is tested with the other system's own tests.
describeWith("without a listener the call fails at once, however long it may take", ["linux"], () => {
  const aDay = 86_400_000;

  test.each([
    ["no file", () => join(folder, "none.sock")],
    ["no folder", () => join(folder, "none", "cni.sock")],
    [
      "a regular file",
      () => {
        writeFileSync(join(folder, "regular.sock"), "");
        return join(folder, "regular.sock");
      },
    ],
    [
      "a folder",
      () => {
        mkdirSync(join(folder, "folder.sock"));
        return join(folder, "folder.sock");
      },
    ],
    ["a path longer than sockets have", () => join(folder, "x".repeat(200))],
    ["an empty path", () => ""],
  ])("%s", async (_, path) => {
    const error = await failureOf(path(), aDay);
    expect(error).toMatchObject({ grpcCode: GrpcCode.unavailable, unreachable: true });
    // The runtime takes these words for "it is gone already", and so for success.
    expect(error.message).not.toMatch(/not found|no such file or directory/i);
  });
});

describeWith("a queue that is full", ["linux"], () => {
  const server = new URL("own-server.ts", import.meta.url).pathname;

  test("is waited for: some calls get their turn when the server goes on, the others end at their deadline", async () => {
    const socket = join(folder, "full.sock");
    await using peer = await startPeer(process.execPath, [server, socket, "1"], socket);
    await peer.freeze();
    const impatient = await Promise.all(Array.from({ length: 6 }, () => failureOf(socket, 300)));
    expect(new Set(impatient.map((error) => error.grpcCode))).toEqual(new Set([GrpcCode.deadlineExceeded]));
    // A queue of one holds two; the others were never connected, and no server has seen them.
    expect(impatient.map((error) => error.unreachable).sort()).toEqual([false, false, true, true, true, true]);

    const cniArgs = {
      containerId: "echo",
      netns: "",
      ifname: "",
      args: "",
      path: "",
      networkConfiguration: new Uint8Array(7),
    };
    const patient = Array.from({ length: 20 }, () =>
      callUnary(socket, cniService.cmdAdd, { cniArgs }, { timeoutMs: 60_000 }),
    );
    peer.thaw();
    expect((await Promise.all(patient)).map((response) => response.cniResult.length)).toEqual(patient.map(() => 7));
  });
});

describeWith("a server that is none", ["linux"], () => {
  test("ends the connection as soon as it stands", async () => {
    const path = await listen("ends.sock", (socket) => socket.destroy());
    expect(await failureOf(path, 60_000)).toMatchObject({ grpcCode: GrpcCode.unavailable, unreachable: false });
  });

  test("ends it in the middle of the answer", async () => {
    const path = await listen("half.sock", (socket) => socket.end(answer(new Uint8Array(100)).subarray(0, 60)));
    expect(await failureOf(path, 60_000)).toMatchObject({ grpcCode: GrpcCode.unavailable, unreachable: false });
  });

  test("speaks another protocol", async () => {
    const path = await listen("http1.sock", (socket) => socket.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
    expect(await failureOf(path, 60_000)).toMatchObject({
      grpcCode: GrpcCode.internal,
      message: expect.stringContaining('begins with "HTTP/1.1 200 OK'),
    });
  });

  test("answers with a message that is not one", async () => {
    const path = await listen("wire.sock", (socket) => socket.write(answer(new Uint8Array([0x0a, 0x7f]))));
    expect(await failureOf(path, 60_000)).toMatchObject({
      grpcCode: GrpcCode.internal,
      message: expect.stringContaining("it has 127 bytes, wanted at most the 0 left"),
    });
  });

  test("says nothing", async () => {
    const path = await listen("silent.sock", () => undefined);
    expect(await failureOf(path, 200)).toMatchObject({ grpcCode: GrpcCode.deadlineExceeded, unreachable: false });
  });

  test("takes nothing, while a long request waits to be sent", async () => {
    const path = await listen("deaf.sock", (socket) => {
      socket.pause();
      socket.write(settings);
    });
    expect(await failureOf(path, 300, 3_000_000)).toMatchObject({ grpcCode: GrpcCode.deadlineExceeded });
  });

  test("sends without end", async () => {
    const path = await listen("flood.sock", (socket) => {
      const flood = new Uint8Array(9 * 1000);
      for (let at = 0; at < flood.length; at += 9) flood.set(settings, at);
      const more = (): void => {
        while (!socket.destroyed && socket.write(flood));
      };
      socket.on("drain", more);
      more();
    });
    expect(await failureOf(path, 60_000)).toMatchObject({ grpcCode: GrpcCode.resourceExhausted });
  });
});
