import { afterEach, beforeEach, expect, test } from "vitest";
import { type IpamConfig, parseIpamConfig } from "../../ipam/mod.ts";
import { ownerKey } from "../../shared/cni/owner-key.ts";
import { formatIp, type Ip } from "../../shared/net/ip.ts";
import { Fields } from "../../shared/schema/json-fields.ts";
import { ownerOf, type PartsInMemory, partsInMemory } from "../../test/fakes/parts-in-memory.ts";
import { namespaceProbe } from "./liveness-probes.ts";
import { reclaimStaleLease } from "./stale-leases.ts";

let parts: PartsInMemory;

beforeEach(async () => {
  parts = await partsInMemory();
});
afterEach(() => parts[Symbol.dispose]());

/** Five addresses. */
const five: IpamConfig = parseIpamConfig({
  conf: new Fields({ ipam: { subnet: "10.9.0.0/29" } }),
  network: "pods",
  version: "1.1.0",
  args: "",
});
const ids = ["a", "b", "c", "d", "e"];

/** Who has all addresses, and what boot they had them in. */
function fill(suspects: readonly string[]): void {
  for (const id of ids) parts.allocator.allocate(ownerOf(id), five);
  parts.allocator.transaction((store): void => {
    for (const lease of store.select({ by: "network", network: "pods" }))
      if (suspects.includes(lease.owner.sandboxId)) store.put({ ...lease, bootId: "an earlier boot" });
  });
}

const addressOf = (id: string): Ip => {
  const [lease] = parts.allocator.find(ownerOf(id));
  if (lease === undefined) throw new Error(`${id} has no lease`);
  return lease.address.ip;
};
const holders = (): string[] => ids.filter((id) => parts.allocator.find(ownerOf(id)).length > 0);

const giveWay = (config = five, look: () => Promise<ReadonlySet<string>> = async () => new Set()): Promise<boolean> =>
  reclaimStaleLease({ ...parts, livenessProbes: [namespaceProbe(look)] }, "pods", config);

test("nobody gives way while anything else is free", async () => {
  fill(ids);
  parts.allocator.release(ownerOf("d"), "cooling");
  expect(await giveWay()).toBe(false);
  expect(holders()).toEqual(["a", "b", "c", "e"]);
});

test("the oldest of an earlier boot gives way, nobody of this one or with an interface or an address that stands", async () => {
  fill(["b", "c", "d", "e"]);
  const owner = ownerOf("b");
  parts.dataPath.standing.set(ownerKey(owner), { owner, ownLease: true, hostIfname: "ve-b" });
  const standing = new Set([formatIp(addressOf("c"))]);
  expect(await giveWay(five, async () => standing)).toBe(true);
  expect(holders()).toEqual(["a", "b", "c", "e"]);
});

test("who asks for an address gets that one and no other from them", async () => {
  fill(["b", "c"]);
  expect(await giveWay({ ...five, requested: [addressOf("a")] })).toBe(false);
  expect(await giveWay({ ...five, requested: [addressOf("c")] })).toBe(true);
  expect(holders()).toEqual(["a", "b", "d", "e"]);
});

test("nobody gives way where a source cannot be asked, or who comes back while it is", async () => {
  fill(["b"]);
  await expect(giveWay(five, () => Promise.reject(new Error("no answer")))).rejects.toThrow("no answer");
  await giveWay(five, async () => {
    parts.allocator.allocate(ownerOf("b"), five);
    return new Set();
  });
  expect(holders()).toEqual(ids);
  expect(await giveWay()).toBe(false);
});

test("the oldest is who was given an address first, whatever the address", async () => {
  fill(ids);
  parts.allocator.transaction((store): void => {
    for (const lease of store.select({ by: "network", network: "pods" }))
      if (lease.owner.sandboxId !== "d") store.put({ ...lease, generation: lease.generation + 100 });
  });
  expect(await giveWay()).toBe(true);
  expect(holders()).toEqual(["a", "b", "c", "e"]);
});

test("nobody of another network gives way", async () => {
  fill(ids);
  expect(await reclaimStaleLease({ ...parts, livenessProbes: [] }, "other", five)).toBe(false);
  expect(holders()).toEqual(ids);
});
