import { afterEach, beforeEach, expect, test } from "vitest";
import { type IpamConfig, parseIpamConfig } from "../../ipam/mod.ts";
import { ownerKey } from "../../shared/cni/owner-key.ts";
import { formatIp } from "../../shared/net/ip.ts";
import { Fields } from "../../shared/schema/json-fields.ts";
import { ownerOf, type PartsInMemory, partsInMemory } from "../../test/fakes/parts-in-memory.ts";
import { finishPendingDetach, pendingDetaches } from "./pending-detach.ts";
import { detachAndEnd } from "./reconcile-owner.ts";

const owner = ownerOf("a");
const key = ownerKey(owner);
let parts: PartsInMemory;

beforeEach(async () => {
  parts = await partsInMemory();
});
afterEach(() => parts[Symbol.dispose]());

const stand = (): void => {
  parts.dataPath.standing.set(key, { owner, ownLease: true, hostIfname: "ve-a" });
};
/** Addresses with their states. */
const leases = (): string[] =>
  parts.allocator
    .list()
    .map(({ address, state }) => `${formatIp(address.ip)} ${state}`)
    .sort();

/** A sandbox that left 10.9.0.2 and was added again with an address of a second family. */
function leaveAndComeBack(): void {
  parts.allocator.allocate(owner, parts.ipam);
  parts.allocator.release(owner, "releasing");
  const ipam = { ...(parts.conf["ipam"] as object), ranges: [[{ subnet: "fd00:9::/120" }]] };
  const conf = new Fields({ name: "pods", ipam });
  const six: IpamConfig = parseIpamConfig({ conf, network: "pods", version: "1.1.0", args: "" });
  parts.allocator.allocate(owner, six);
}

test("the earlier address of a sandbox that is added again cools once the new wiring stands, and not before", async () => {
  leaveAndComeBack();
  parts.pendingCleanup.set(key, owner);
  stand();
  expect(leases()).toEqual(["10.9.0.2 releasing", "fd00:9::2 allocated"]);
  expect(await finishPendingDetach(parts, owner)).toBe(false);
  expect(leases()).toEqual(["10.9.0.2 releasing", "fd00:9::2 allocated"]);
  // What was left over is the new life's by now.
  expect(parts.pendingCleanup.size).toBe(0);

  parts.lastAddAt.set(key, 0);
  expect(await finishPendingDetach(parts, owner)).toBe(true);
  expect(leases()).toEqual(["10.9.0.2 cooling", "fd00:9::2 allocated"]);
  expect(parts.dataPath.containers()).toEqual(["a"]);
  // Nothing is left to be done.
  expect(await finishPendingDetach(parts, owner)).toBe(false);
});

test("a DEL on record ends the life that the store knows, and its record", async () => {
  parts.allocator.allocate(owner, parts.ipam);
  parts.allocator.recordPendingDetach(owner);
  stand();
  parts.lastAddAt.set(key, 0);
  const during: string[][] = [];
  parts.dataPath.before = () => void during.push(leases());
  expect(await finishPendingDetach(parts, owner)).toBe(true);
  expect(during).toEqual([["10.9.0.2 releasing"]]);
  expect([leases(), parts.dataPath.containers()]).toEqual([["10.9.0.2 cooling"], []]);
  expect([parts.lastAddAt.size, parts.allocator.pendingDetaches()]).toEqual([0, []]);
});

test("a DEL on record of an attachment without a lease of ours takes its interface away", async () => {
  parts.allocator.recordPendingDetach(owner);
  stand();
  expect(await finishPendingDetach(parts, owner)).toBe(true);
  expect([parts.dataPath.containers(), parts.allocator.pendingDetaches()]).toEqual([[], []]);
});

test("the pending detach of another owner is no reason to end this one", async () => {
  parts.allocator.allocate(owner, parts.ipam);
  stand();
  parts.allocator.recordPendingDetach(ownerOf("b"));
  expect(await finishPendingDetach(parts, owner)).toBe(false);
  expect([leases(), parts.dataPath.containers()]).toEqual([["10.9.0.2 allocated"], ["a"]]);
});

test("who has not left is left alone, also without a lease", async () => {
  stand();
  expect(await finishPendingDetach(parts, owner)).toBe(false);
  expect(parts.dataPath.containers()).toEqual(["a"]);
});

test("what the kernel keeps stays known, and its address withheld", async () => {
  parts.allocator.allocate(owner, parts.ipam);
  parts.allocator.release(owner, "releasing");
  stand();
  parts.lastAddAt.set(key, 0);
  parts.pendingCleanup.set(key, owner);
  parts.dataPath.before = () => {
    throw new Error("busy");
  };
  await expect(detachAndEnd(parts, owner)).rejects.toThrow("busy");
  expect([leases(), parts.lastAddAt.size, parts.pendingCleanup.size]).toEqual([["10.9.0.2 releasing"], 1, 1]);
});

test("those who have left are those of the network that is asked for, each once", () => {
  const far = { ...ownerOf("far"), network: "other" };
  parts.allocator.allocate(owner, parts.ipam);
  parts.allocator.release(owner, "releasing");
  parts.allocator.recordPendingDetach(owner);
  parts.allocator.recordPendingDetach({ ...far, sandboxId: "gone" });
  parts.pendingCleanup.set(ownerKey(far), far);
  parts.pendingCleanup.set(key, owner);
  parts.allocator.allocate(ownerOf("stays"), parts.ipam);
  const ids = (network?: string): string[] => pendingDetaches(parts, network).map(({ sandboxId }) => sandboxId);
  expect(ids().sort()).toEqual(["a", "far", "gone"]);
  expect(ids("pods")).toEqual(["a"]);
  expect(ids("other").sort()).toEqual(["far", "gone"]);
});
