import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { limits } from "../../shared/limits.ts";
import type { CniCmdResponse } from "../../shared/proto/cni-messages.ts";
import { cniService, nodeService } from "../../shared/proto/services.ts";
import { callUnary } from "../../shared/rpc/call.ts";
import { GrpcCode, RpcError } from "../../shared/rpc/rpc-error.ts";
import { describeWith } from "../support/requires.ts";
import { compileGoPrograms, goNeeds } from "./go-programs.ts";
import { type Peer, startPeer } from "./peer.ts";

/** Our client against real servers, each in a process of its own, all with the same behaviour. */

const folder = mkdtempSync(join(tmpdir(), "pt-rpc-calls-"));
afterAll(() => rmSync(folder, { recursive: true }));

const jsServer = new URL("grpc-js-server.ts", import.meta.url).pathname;
const ownServer = new URL("own-server.ts", import.meta.url).pathname;
const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

interface AddOptions {
  readonly configuration?: Uint8Array;
  readonly timeoutMs?: number;
  readonly metadata?: Readonly<Record<string, string>>;
}

/** CmdAdd whose container id says what the server shall do. The timeout is long where it is not the matter. */
function add(socket: string, containerId: string, options: AddOptions = {}): Promise<CniCmdResponse> {
  const cniArgs = {
    containerId,
    netns: "/var/run/netns/x",
    ifname: "eth0",
    args: "K8S_POD_NAME=web",
    path: "/opt/cni/bin",
    networkConfiguration: options.configuration ?? new Uint8Array(0),
  };
  const { timeoutMs = 60_000, metadata = {} } = options;
  return callUnary(socket, cniService.cmdAdd, { cniArgs }, { timeoutMs, metadata });
}

const failure = async (call: Promise<unknown>): Promise<RpcError> => {
  const caught = await call.then(
    (answer) => new Error(`answered ${JSON.stringify(answer).slice(0, 200)}`),
    (error: unknown) => error,
  );
  if (caught instanceof RpcError) return caught;
  throw caught;
};

const servers: readonly (readonly [name: string, start: (socket: string) => Promise<Peer>])[] = [
  ["grpc-js", (socket) => startPeer(process.execPath, [jsServer, socket], socket)],
  ["our own server", (socket) => startPeer(process.execPath, [ownServer, socket], socket)],
  ["grpc-go", async (socket) => startPeer((await compileGoPrograms()).server, [socket], socket)],
];

describe.each(servers)("%s", (name, start) => {
  describeWith("the calls", name === "grpc-go" ? ["linux", ...goNeeds] : ["linux"], () => {
    const socket = join(folder, `${name.replaceAll(" ", "-")}.sock`);
    let peer: Peer;
    beforeAll(async () => {
      peer = await start(socket);
    }, 240_000);
    afterAll(() => peer.kill());

    test("carry every argument", async () => {
      const { cniResult, error } = await add(socket, "arguments");
      expect(text(cniResult)).toBe("arguments|/var/run/netns/x|eth0|K8S_POD_NAME=web|/opt/cni/bin");
      expect(error).toBeUndefined();
    });

    test.each([0, 1, 5000, 65_530, 65_536, 1_000_000, limits.messageBytes - 100])(
      "carry %d bytes both ways",
      async (size) => {
        const configuration = new Uint8Array(size).map((_, i) => i % 251);
        const { cniResult } = await add(socket, "echo", { configuration });
        expect(Buffer.compare(cniResult, configuration)).toBe(0);
      },
    );

    test("refuse a longer answer and a longer request", async () => {
      expect(await failure(add(socket, `bytes-${limits.messageBytes + 1}`))).toMatchObject({
        grpcCode: GrpcCode.resourceExhausted,
        unreachable: false,
        message: expect.stringContaining("wanted at most 4194304"),
      });
      const configuration = new Uint8Array(limits.messageBytes);
      expect(await failure(add(socket, "echo", { configuration }))).toMatchObject({
        grpcCode: GrpcCode.resourceExhausted,
        unreachable: true,
      });
    });

    test("give an error with its details", async () => {
      const { error, cniResult } = await add(socket, "error");
      expect(cniResult).toHaveLength(0);
      expect(error).toMatchObject({ code: 102, message: "no bridge" });
      expect(error?.details.map((detail) => [detail.typeUrl, Array.from(detail.value)])).toEqual([
        ["type.example/a", [1, 2, 3]],
        ["type.example/b", []],
      ]);
    });

    test.each(Object.entries(GrpcCode).filter(([, code]) => code !== 0))("end with status %s", async (_, code) => {
      const message = `100% of "${code}": Straße 網路 😀 /a\tb\\`;
      const configuration = new TextEncoder().encode(message);
      const error = await failure(add(socket, `status-${code}`, { configuration }));
      // What could command a terminal is shown as what it is.
      expect(error).toMatchObject({ grpcCode: code, message: message.replace("\t", "\\u0009"), unreachable: false });
    });

    test("take an unassigned status for unknown", async () => {
      const configuration = new TextEncoder().encode("strange");
      const error = await failure(add(socket, "status-42", { configuration }));
      expect(error).toMatchObject({ grpcCode: GrpcCode.unknown, message: "strange" });
    });

    test("tell of a service that is not there", async () => {
      const error = await failure(callUnary(socket, nodeService.status, { network: "" }, { timeoutMs: 60_000 }));
      expect(error).toMatchObject({ grpcCode: GrpcCode.unimplemented, unreachable: false });
    });

    // What a handler of ours is told of both is a matter of the server's own tests.
    if (name !== "our own server") {
      test("carry metadata, and leave out what no header can carry", async () => {
        const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        const metadata = { traceparent, "Bad Name": "x", broken: "a\r\nb", "grpc-status": "0", "": "y" };
        expect(text((await add(socket, "traceparent", { metadata })).cniResult)).toBe(traceparent);
      });

      test("tell the server their deadline", async () => {
        const remainingMs = Number(text((await add(socket, "remaining", { timeoutMs: 50_000 })).cniResult));
        expect(remainingMs).toBeGreaterThan(1000);
        expect(remainingMs).toBeLessThanOrEqual(50_000);
      });
    }

    test("end at their deadline where the server is silent", async () => {
      const error = await failure(add(socket, "silence", { timeoutMs: 200 }));
      expect(error).toMatchObject({ grpcCode: GrpcCode.deadlineExceeded, unreachable: false });
    });

    test("end at their deadline where the server is frozen, and work once it goes on", async () => {
      await peer.freeze();
      const error = await failure(add(socket, "echo", { timeoutMs: 200 }));
      expect(error).toMatchObject({ grpcCode: GrpcCode.deadlineExceeded, unreachable: false });
      const waiting = add(socket, "arguments");
      peer.thaw();
      expect(text((await waiting).cniResult)).toContain("arguments|");
    });

    test("come 300 at once", async () => {
      const calls = Array.from({ length: 300 }, (_, i) =>
        add(socket, "echo", { configuration: new TextEncoder().encode(`call ${i}`) }),
      );
      const answers = await Promise.all(calls);
      expect(answers.map((answer) => text(answer.cniResult))).toEqual(calls.map((_, i) => `call ${i}`));
    });

    // The last one, for the server is gone then.
    test("fail where the server dies under them, and then there is nobody", async () => {
      const waiting = failure(add(socket, "silence"));
      // The server has the call once another one, begun later, has its answer.
      await add(socket, "echo");
      await peer.kill();
      expect(await waiting).toMatchObject({ grpcCode: GrpcCode.unavailable, unreachable: false });
      // Its socket file is still there; the long timeout shows that nothing waits for it.
      expect(await failure(add(socket, "echo"))).toMatchObject({
        grpcCode: GrpcCode.unavailable,
        unreachable: true,
        message: expect.stringContaining("nobody listens"),
      });
    });
  });
});
