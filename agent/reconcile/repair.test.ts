import { afterEach, beforeEach, expect, test } from "vitest";
import { parseIpamConfig } from "../../ipam/mod.ts";
import { ownerKey } from "../../shared/cni/owner-key.ts";
import { Fields } from "../../shared/schema/json-fields.ts";
import { ownerOf, type PartsInMemory, partsInMemory } from "../../test/fakes/parts-in-memory.ts";
import { namespaceProbe } from "./liveness-probes.ts";
import { repairOwner } from "./repair.ts";

const owner = ownerOf("a");
const interfaceName = "ve-a";
let parts: PartsInMemory;

beforeEach(async () => {
  parts = await partsInMemory();
});
afterEach(() => parts[Symbol.dispose]());

const none = { livenessProbes: [] };
const lease = () => parts.allocator.allocate(owner, parts.ipam).leases[0];
const wire = (ownLease = true): void => {
  parts.dataPath.standing.set(ownerKey(owner), { owner, ownLease, hostIfname: interfaceName });
};
const states = (): string[] => parts.allocator.list().map(({ state }) => state);

test("leaves alone what agrees, also where another plugin keeps the address", async () => {
  lease();
  wire();
  expect(await repairOwner(parts, owner, none)).toBeUndefined();
  expect([parts.dataPath.containers(), states()]).toEqual([["a"], ["allocated"]]);
  parts.allocator.release(owner, "cooling");
  wire(false);
  expect(await repairOwner(parts, owner, none)).toBeUndefined();
  expect(parts.dataPath.containers()).toEqual(["a"]);
});

test("lets the addresses of a lease without an interface cool, unless a namespace holds one", async () => {
  const address = lease()?.address.ip;
  const held = namespaceProbe(async () => new Set(["10.9.0.2"]));
  expect(address?.value).toBe(0x0a09_0002n);
  expect(await repairOwner(parts, owner, { livenessProbes: [held] })).toBeUndefined();
  expect(states()).toEqual(["allocated"]);
  expect(await repairOwner(parts, owner, none)).toBe("let its addresses cool");
  expect(states()).toEqual(["cooling"]);
});

test("keeps a lease where a source cannot be asked", async () => {
  lease();
  const broken = { name: "broken", probe: () => Promise.reject(new Error("cannot look")) };
  await expect(repairOwner(parts, owner, { livenessProbes: [broken] })).rejects.toThrow("cannot look");
  expect(states()).toEqual(["allocated"]);
});

test("gives an interface its lost lease again, and takes one away whose lease has ended", async () => {
  wire();
  parts.dataPath.addressesOf.set(ownerKey(owner), [{ ip: { family: 4, value: 0x0a09_0007n }, prefix: 24 }]);
  expect(await repairOwner(parts, owner, none)).toBe("gave its interface a lease again");
  expect(parts.allocator.find(owner)[0]?.address.ip.value).toBe(0x0a09_0007n);
  parts.allocator.release(owner, "cooling");
  expect(await repairOwner(parts, owner, none)).toBe("took its interface away, whose lease had ended");
  expect([parts.dataPath.containers(), states()]).toEqual([[], ["cooling"]]);
});

test("ends what the runtime does not know, but not the life that came after the look", async () => {
  const generation = lease()?.generation ?? 0;
  wire();
  expect(await repairOwner(parts, owner, { ...none, goneGeneration: generation + 1 })).toBeUndefined();
  expect([parts.dataPath.containers(), states()]).toEqual([["a"], ["allocated"]]);
  expect(await repairOwner(parts, owner, { ...none, goneGeneration: generation })).toContain("took its interface away");
  expect([parts.dataPath.containers(), states()]).toEqual([[], ["cooling"]]);
});

test("waits for an ADD that is under way, and finds nothing to do then", async () => {
  const adding = Promise.withResolvers<void>();
  const add = parts.mutex.run(ownerKey(owner), { what: "ADD" }, async () => {
    lease();
    await adding.promise;
    wire();
  });
  const mending = repairOwner(parts, owner, none);
  await Bun.sleep(20);
  expect(states()).toEqual(["allocated"]);
  adding.resolve();
  await add;
  expect(await mending).toBeUndefined();
  expect([parts.dataPath.containers(), states()]).toEqual([["a"], ["allocated"]]);
});

test("finishes a DEL, and asks the data path also where nothing is known: a port may be left", async () => {
  lease();
  wire();
  parts.allocator.release(owner, "releasing");
  expect(await repairOwner(parts, owner, none)).toBe("finished what its DEL left");
  expect([parts.dataPath.containers(), states()]).toEqual([[], ["cooling"]]);
  let detached = 0;
  parts.dataPath.before = (action) => {
    if (action === "detach") detached++;
  };
  expect(await repairOwner(parts, ownerOf("z"), none)).toBe("took away what was left of its port");
  expect(detached).toBe(1);
});

test("what the runtime does not know goes also where no lease is left of it", async () => {
  wire(false);
  expect(await repairOwner(parts, owner, { ...none, goneGeneration: 7 })).toContain("took its interface away");
  expect(parts.dataPath.containers()).toEqual([]);
});

test("a pod with two addresses is gone where the runtime has named either of its leases", async () => {
  const ranges = [[{ subnet: "10.9.0.0/24" }], [{ subnet: "fd09::/64" }]];
  const conf = new Fields({ ipam: { type: "pipette-ipam", ranges } });
  parts.allocator.allocate(owner, parseIpamConfig({ conf, network: "pods", version: "1.1.0", args: "" }));
  wire();
  const generations = parts.allocator.find(owner).map(({ generation }) => generation);
  expect(generations).toHaveLength(2);
  expect(await repairOwner(parts, owner, { ...none, goneGeneration: Math.max(...generations) })).toContain(
    "took its interface away",
  );
});
