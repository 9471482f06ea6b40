import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ownerKey } from "../../shared/cni/owner-key.ts";
import { formatIp } from "../../shared/net/ip.ts";
import { ownerOf, type PartsInMemory, partsInMemory } from "../../test/fakes/parts-in-memory.ts";
import { Janitor } from "./janitor.ts";
import { namespaceProbe } from "./liveness-probes.ts";

let parts: PartsInMemory;
let janitor: Janitor;

beforeEach(async () => {
  parts = await partsInMemory();
  janitor = new Janitor(parts, { intervalMs: 1, staleGraceMs: 60_000 });
});
afterEach(async () => {
  await janitor.stop();
  parts[Symbol.dispose]();
});

/** A pod that is wired on a lease of our own. */
function wire(sandboxId: string): void {
  const owner = ownerOf(sandboxId);
  parts.allocator.allocate(owner, parts.ipam);
  parts.dataPath.standing.set(ownerKey(owner), { owner, ownLease: true, hostIfname: `ve-${sandboxId}` });
  parts.lastAddAt.set(ownerKey(owner), 0);
}

const states = (sandboxId: string): string[] =>
  parts.allocator
    .list()
    .filter((lease) => lease.owner.sandboxId === sandboxId)
    .map((lease) => lease.state);

describe("one round", () => {
  test("finishes what was given up and leaves the rest", async () => {
    for (const id of ["gone", "stays"]) wire(id);
    parts.allocator.release(ownerOf("gone"), "releasing");
    expect(janitor.pendingDetaches()).toBe(1);
    await janitor.round();
    expect(parts.dataPath.containers()).toEqual(["stays"]);
    expect([states("gone"), states("stays")]).toEqual([["cooling"], ["allocated"]]);
    expect(janitor.pendingDetaches()).toBe(0);
  });

  test("the address cools only after the interface has gone", async () => {
    wire("gone");
    parts.allocator.release(ownerOf("gone"), "releasing");
    const during: string[][] = [];
    parts.dataPath.before = () => void during.push(states("gone"));
    await janitor.round();
    expect(during).toEqual([["releasing"]]);
  });

  test("a sandbox that is added again while the round waits for its mutex keeps its interface", async () => {
    wire("again");
    parts.allocator.release(ownerOf("again"), "releasing");
    const holding = Promise.withResolvers<void>();
    const add = parts.mutex.run(ownerKey(ownerOf("again")), { what: "ADD" }, async () => {
      await holding.promise;
      parts.allocator.allocate(ownerOf("again"), parts.ipam);
    });
    const round = janitor.round();
    holding.resolve();
    await Promise.all([add, round]);
    expect(parts.dataPath.containers()).toEqual(["again"]);
    expect(states("again")).toEqual(["allocated"]);
  });

  test("a lease that is taken up again during the unwiring is not settled", async () => {
    wire("revived");
    parts.allocator.release(ownerOf("revived"), "releasing");
    parts.dataPath.before = () => void parts.allocator.allocate(ownerOf("revived"), parts.ipam);
    await janitor.round();
    expect(states("revived")).toEqual(["allocated"]);
  });

  test("a pending detach on record ends also a lease that the agent gave out itself", async () => {
    wire("departed");
    parts.allocator.recordPendingDetach(ownerOf("departed"));
    await janitor.round();
    expect(parts.dataPath.containers()).toEqual([]);
    expect(states("departed")).toEqual(["cooling"]);
    expect(parts.allocator.pendingDetaches()).toEqual([]);
  });

  test("an interface left over goes, unless its sandbox has a lease again", async () => {
    for (const id of ["left", "again"]) {
      wire(id);
      parts.pendingCleanup.set(ownerKey(ownerOf(id)), ownerOf(id));
    }
    parts.allocator.release(ownerOf("left"), "cooling");
    await janitor.round();
    expect(parts.dataPath.containers()).toEqual(["again"]);
    expect(parts.pendingCleanup.size).toBe(0);
  });

  test("mends the data path when it has a problem", async () => {
    await janitor.round();
    expect(parts.dataPath.starts).toBe(0);
    parts.dataPath.wrong = [{ code: 51, message: "the bridge is down" }];
    await janitor.round();
    expect(parts.dataPath.starts).toBe(1);
    expect(parts.lines.join()).toContain("the bridge is down");
  });

  test("mends in vain less and less often", async () => {
    janitor = new Janitor(parts, { intervalMs: 60_000, staleGraceMs: 60_000 });
    parts.dataPath.start = async () => {
      parts.dataPath.starts++;
    };
    parts.dataPath.wrong = [{ code: 50, message: "forwarding is off" }];
    for (let i = 0; i < 3; i++) await janitor.round();
    expect(parts.dataPath.starts).toBe(1);
    parts.dataPath.wrong = [];
    await janitor.round();
    parts.dataPath.wrong = [{ code: 50, message: "forwarding is off" }];
    await janitor.round();
    expect(parts.dataPath.starts).toBe(2);
  });
});

describe("what fails", () => {
  test("comes again later and later, and does not keep the others waiting", async () => {
    for (const id of ["bad", "good"]) {
      wire(id);
      parts.allocator.release(ownerOf(id), "releasing");
    }
    let attempts = 0;
    parts.dataPath.before = (_action, owner) => {
      if (owner.sandboxId !== "bad") return;
      attempts++;
      throw new Error("the kernel refuses");
    };
    janitor = new Janitor(parts, { intervalMs: 1_000, staleGraceMs: 60_000 });
    await janitor.round();
    expect([states("bad"), states("good")]).toEqual([["releasing"], ["cooling"]]);
    expect(attempts).toBe(1);
    await janitor.round();
    expect(attempts).toBe(1);
    expect(janitor.pendingDetaches()).toBe(1);
    const failed = parts.lines.map((line) => JSON.parse(line)).find((line) => line.level === "error");
    expect(failed).toMatchObject({ container: "bad", error: "the kernel refuses", times: 1, pauseMs: 2_000 });
  });

  test("is done as soon as it can be", async () => {
    wire("slow");
    parts.allocator.release(ownerOf("slow"), "releasing");
    let refusals = 2;
    parts.dataPath.before = () => {
      if (refusals-- > 0) throw new Error("busy");
    };
    janitor.start();
    while (states("slow")[0] !== "cooling") await Bun.sleep(1);
    expect(parts.dataPath.containers()).toEqual([]);
  });
});

describe("leases of an earlier boot without an interface", () => {
  let bootId = "";
  /** The node boots again, as far as anybody can see who asks for the boot's name. */
  const reboot = (): void => {
    bootId = "the next boot";
    Object.defineProperty(parts.allocator, "bootId", { get: () => bootId });
  };
  const afterGrace = (): Janitor => new Janitor(parts, { intervalMs: 1, staleGraceMs: 0 });

  test("peers 5: are given back when their grace is over, and not before", async () => {
    parts.allocator.allocate(ownerOf("old"), parts.ipam);
    await afterGrace().round();
    expect(states("old")).toEqual(["allocated"]);
    reboot();
    await janitor.round();
    expect(states("old")).toEqual(["allocated"]);
    await afterGrace().round();
    expect(states("old")).toEqual(["cooling"]);
  });

  test("stay when their interface stands", async () => {
    wire("wired");
    reboot();
    await afterGrace().round();
    expect(states("wired")).toEqual(["allocated"]);
  });

  test("peers 2: stay when any other source knows one of their addresses, also where it cannot be asked", async () => {
    for (const id of ["known", "unknown"]) parts.allocator.allocate(ownerOf(id), parts.ipam);
    reboot();
    const [address] = parts.allocator.find(ownerOf("known")).map((lease) => formatIp(lease.address.ip));
    const withSource = (addresses: () => Promise<ReadonlySet<string>>): Janitor =>
      new Janitor(parts, { intervalMs: 1, staleGraceMs: 0, livenessProbes: [namespaceProbe(addresses)] });
    await withSource(() => Promise.reject(new Error("no answer"))).round();
    expect([states("known"), states("unknown")]).toEqual([["allocated"], ["allocated"]]);
    await withSource(async () => new Set([address ?? ""])).round();
    expect([states("known"), states("unknown")]).toEqual([["allocated"], ["cooling"]]);
  });

  test("are named in the log, with who was asked, before anything is done about them", async () => {
    parts.allocator.allocate(ownerOf("old"), parts.ipam);
    reboot();
    const logged: string[][] = [];
    parts.lines.push = (...lines: string[]): number => {
      logged.push([...lines, ...states("old")]);
      return lines.length;
    };
    await afterGrace().round();
    const [plan, done] = logged.map(([line = "", state]) => [JSON.parse(line), state] as const);
    expect(plan).toEqual([
      expect.objectContaining({
        owners: 1,
        first: [expect.objectContaining({ container: "old" })],
        sources: ["interfaces"],
      }),
      "allocated",
    ]);
    expect(done).toEqual([expect.objectContaining({ message: "tidied up" }), "cooling"]);
  });

  test("stay when an ADD claims them while the round waits for its mutex", async () => {
    const thisBoot = parts.allocator.bootId;
    parts.allocator.allocate(ownerOf("claimed"), parts.ipam);
    reboot();
    const holding = Promise.withResolvers<void>();
    const add = parts.mutex.run(ownerKey(ownerOf("claimed")), { what: "ADD" }, async () => {
      await holding.promise;
      bootId = thisBoot;
    });
    const round = afterGrace().round();
    await Bun.sleep(1);
    holding.resolve();
    await Promise.all([add, round]);
    expect(states("claimed")).toEqual(["allocated"]);
  });

  test("stay when they are of a network that this agent does not serve", async () => {
    parts.allocator.allocate({ ...ownerOf("far"), network: "bridged" }, parts.ipam);
    reboot();
    await afterGrace().round();
    expect(states("far")).toEqual(["allocated"]);
  });
});

test("poked it works at once, stopped it works no more", async () => {
  wire("poked");
  parts.allocator.release(ownerOf("poked"), "releasing");
  janitor = new Janitor(parts, { intervalMs: 3_600_000, staleGraceMs: 60_000 });
  janitor.start();
  janitor.poke();
  while (states("poked")[0] !== "cooling") await Bun.sleep(1);
  await janitor.stop();
  wire("late");
  parts.allocator.release(ownerOf("late"), "releasing");
  janitor.poke();
  await Bun.sleep(20);
  expect(states("late")).toEqual(["releasing"]);
});

test("stopped between two rounds it begins none", async () => {
  janitor = new Janitor(parts, { intervalMs: 10, staleGraceMs: 60_000 });
  janitor.start();
  await janitor.stop();
  wire("late");
  parts.allocator.release(ownerOf("late"), "releasing");
  await Bun.sleep(40);
  expect(states("late")).toEqual(["releasing"]);
});

test("a lease of an earlier boot that has gone by itself before its turn is none that was given back", async () => {
  parts.allocator.allocate(ownerOf("gone"), parts.ipam);
  Object.defineProperty(parts.allocator, "bootId", { get: () => "the next boot" });
  const holding = Promise.withResolvers<void>();
  const del = parts.mutex.run(ownerKey(ownerOf("gone")), { what: "DEL" }, async () => {
    await holding.promise;
    parts.allocator.release(ownerOf("gone"), "cooling");
  });
  const round = new Janitor(parts, { intervalMs: 1, staleGraceMs: 0 }).round();
  await Bun.sleep(1);
  holding.resolve();
  await Promise.all([del, round]);
  expect(parts.lines.join()).not.toContain("tidied up");
});

describe("a janitor", () => {
  test("repairs the data path when it is told to, and not any more once it has stopped", async () => {
    parts.dataPath.wrong = [{ code: 51, message: "the bridge is down" }];
    await janitor.repair();
    expect(parts.dataPath.starts).toBe(1);
    await janitor.stop();
    parts.dataPath.wrong = [{ code: 51, message: "the rules are gone" }];
    await janitor.repair();
    expect(parts.dataPath.starts).toBe(1);
  });

  test("finishes some 250 in one round, so that it can be stopped, and the rest in the next", async () => {
    for (let i = 0; i < 257; i++) parts.allocator.recordPendingDetach(ownerOf(`s${i}`));
    await janitor.round();
    expect(janitor.pendingDetaches()).toBe(1);
    await janitor.round();
    expect(janitor.pendingDetaches()).toBe(0);
  });

  test("that is stopped goes on with nobody else", async () => {
    for (const id of ["a", "b"]) parts.allocator.recordPendingDetach(ownerOf(id));
    let stopping: Promise<void> | undefined;
    parts.dataPath.before = () => {
      stopping ??= janitor.stop();
    };
    await janitor.round();
    await stopping;
    expect(janitor.pendingDetaches()).toBe(1);
  });
});
