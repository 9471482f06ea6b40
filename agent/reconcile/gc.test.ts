import { afterEach, beforeEach, expect, test } from "vitest";
import { ownerKey } from "../../shared/cni/owner-key.ts";
import { createLogger } from "../../shared/log.ts";
import type { CallContext } from "../../shared/server/handlers.ts";
import { ownerOf, type PartsInMemory, partsInMemory } from "../../test/fakes/parts-in-memory.ts";
import { collect } from "./gc.ts";

let parts: PartsInMemory;
beforeEach(async () => {
  parts = await partsInMemory();
});
afterEach(() => parts[Symbol.dispose]());

const attachment = (containerId: string, ifname = "eth0") => ({ containerId, ifname });
const call = (changes: Partial<CallContext> = {}): CallContext => ({
  signal: new AbortController().signal,
  log: createLogger("error", (line) => parts.lines.push(line)),
  ...changes,
});
const gc = (
  valid: readonly { containerId: string; ifname: string }[],
  changes?: Partial<CallContext>,
  network = "pods",
) => collect(parts, { network, valid }, call(changes));

/** A pod with its interface, on a lease of our own or another plugin's. */
function wire(sandboxId: string, ownLease = true, network = "pods"): void {
  const owner = { ...ownerOf(sandboxId), network };
  if (ownLease) parts.allocator.allocate(owner, { ...parts.ipam, network } as typeof parts.ipam);
  parts.dataPath.standing.set(ownerKey(owner), { owner, ownLease, hostIfname: `ve-${sandboxId}` });
  parts.lastAddAt.set(ownerKey(owner), 0);
}

test("takes what is not listed, with its lease or without, and leaves the rest", async () => {
  for (const id of ["listed", "gone"]) wire(id);
  for (const id of ["foreign-listed", "foreign-gone"]) wire(id, false);
  wire("elsewhere", false, "other");
  const { removed, failures } = await gc([attachment("listed"), attachment("foreign-listed")]);
  expect(parts.dataPath.containers()).toEqual(["elsewhere", "foreign-listed", "listed"]);
  expect(removed.map(({ containerId }) => containerId).toSorted()).toEqual(["foreign-gone", "gone"]);
  expect(failures).toEqual([]);
  const { removed: again } = await gc([attachment("listed"), attachment("foreign-listed")]);
  expect(again).toEqual([]);
});

test("takes one by its interface's name, not by its container's alone", async () => {
  wire("a", false);
  await gc([attachment("a", "net1")]);
  expect(parts.dataPath.containers()).toEqual([]);
});

test("leaves what was added since the list was made, also where no lease says so", async () => {
  wire("new", false);
  wire("old", false);
  parts.lastAddAt.set(ownerKey(ownerOf("new")), 5_000);
  await gc([], { startedUptimeMs: 4_000 });
  expect(parts.dataPath.containers()).toEqual(["new"]);
});

test("goes on after a failure, and names it", async () => {
  for (const id of ["a", "b"]) wire(id);
  parts.dataPath.before = (_, { sandboxId }) => {
    if (sandboxId === "a") throw new Error("busy");
  };
  const { removed, failures } = await gc([]);
  expect([removed, failures]).toEqual([[attachment("b")], ["a eth0: busy"]]);
});

test.each([
  ["no network", "", [attachment("a")], '"network" is'],
  ["a container that is no name", "pods", [attachment("../a")], '"container_id" is'],
])("refuses a list with %s, and takes nothing", async (_name, network, valid, says) => {
  wire("a");
  await expect(gc(valid, {}, network)).rejects.toMatchObject({ code: 4, message: expect.stringContaining(says) });
  expect(parts.dataPath.containers()).toEqual(["a"]);
});

test("takes nothing for a caller that has gone, whose list may be old", async () => {
  wire("a");
  await expect(gc([], { signal: AbortSignal.abort() })).rejects.toMatchObject({ code: 11 });
  expect(parts.dataPath.containers()).toEqual(["a"]);
});
