import { afterEach, beforeEach, expect, test } from "vitest";
import { parseIpamConfig } from "../../ipam/mod.ts";
import { ownerKey } from "../../shared/cni/owner-key.ts";
import { formatIp } from "../../shared/net/ip.ts";
import { Fields } from "../../shared/schema/json-fields.ts";
import { ownerOf, type PartsInMemory, partsInMemory } from "../../test/fakes/parts-in-memory.ts";
import { endInterfaceLost } from "./interface-lost.ts";
import { Janitor } from "./janitor.ts";
import { namespaceProbe } from "./liveness-probes.ts";

let parts: PartsInMemory;

beforeEach(async () => {
  parts = await partsInMemory();
});
afterEach(() => parts[Symbol.dispose]());

const janitorWith = (
  interfaceLostGraceMs: number,
  addresses: () => Promise<ReadonlySet<string>> = async () => new Set(),
) =>
  new Janitor(parts, {
    intervalMs: 1,
    staleGraceMs: 60_000,
    interfaceLostGraceMs,
    livenessProbes: [namespaceProbe(addresses)],
  });

/** A pod as an ADD leaves it. */
function wire(sandboxId: string): void {
  const owner = ownerOf(sandboxId);
  parts.allocator.allocate(owner, parts.ipam, undefined, true);
  stand(sandboxId);
}

function stand(sandboxId: string): void {
  const owner = ownerOf(sandboxId);
  parts.dataPath.standing.set(ownerKey(owner), { owner, ownLease: true, hostIfname: `ve-${sandboxId}` });
}

/** Its namespace has ended, and the interface with it. */
const end = (sandboxId: string): boolean => parts.dataPath.standing.delete(ownerKey(ownerOf(sandboxId)));

const states = (sandboxId: string): string[] =>
  parts.allocator
    .list()
    .filter((lease) => lease.owner.sandboxId === sandboxId)
    .map((lease) => lease.state);

test("peers 6: an interface that is gone for longer than the grace gives its addresses back, the others keep theirs", async () => {
  for (const id of ["gone", "stays"]) wire(id);
  end("gone");
  const janitor = janitorWith(20);
  await janitor.round();
  expect(states("gone")).toEqual(["allocated"]);
  await Bun.sleep(25);
  await janitor.round();
  expect([states("gone"), states("stays")]).toEqual([["cooling"], ["allocated"]]);
  expect(parts.lines.join()).toContain("whose interface has gone without a DEL");
});

test("where an ADD found no address there is no grace, once in an interval", async () => {
  for (const id of ["first", "second"]) wire(id);
  end("first");
  const janitor = new Janitor(parts, { intervalMs: 60_000, staleGraceMs: 60_000, interfaceLostGraceMs: 60_000 });
  janitor.makeRoom();
  await janitor.round();
  expect(states("first")).toEqual(["cooling"]);
  end("second");
  janitor.makeRoom();
  await janitor.round();
  expect(states("second")).toEqual(["allocated"]);
  await janitor.stop();
});

test("one that comes back within the grace is missed anew from then on", async () => {
  wire("again");
  end("again");
  const janitor = janitorWith(20);
  await janitor.round();
  await Bun.sleep(25);
  stand("again");
  await janitor.round();
  end("again");
  await janitor.round();
  expect(states("again")).toEqual(["allocated"]);
});

test("a lease that nobody wired is nobody's to take back, also where one of its owner was wired before", async () => {
  parts.allocator.allocate(ownerOf("program"), parts.ipam);
  wire("before");
  parts.allocator.release(ownerOf("before"), "cooling");
  end("before");
  parts.allocator.allocate(ownerOf("before"), parts.ipam);
  const janitor = janitorWith(0);
  for (let i = 0; i < 2; i++) await janitor.round();
  expect([states("program"), states("before")]).toEqual([["allocated"], ["allocated"]]);
});

test("an address that a source still knows stays, also where the source cannot be asked", async () => {
  wire("moved");
  end("moved");
  const [address] = parts.allocator.find(ownerOf("moved")).map((lease) => formatIp(lease.address.ip));
  await janitorWith(0, () => Promise.reject(new Error("no answer"))).round();
  await janitorWith(0, async () => new Set([address ?? ""])).round();
  expect(states("moved")).toEqual(["allocated"]);
  await janitorWith(0).round();
  expect(states("moved")).toEqual(["cooling"]);
});

test("an ADD that comes during the look has its interface made, and keeps what it was given", async () => {
  wire("again");
  end("again");
  const holding = Promise.withResolvers<void>();
  let add: Promise<void> | undefined;
  const round = janitorWith(0, async () => {
    add = parts.mutex.run(ownerKey(ownerOf("again")), { what: "ADD" }, async () => {
      await holding.promise;
      stand("again");
    });
    return new Set();
  }).round();
  await Bun.sleep(1);
  holding.resolve();
  await Promise.all([add, round]);
  expect(states("again")).toEqual(["allocated"]);
});

test("who is in a call is not missed: nothing is said of it, and the round does not wait for it", async () => {
  for (const id of ["making", "gone"]) wire(id);
  for (const id of ["making", "gone"]) end(id);
  const holding = Promise.withResolvers<void>();
  const add = parts.mutex.run(ownerKey(ownerOf("making")), { what: "ADD" }, () => holding.promise);
  const round = janitorWith(0).round();
  expect(await Promise.race([round.then(() => "ended"), Bun.sleep(2_000).then(() => "waits")])).toBe("ended");
  holding.resolve();
  await Promise.all([add, round]);
  expect([states("making"), states("gone")]).toEqual([["allocated"], ["cooling"]]);
  const said = parts.lines.filter((line) => line.includes("whose interface has gone"));
  expect(said).toEqual([expect.stringContaining('"gone"')]);
  expect(said.join()).not.toContain("making");
});

test("without a grace nothing is given back: an endpoint of Windows may be lost while its pod runs", async () => {
  wire("lost");
  end("lost");
  await new Janitor(parts, { intervalMs: 1, staleGraceMs: 0 }).round();
  expect(states("lost")).toEqual(["allocated"]);
});

test("the leases that are given back are those that were seen: one that was taken anew since stays", async () => {
  wire("anew");
  end("anew");
  const owner = ownerOf("anew");
  const seen = { owner, leases: parts.allocator.find(owner) };
  parts.allocator.release(owner, "cooling");
  parts.allocator.allocate(owner, parts.ipam, undefined, true);
  expect(await endInterfaceLost(parts, seen)).toBe(false);
  expect(states("anew")).toEqual(["allocated"]);
  expect(await endInterfaceLost(parts, { owner, leases: parts.allocator.find(owner) })).toBe(true);
  expect(states("anew")).toEqual(["cooling"]);
  // Nothing is held any more.
  expect(await endInterfaceLost(parts, seen)).toBe(false);
});

test("an owner that is known by one of its two addresses keeps both", async () => {
  const ranges = [[{ subnet: "10.9.0.0/24" }], [{ subnet: "fd00:9::/120" }]];
  const conf = new Fields({ name: "pods", ipam: { ...(parts.conf["ipam"] as object), ranges } });
  const both = parseIpamConfig({ conf, network: "pods", version: "1.1.0", args: "" });
  for (const id of ["known", "unknown"]) parts.allocator.allocate(ownerOf(id), both, undefined, true);
  const [, six] = parts.allocator.find(ownerOf("known")).map((lease) => formatIp(lease.address.ip));
  await janitorWith(0, async () => new Set([six ?? ""])).round();
  expect([states("known"), states("unknown")]).toEqual([
    ["allocated", "allocated"],
    ["cooling", "cooling"],
  ]);
});

test("what belongs to a vanished interface is taken away with it, such as a port of the switch", async () => {
  wire("gone");
  end("gone");
  const seen: string[] = [];
  parts.dataPath.before = (action, { sandboxId }) => void seen.push(`${action} ${sandboxId}`);
  await janitorWith(0).round();
  expect(seen).toEqual(["detach gone"]);
});

test("a pod that has got another address since keeps both", async () => {
  const owner = ownerOf("more");
  const both = parseIpamConfig({
    conf: new Fields({ ipam: { ranges: [[{ subnet: "10.9.0.0/24" }], [{ subnet: "fd09::/64" }]] } }),
    network: "pods",
    version: "1.1.0",
    args: "",
  });
  parts.allocator.allocate(owner, both, undefined, true);
  const leases = parts.allocator.find(owner);
  expect(await endInterfaceLost(parts, { owner, leases: leases.slice(0, 1) })).toBe(false);
  expect(states("more")).toEqual(["allocated", "allocated"]);
  expect(await endInterfaceLost(parts, { owner, leases })).toBe(true);
});
