import { afterEach, beforeEach, expect, test } from "vitest";
import { ownerKey } from "../../shared/cni/owner-key.ts";
import { createLogger } from "../../shared/log.ts";
import { uptimeMs } from "../../shared/os/uptime.ts";
import type { GcResponse, StatusResponse } from "../../shared/proto/pipette-messages.ts";
import { nodeService } from "../../shared/proto/services.ts";
import { ownerOf, type PartsInMemory, partsInMemory } from "../../test/fakes/parts-in-memory.ts";
import { RecordedMeter } from "../../test/fakes/recorded-meter.ts";
import { Janitor } from "../reconcile/mod.ts";
import { nodeRpcs } from "./node-service.ts";

let parts: PartsInMemory;
let meter: RecordedMeter;
let notReady: string | undefined;
let refused: string | undefined;

beforeEach(async () => {
  parts = await partsInMemory();
  meter = new RecordedMeter();
  notReady = undefined;
  refused = undefined;
});
afterEach(() => parts[Symbol.dispose]());

async function call(
  path: string,
  request: unknown,
  signal = new AbortController().signal,
  startedUptimeMs?: number,
): Promise<unknown> {
  const janitor = new Janitor(parts, { intervalMs: 1_000, staleGraceMs: 1_000 });
  const about = { version: "0", dataPath: "memory", startedAtMs: 0, callsInFlight: () => 1, notReady: () => notReady };
  const info = {
    ...about,
    refused: () => refused,
    cluster: () => "",
    policies: () => "",
    policyDifferences: () => Promise.resolve([]),
    services: () => undefined,
    refusals: () => [],
    probes: () => undefined,
    state: () => "ready",
    troubles: () => [],
    configuration: async () => [],
  };
  const nothing = (): void => undefined;
  const gate = {
    requireReady: nothing,
    untilReady: async () => undefined,
    requireAddresses: nothing,
    lackedAddress: nothing,
  };
  const rpcs = nodeRpcs(Object.assign(parts, { meter }), janitor, gate, info);
  const found = rpcs.find((candidate) => candidate.method.path === path);
  if (found === undefined) throw new Error(`No method ${path}`);
  const since = startedUptimeMs === undefined ? {} : { startedUptimeMs };
  return await found.handle(request, { signal, log: createLogger("error", () => undefined), ...since });
}

const gc = (valid: readonly string[], signal?: AbortSignal, startedUptimeMs?: number): Promise<GcResponse> => {
  const attachments = valid.map((containerId) => ({ containerId, ifname: "eth0" }));
  return call(
    nodeService.gc.path,
    { network: "pods", valid: attachments },
    signal,
    startedUptimeMs,
  ) as Promise<GcResponse>;
};

function wire(sandboxId: string, ownLease = true): void {
  const owner = ownerOf(sandboxId);
  if (ownLease) parts.allocator.allocate(owner, parts.ipam);
  parts.dataPath.standing.set(ownerKey(owner), { owner, ownLease, hostIfname: `ve-${sandboxId}` });
}

const allocated = (): string[] =>
  parts.allocator
    .list()
    .filter((lease) => lease.state === "allocated")
    .map((lease) => lease.owner.sandboxId);

test("GC of a caller that has gone takes nothing away", async () => {
  wire("a");
  await expect(gc([], AbortSignal.abort())).rejects.toMatchObject({ code: 11 });
  expect([parts.dataPath.containers(), allocated()]).toEqual([["a"], ["a"]]);
});

test("peers 2: GC leaves who came since its caller made the list, whoever keeps the address", async () => {
  wire("stale");
  wire("stale-delegated", false);
  await Bun.sleep(2);
  const began = uptimeMs();
  await Bun.sleep(2);
  wire("young");
  wire("young-delegated", false);
  for (const id of ["young", "young-delegated"]) parts.lastAddAt.set(ownerKey(ownerOf(id)), uptimeMs() ?? 0);
  const { removed } = await gc([], undefined, began);
  expect(removed.map(({ containerId }) => containerId).sort()).toEqual(["stale", "stale-delegated"]);
  expect(parts.dataPath.containers()).toEqual(["young", "young-delegated"]);
  expect(allocated()).toEqual(["young"]);
});

test("GC goes on past what fails, names it, and leaves it to the janitor", async () => {
  for (const id of ["bad", "good", "keep"]) wire(id);
  wire("delegated", false);
  parts.dataPath.before = (_action, owner) => {
    if (owner.sandboxId === "bad") throw new Error("the kernel refuses");
  };
  const { removed, failures } = await gc(["keep"]);
  expect(removed.map((attachment) => attachment.containerId).sort()).toEqual(["delegated", "good"]);
  expect(failures).toEqual(["bad eth0: the kernel refuses"]);
  expect([parts.dataPath.containers(), allocated()]).toEqual([["bad", "keep"], ["keep"]]);
  parts.dataPath.before = () => undefined;
  await new Janitor(parts, { intervalMs: 1, staleGraceMs: 60_000 }).round();
  expect(parts.dataPath.containers()).toEqual(["keep"]);
});

test("GC leaves alone what was added since the list was made", async () => {
  wire("late", false);
  const original = parts.dataPath.list.bind(parts.dataPath);
  parts.dataPath.list = async () => {
    const listed = await original();
    parts.allocator.allocate(ownerOf("late"), parts.ipam);
    return listed;
  };
  expect(await gc([])).toEqual({ removed: [], failures: [], leftOut: 0 });
  expect(parts.dataPath.containers()).toEqual(["late"]);
});

test("GC leaves alone whose ADD ends while it waits for it, also where another plugin keeps the address", async () => {
  wire("crossing", false);
  const ending = Promise.withResolvers<void>();
  const add = parts.mutex.run(ownerKey(ownerOf("crossing")), { what: "ADD" }, async () => {
    await ending.promise;
    parts.lastAddAt.set(ownerKey(ownerOf("crossing")), 0);
  });
  const collected = gc([]);
  await Bun.sleep(1);
  ending.resolve();
  await add;
  expect((await collected).removed).toEqual([]);
  expect(parts.dataPath.containers()).toEqual(["crossing"]);
});

const problems = async (network: string): Promise<string[]> => {
  const status = (await call(nodeService.status.path, { network })) as StatusResponse;
  return status.problems.map(({ code, message, advisory }) => `${advisory ? "advisory " : ""}${code} ${message}`);
};

test("Status: what takes the node out of service is told to everybody", async () => {
  const everybody = async () => [await problems("pods"), await problems("")];
  expect(await everybody()).toEqual([[], []]);
  parts.dataPath.wrong = [{ code: 51, message: "the bridge is down" }];
  expect(await everybody()).toEqual([["51 the bridge is down"], ["51 the bridge is down"]]);
  parts.dataPath.wrong = [];
  refused = "this node's subnet is another's";
  expect(await everybody()).toEqual([["50 this node's subnet is another's"], ["50 this node's subnet is another's"]]);
  notReady = "the agent is still starting";
  expect(await everybody()).toEqual([["50 the agent is still starting"], ["50 the agent is still starting"]]);
});

test("Status: what hurts new pods only is told to people, and not to a runtime, which would evict all others", async () => {
  for (let i = 0; i < 253; i++) parts.allocator.allocate(ownerOf(`full-${i}`), parts.ipam);
  expect(await problems("")).toEqual([
    expect.stringMatching(/^advisory 50 Cannot give a new pod of network "pods" an address: all 253 addresses of /),
  ]);
  expect(await problems("pods")).toEqual([]);
  parts.allocator.release(ownerOf("full-7"), "cooling");
  expect(await problems("")).toEqual([]);
  parts.allocator.transaction((store): void => store.setMark("incomplete", "leases.db.damaged-x"));
  expect(await problems("")).toEqual([expect.stringMatching(/^advisory 50 .*were lost/)]);
  expect(await problems("pods")).toEqual([]);
  await gc([]);
  expect(await problems("")).toEqual([]);
});

test("GC and STATUS are counted with the codes that a runtime gets, and what people ask is not", async () => {
  const counted = (): readonly string[] => meter.told.splice(0).filter((one) => one.includes("requests_total"));
  wire("a");
  await gc(["a"]);
  parts.dataPath.before = () => {
    throw new Error("the kernel refuses");
  };
  await gc([]);
  await gc([], AbortSignal.abort()).catch(() => undefined);
  expect(counted()).toEqual([
    "pipette_cni_requests_total{verb=GC,code=0}",
    "pipette_cni_requests_total{verb=GC,code=11}",
    "pipette_cni_requests_total{verb=GC,code=11}",
  ]);
  await call(nodeService.status.path, { network: "pods" });
  notReady = "Cannot serve the node: the agent is still starting";
  await call(nodeService.status.path, { network: "pods" });
  await call(nodeService.status.path, { network: "" });
  expect(counted()).toEqual([
    "pipette_cni_requests_total{verb=STATUS,code=0}",
    "pipette_cni_requests_total{verb=STATUS,code=50}",
  ]);
});
