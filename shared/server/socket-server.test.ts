import { existsSync, renameSync, unlinkSync } from "node:fs";
import { createServer } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { scratchDir } from "../../test/support/scratch-dir.ts";
import { createLogger } from "../log.ts";
import { healthService, ServingStatus } from "../proto/daemon-services.ts";
import { callUnary } from "../rpc/call.ts";
import { openSystem } from "./open-system.ts";
import { SocketServer } from "./socket-server.ts";

const logger = createLogger("error", () => undefined);
const system = await openSystem();

let scratch: ReturnType<typeof scratchDir>;
let path: string;
let server: SocketServer;

beforeEach(() => {
  scratch = scratchDir();
  path = `${scratch.path}/run/s`;
  server = SocketServer.claim(path, "the one under test", system);
});
afterEach(async () => {
  await server[Symbol.asyncDispose]();
  scratch[Symbol.dispose]();
});

const health = async (): Promise<number> =>
  (await callUnary(path, healthService.check, { service: "" }, { timeoutMs: 20_000 })).status;

describe("a socket of one's own", () => {
  test("belongs to one only, from the claim to the end, also where it is served no more", async () => {
    const claim = (): SocketServer => SocketServer.claim(path, "another one", system);
    const refusal = `Cannot start another one: socket "${path}" is held by process ${process.pid}`;
    expect(claim).toThrow(refusal);
    await server.listen([], 1_000, logger);
    expect(await server.close(0)).toBe(true);
    expect(claim).toThrow(refusal);
    await server[Symbol.asyncDispose]();
    await server[Symbol.asyncDispose]();
    server = claim();
  });

  test("serves no health before it is said, and none when it is closed", async () => {
    server.serving = true;
    await server.listen([], 1_000, logger);
    expect(await health()).toBe(ServingStatus.notServing);
    server.serving = true;
    expect(await health()).toBe(ServingStatus.serving);
    await server.close(0);
    await expect(health()).rejects.toMatchObject({ unreachable: true });
    expect(existsSync(path)).toBe(false);
  });

  const lost = (is: string): string =>
    `Cannot be reached any more: the socket "${path}" ${is}, wanted the one that this process made`;

  test("whose file is gone says so", async () => {
    await server.listen([], 10, logger);
    unlinkSync(path);
    expect(await server.lost).toBe(lost("is gone"));
  });

  test("whose place another program has taken says so, and leaves it to that", async () => {
    await server.listen([], 10, logger);
    const other = createServer().listen(`${path}.other`);
    await new Promise((resolve) => other.once("listening", resolve));
    renameSync(`${path}.other`, path);
    expect(await server.lost).toBe(lost("is another program's"));
    await server.close(0);
    expect(existsSync(path)).toBe(true);
    other.close();
  });
});
