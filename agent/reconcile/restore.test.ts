import { afterEach, beforeEach, expect, test } from "vitest";
import { ownerKey } from "../../shared/cni/owner-key.ts";
import { formatCidr, parseCidr } from "../../shared/net/ip.ts";
import { ownerOf, type PartsInMemory, partsInMemory } from "../../test/fakes/parts-in-memory.ts";
import { reconcile } from "./reconcile.ts";
import { knowsEveryOwner } from "./restore.ts";

let parts: PartsInMemory;

beforeEach(async () => {
  parts = await partsInMemory();
});
afterEach(() => {
  parts[Symbol.dispose]();
});

/** An interface of ours with these addresses, whatever the store says. */
function stand(sandboxId: string, ...addresses: readonly string[]): void {
  const owner = ownerOf(sandboxId);
  parts.dataPath.standing.set(ownerKey(owner), { owner, ownLease: true, hostIfname: `ve-${sandboxId}` });
  const cidrs = addresses.flatMap((text) => parseCidr(text) ?? []);
  parts.dataPath.addressesOf.set(ownerKey(owner), cidrs);
}

const leases = (): string[] =>
  parts.allocator.list().map(({ address, owner, state }) => `${formatCidr(address)} ${owner.sandboxId} ${state}`);

/** As a database that was set aside and could not be read in full leaves the next one. */
const loseSome = (): void =>
  parts.allocator.transaction((store): void => store.setMark("incomplete", "leases.db.damaged-x"));

test("an interface without a lease gets its own back, with subnet, gateway and boot", async () => {
  stand("a", "10.9.0.7/24");
  await reconcile(parts);
  expect(parts.allocator.find(ownerOf("a"))).toMatchObject([
    { state: "allocated", rangeSet: 0, bootId: parts.allocator.bootId, generation: 1 },
  ]);
  expect(leases()).toEqual(["10.9.0.7/24 a allocated"]);
  expect(parts.allocator.find(ownerOf("a"))[0]?.gateway?.value).toBe(0x0a090001n);
  expect(parts.lastAddAt.has(ownerKey(ownerOf("a")))).toBe(true);
  // Should its interface go without a DEL, it is missed.
  expect(parts.allocator.find(ownerOf("a")).map((lease) => parts.allocator.hasInterface(lease))).toEqual([true]);
});

test("a lease that another got meanwhile and does not use gives way to what stands", async () => {
  parts.allocator.allocate(ownerOf("late"), parts.ipam);
  stand("a", "10.9.0.2/24");
  await reconcile(parts);
  expect(leases()).toEqual(["10.9.0.2/24 a allocated"]);
});

test("of two interfaces with one address the one with the lease keeps it, both stand, and it is said", async () => {
  parts.allocator.allocate(ownerOf("first"), parts.ipam);
  stand("first", "10.9.0.2/24");
  stand("second", "10.9.0.2/24");
  await reconcile(parts);
  expect(leases()).toEqual(["10.9.0.2/24 first allocated"]);
  expect(parts.dataPath.containers()).toEqual(["first", "second"]);
  expect(parts.lines.join()).toContain("two interfaces of ours have one address");
});

test("an interface whose owner has left is no lost one", async () => {
  parts.allocator.allocate(ownerOf("a"), parts.ipam);
  parts.allocator.release(ownerOf("a"), "cooling");
  stand("a", "10.9.0.2/24");
  await reconcile(parts);
  expect(parts.dataPath.containers()).toEqual([]);
  expect(leases()).toEqual(["10.9.0.2/24 a cooling"]);
});

test("after damage new pods get an address once every interface has its leases, those with a part of them too", async () => {
  parts.allocator.allocate(ownerOf("half"), parts.ipam);
  stand("half", "10.9.0.2/24", "10.9.0.200/24");
  stand("lost", "10.9.0.3/24");
  loseSome();
  expect(() => parts.allocator.allocate(ownerOf("new"), parts.ipam)).toThrow("were lost");
  // Whoever has a lease keeps it.
  expect(parts.allocator.allocate(ownerOf("half"), parts.ipam).created).toBe(false);
  await reconcile(parts);
  expect(leases()).toEqual([
    "10.9.0.2/24 half allocated",
    "10.9.0.3/24 lost allocated",
    "10.9.0.200/24 half allocated",
  ]);
  parts.allocator.allocate(ownerOf("new"), parts.ipam);
  expect(leases()).toContain("10.9.0.4/24 new allocated");
});

test("after damage an interface has all of its leases again, also where the name of one's holder alone was lost", async () => {
  parts.allocator.allocate(ownerOf("half"), parts.ipam);
  stand("half", "10.9.0.2/24", "10.9.0.200/24");
  parts.allocator.restore(
    {
      owner: { network: "pods", sandboxId: "unreadable-10.9.0.200", ifname: "" },
      addresses: [parseCidr("10.9.0.200/24")!],
    },
    parts.ipam.rangeSets,
    () => false,
  );
  expect(knowsEveryOwner(parts.allocator, "pods")).toBe(false);
  await reconcile(parts);
  expect(leases()).toEqual(["10.9.0.2/24 half allocated", "10.9.0.200/24 half allocated"]);
  expect(knowsEveryOwner(parts.allocator, "pods")).toBe(true);
});

test.each([
  ["alone", ["dark"]],
  ["before one that shows its own", ["dark", "lit"]],
  ["after one that shows its own", ["lit", "dark"]],
])("after damage no new pod gets an address while an interface shows none: %s", async (_order, standing) => {
  for (const name of standing) stand(name, ...(name === "lit" ? ["10.9.0.9/24"] : []));
  loseSome();
  await reconcile(parts);
  expect(parts.dataPath.containers()).toEqual(standing.toSorted());
  expect(() => parts.allocator.allocate(ownerOf("new"), parts.ipam)).toThrow("were lost");
  expect(parts.lines.join()).toContain("addresses are given to no new pod");
});

test("the list of what runs makes a network complete once everything on it has a lease", () => {
  parts.allocator.allocate(ownerOf("known"), parts.ipam);
  loseSome();
  const attachment = (containerId: string) => ({ containerId, ifname: "eth0" });
  parts.allocator.retain("pods", [attachment("known"), attachment("lost")], "cooling");
  expect(() => parts.allocator.allocate(ownerOf("new"), parts.ipam)).toThrow("were lost");
  parts.allocator.retain("other", [], "cooling");
  expect(() => parts.allocator.allocate(ownerOf("new"), parts.ipam)).toThrow("were lost");
  parts.allocator.retain("pods", [attachment("known")], "cooling");
  expect(parts.allocator.allocate(ownerOf("new"), parts.ipam).created).toBe(true);
});
