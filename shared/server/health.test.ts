import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { scratchDir } from "../../test/support/scratch-dir.ts";
import { RpcChannel } from "../channel/rpc-channel.ts";
import { createLogger } from "../log.ts";
import { healthService, ServingStatus } from "../proto/daemon-services.ts";
import { nodeService } from "../proto/services.ts";
import { GrpcCode } from "../rpc/rpc-error.ts";
import { CallTracker } from "./call-tracker.ts";
import { rpc } from "./handlers.ts";
import { RpcServer } from "./rpc-server.ts";

let scratch: ReturnType<typeof scratchDir>;
let server: RpcServer;
let channel: RpcChannel;
const options = { timeoutMs: 20_000 };

beforeEach(async () => {
  scratch = scratchDir();
  const socket = `${scratch.path}/s`;
  const rpcs = [rpc(nodeService.listInterfaces, async () => ({ interfaces: [] }))];
  server = await RpcServer.listen(
    socket,
    [rpcs],
    new CallTracker(),
    createLogger("error", () => undefined),
  );
  channel = new RpcChannel(socket);
});
afterEach(async () => {
  channel[Symbol.dispose]();
  await server.close(0);
  scratch[Symbol.dispose]();
});

const check = async (service: string): Promise<number> =>
  (await channel.unary(healthService.check, { service }, options)).status;

const watch = (service: string): AsyncGenerator<{ readonly status: number }, void> =>
  channel.stream(healthService.watch, { service }, options);

describe("the health of a server", () => {
  test("is not serving until it is said, the same for each of its services", async () => {
    for (const name of ["", "pipette.v1.Node"]) expect(await check(name)).toBe(ServingStatus.notServing);
    server.health.serving = true;
    for (const name of ["", "pipette.v1.Node"]) expect(await check(name)).toBe(ServingStatus.serving);
  });

  test("of a service that is not there is none", async () => {
    await expect(check("a.Stranger")).rejects.toMatchObject({
      grpcCode: GrpcCode.notFound,
      message: expect.stringContaining('"a.Stranger": there is no such service, wanted one of "", "pipette.v1.Node"'),
    });
    const watched = watch("a.Stranger");
    expect((await watched.next()).value).toEqual({ status: ServingStatus.serviceUnknown });
    await watched.return();
  });

  test("is told at once and at each change, once", async () => {
    const watched = watch("pipette.v1.Node");
    const next = async () => (await watched.next()).value?.status;
    expect(await next()).toBe(ServingStatus.notServing);
    // Nothing has changed by this.
    server.health.serving = false;
    server.health.serving = true;
    expect(await next()).toBe(ServingStatus.serving);
    server.health.serving = false;
    expect(await next()).toBe(ServingStatus.notServing);
    await watched.return();
  });

  test("a server that closes tells its watchers, and does not wait for them", async () => {
    server.health.serving = true;
    const watched = watch("");
    expect((await watched.next()).value).toEqual({ status: ServingStatus.serving });
    const closed = server.close(60_000);
    expect((await watched.next()).value).toEqual({ status: ServingStatus.notServing });
    await expect(watched.next()).rejects.toMatchObject({ grpcCode: GrpcCode.unavailable });
    expect(await closed).toBe(true);
  });

  test("a watcher that leaves is not kept", async () => {
    const watched = watch("");
    await watched.next();
    await watched.return();
    expect(await server.close(10_000)).toBe(true);
  });
});
