import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { CniCode, CniError } from "../errors.ts";
import { createLogger } from "../log.ts";
import type { StatusResponse } from "../proto/pipette-messages.ts";
import { nodeService } from "../proto/services.ts";
import { callUnary } from "../rpc/call.ts";
import { CallTracker } from "./call-tracker.ts";
import { type CallContext, rpc } from "./handlers.ts";
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
