import { describe, expect, test } from "vitest";
import { formatCidr, formatIp } from "../shared/net/ip.ts";
import {
  configOf as config,
  five,
  ipsOf,
  ownerOf as owner,
  refusal,
  allocatorInMemory as setUp,
} from "../test/fakes/allocator-in-memory.ts";
import { cursorMark } from "./allocate/marks.ts";
import type { IpamConfig } from "./config/ipam-config.ts";

const dual = config({ ranges: [[{ subnet: "10.0.0.0/29" }], [{ subnet: "fd00::/64" }]], cooldownMs: 1000 });

const asking = (ips: readonly string[], base: object = { subnet: "10.0.0.0/29", cooldownMs: 1000 }): IpamConfig =>
  config(base, { runtimeConfig: { ips } });

describe("allocate", () => {
  test("goes round: the last given comes last, the gateway never", () => {
    const { add, del, clock } = setUp();
    expect(["a", "b", "c"].map((id) => add(id))).toEqual(["10.0.0.2", "10.0.0.3", "10.0.0.4"]);
    del("a");
    clock.ms += 1000;
    expect(["d", "e", "f"].map((id) => add(id))).toEqual(["10.0.0.5", "10.0.0.6", "10.0.0.2"]);
    del("f");
    clock.ms += 1000;
    expect(add("g")).toBe("10.0.0.2");
  });

  test("gives prefix, gateway, boot, time, pod and a generation that grows", () => {
    const { allocator, clock } = setUp();
    const pod = { namespace: "default", name: "web", uid: "u1" };
    const { leases } = allocator.allocate(owner("a"), dual, pod);
    expect(leases.map((lease) => `${formatCidr(lease.address)} ${formatIp(lease.gateway!)} ${lease.rangeSet}`)).toEqual(
      ["10.0.0.2/29 10.0.0.1 0", "fd00::2/64 fd00::1 1"],
    );
    expect(leases[0]).toMatchObject({ bootId: "boot-1", pod, allocatedAtMs: clock.ms, state: "allocated" });
    const generations = [...leases, ...allocator.allocate(owner("b"), dual).leases].map((lease) => lease.generation);
    expect(generations).toEqual([...generations].sort((a, b) => a - b));
    expect(new Set(generations).size).toBe(4);
  });

  test("again gives the same, and says so; another interface of the sandbox gets its own", () => {
    const { allocator } = setUp();
    const first = allocator.allocate(owner("a"), dual);
    expect(allocator.allocate(owner("a"), dual)).toEqual({ leases: first.leases, created: false });
    // Also where the configuration has changed since.
    expect(allocator.allocate(owner("a"), config({ subnet: "10.9.0.0/24" })).leases).toEqual(first.leases);
    expect(first.created).toBe(true);
    expect(ipsOf(allocator.allocate(owner("a", "eth1"), dual).leases)).toEqual(["10.0.0.3", "fd00::3"]);
  });

  test("again after a reboot makes the lease one of this boot", () => {
    const { allocator, boot } = setUp();
    const before = allocator.allocate(owner("a"), five).leases[0]!;
    const again = boot("boot-2").allocate(owner("a"), five);
    expect(again).toEqual({ leases: [{ ...before, bootId: "boot-2" }], created: false });
    expect(allocator.find(owner("a"))).toEqual(again.leases);
  });

  test("walks the ranges of a set in order, and reserves the gateways of all of them", () => {
    const subnet = "10.0.0.0/24";
    const windows = config({
      ranges: [
        [
          { subnet, rangeStart: "10.0.0.10", rangeEnd: "10.0.0.11" },
          { subnet, rangeStart: "10.0.0.4", rangeEnd: "10.0.0.6", gateway: "10.0.0.11" },
          { subnet, rangeStart: "10.0.0.1", rangeEnd: "10.0.0.2" },
        ],
      ],
    });
    const { add } = setUp();
    expect([..."abcde"].map((id) => add(id, windows))).toEqual([
      "10.0.0.10",
      "10.0.0.4",
      "10.0.0.5",
      "10.0.0.6",
      "10.0.0.2",
    ]);
    expect(refusal(() => add("f", windows)).message).toContain("has 0 of 5 addresses free");
  });

  test("begins anew where the last address is in no range any more", () => {
    const { add } = setUp();
    add("a", config({ subnet: "10.0.0.0/24", rangeStart: "10.0.0.200" }));
    expect(add("b", config({ subnet: "10.0.0.0/24", rangeEnd: "10.0.0.100" }))).toBe("10.0.0.2");
  });

  test.each(["", "nonsense", "10.0.0.4\n", "10.9.9.9", "fd00::2"])(
    "begins anew where the last address is noted as %j",
    (noted) => {
      const { store, add } = setUp();
      const [set] = five.rangeSets;
      store.transaction((): void => store.setMark(cursorMark("net", set!), noted));
      expect(add("a")).toBe("10.0.0.2");
    },
  );

  test("when nothing is left names range and numbers, and says what to do, and leaves the other sets alone", () => {
    const { allocator, add, del } = setUp();
    const pair = config({ ranges: [[{ subnet: "fd00::/64" }], [{ subnet: "10.0.0.0/30" }]], cooldownMs: 1000 });
    add("a", pair);
    const error = refusal(() => add("b", pair));
    expect(error.code).toBe(101);
    expect(error.message).toBe(
      'Cannot allocate an address: range set "10.0.0.1-10.0.0.2" of network "net" has 0 of 1 addresses free, wanted at least 1',
    );
    expect(error.details).toBe(
      '1 allocated, 0 releasing, 0 cooling; besides, 1 for gateways, 0 excluded; "pipette ipam list --network net" shows who has them: end pods, or give the node more addresses',
    );
    // What "a" holds, and the address that the first set was about to give, are as before.
    expect(ipsOf(allocator.list())).toEqual(["10.0.0.2", "fd00::2"]);
    del("a");
    expect(add("c", pair)).toBe("fd00::3 10.0.0.2");
  });
});

describe("cooling", () => {
  test("keeps an address out of reuse for its time, and gives way oldest first when nothing else is free", () => {
    const { add, del, clock } = setUp();
    for (const id of "abcde") add(id);
    for (const id of ["d", "b", "a"]) {
      clock.ms += 10;
      del(id);
    }
    expect([add("x"), add("y"), add("z")]).toEqual(["10.0.0.5", "10.0.0.3", "10.0.0.2"]);
    expect(refusal(() => add("w")).message).toContain("0 of 5");
  });

  test("is skipped while anything else is free", () => {
    const { add, del, clock } = setUp();
    for (const id of "abcd") add(id);
    for (const id of "abcd") del(id);
    clock.ms += 999;
    expect(add("e")).toBe("10.0.0.6");
    // The oldest of those that cool, although it is not the next in turn: 10.0.0.2 came before the others.
    expect(add("f")).toBe("10.0.0.2");
    clock.ms += 1;
    expect(add("g")).toBe("10.0.0.3");
  });

  test("goes by a clock that may be set back: addresses then cool longer, and no ADD lacks one for it", () => {
    const { add, del, clock } = setUp();
    for (const id of "abcd") add(id);
    del("a");
    clock.ms -= 86_400_000;
    del("b");
    clock.ms += 1000;
    // What was never given first, then what has cooled by this clock, and what lies ahead at the end.
    expect([add("x"), add("y"), add("z")]).toEqual(["10.0.0.6", "10.0.0.3", "10.0.0.2"]);
  });

  test("of zero is none", () => {
    const at = config({ subnet: "10.0.0.0/29", cooldownMs: 0 });
    const { add, del } = setUp();
    add("a", at);
    del("a");
    expect(add("a", at)).toBe("10.0.0.3");
  });

  test("is not for releasing addresses: they are never given", () => {
    const { allocator, add } = setUp();
    for (const id of "abcde") add(id);
    allocator.release(owner("a"), "releasing");
    const error = refusal(() => add("f"));
    expect(error.details).toContain("4 allocated, 1 releasing, 0 cooling");
  });
});

describe("an owner that left", () => {
  test.each(["releasing", "cooling"] as const)(
    "and comes back while %s takes its leases up again, as new ones",
    (state) => {
      const { allocator, add } = setUp();
      const first = allocator.allocate(owner("a"), dual);
      add("b", dual);
      allocator.release(owner("a"), state);
      const again = allocator.allocate(owner("a"), dual);
      expect(ipsOf(again.leases)).toEqual(ipsOf(first.leases));
      expect(again.created).toBe(true);
      expect(again.leases[0]!.generation).toBeGreaterThan(first.leases[1]!.generation);
      expect(again.leases[0]).not.toHaveProperty("releasedAtMs");
      // What was about the old lease does not touch the new one.
      expect(allocator.finishRelease(first.leases[0]!)).toBe(false);
      allocator.undo(first, "cooling");
      expect(allocator.find(owner("a"))).toEqual(again.leases);
    },
  );

  test("does not get an address back that another has, or that became a gateway", () => {
    const { add, del, clock } = setUp();
    for (const id of "abcde") add(id);
    del("a");
    add("f");
    clock.ms += 2000;
    del("b");
    expect(add("a")).toBe("10.0.0.3");
    del("a");
    expect(add("a", config({ subnet: "10.0.0.0/29", gateway: "10.0.0.3" }))).toBe("10.0.0.1");
  });
});

describe("a requested address", () => {
  test("is given out of turn, and the turn goes on from it", () => {
    const { add } = setUp();
    expect(add("a", asking(["10.0.0.5"]))).toBe("10.0.0.5");
    expect(add("b")).toBe("10.0.0.6");
    expect(add("c")).toBe("10.0.0.2");
  });

  test("goes to the set that has it; the others give one as always", () => {
    const { add } = setUp();
    const sets = { ranges: [[{ subnet: "10.0.0.0/29" }], [{ subnet: "10.1.0.0/24" }], [{ subnet: "fd00::/64" }]] };
    expect(add("a", asking(["fd00::9", "10.1.0.7"], sets))).toBe("10.0.0.2 10.1.0.7 fd00::9");
  });

  test("need not cool, from whoever it was", () => {
    const { add, del } = setUp();
    add("a");
    del("a");
    expect(add("b", asking(["10.0.0.2"]))).toBe("10.0.0.2");
  });

  test("that its owner holds is its own", () => {
    const { allocator, add } = setUp();
    add("a", asking(["10.0.0.5"]));
    expect(allocator.allocate(owner("a"), asking(["10.0.0.5"])).created).toBe(false);
    allocator.release(owner("a"), "releasing");
    expect(add("a", asking(["10.0.0.5"]))).toBe("10.0.0.5");
  });

  test.each([
    [
      ["10.0.0.1"],
      101,
      'the requested "10.0.0.1" is a gateway, wanted another address of range set "10.0.0.1-10.0.0.6"',
    ],
    [["10.0.0.2"], 101, 'the requested address is taken: "10.0.0.2", allocated, sandbox "a" (eth0), since'],
    [["10.0.0.3"], 11, 'the requested address is about to be free: "10.0.0.3", releasing'],
    [
      ["10.0.0.7"],
      101,
      'there is no range set left for the requested "10.0.0.7", wanted one address at most for each of',
    ],
    [["10.0.0.5", "10.0.0.6", "fd00::9"], 101, 'for the requested "10.0.0.6", "fd00::9"'],
  ])("%j is refused, and nothing changes", (ips, code, wanted) => {
    const { allocator, add } = setUp();
    add("a");
    add("b");
    allocator.release(owner("b"), "releasing");
    const before = allocator.list();
    const error = refusal(() => add("c", asking(ips)));
    expect(error.code).toBe(code);
    expect(error.message).toContain(wanted);
    expect(allocator.list()).toEqual(before);
  });

  test("beside others that the owner holds is refused", () => {
    const { add } = setUp();
    add("a");
    expect(refusal(() => add("a", asking(["10.0.0.6"]))).message).toContain(
      'sandbox "a" already holds "10.0.0.2" for "eth0" and asks for "10.0.0.6"',
    );
  });
});

describe("giving back", () => {
  test("undo takes back what was created, and only that", () => {
    const { allocator, add } = setUp();
    const kept = allocator.allocate(owner("a"), five);
    allocator.undo(allocator.allocate(owner("a"), five), "cooling");
    expect(allocator.find(owner("a"))).toEqual(kept.leases);
    add("b");
    const undone = allocator.allocate(owner("c"), five);
    allocator.undo(undone, "releasing");
    allocator.undo(undone, "cooling");
    expect(allocator.list().map((lease) => lease.state)).toEqual(["allocated", "allocated", "releasing"]);
  });

  test("release answers the leases as they are now, and is repeatable", () => {
    const { allocator, clock } = setUp();
    allocator.allocate(owner("a"), dual);
    const released = allocator.release(owner("a"), "releasing");
    expect(released.map((lease) => [lease.state, lease.releasedAtMs])).toEqual([
      ["releasing", clock.ms],
      ["releasing", clock.ms],
    ]);
    expect(allocator.release(owner("a"), "cooling")).toEqual([]);
    expect(allocator.list()).toEqual(released);
    expect(allocator.release({ ...owner("a"), network: "other" }, "cooling")).toEqual([]);
  });

  test("what an owner holds leaves out what cools", () => {
    const { allocator } = setUp();
    const { leases } = allocator.allocate(owner("a"), dual);
    expect(allocator.uncooled(owner("a"))).toEqual(leases);
    allocator.release(owner("a"), "cooling");
    expect(allocator.list()).toHaveLength(2);
    expect(allocator.uncooled(owner("a"))).toEqual([]);
  });

  test("settle ends releasing, from when the cooling counts; once, and by generation", () => {
    const { allocator, clock } = setUp();
    allocator.allocate(owner("a"), five);
    const [releasing] = allocator.release(owner("a"), "releasing");
    clock.ms += 5000;
    expect(allocator.finishRelease({ ...releasing!, generation: 99 })).toBe(false);
    expect(allocator.finishRelease(releasing!)).toBe(true);
    expect(allocator.finishRelease(releasing!)).toBe(false);
    expect(allocator.list()).toMatchObject([{ state: "cooling", releasedAtMs: clock.ms }]);
  });

  test("retain ends what is not listed, of this network alone", () => {
    const { allocator } = setUp();
    for (const id of ["a", "b", "c"]) allocator.allocate(owner(id), dual);
    allocator.allocate(owner("a", "eth1"), dual);
    allocator.allocate({ ...owner("b"), network: "other" }, five);
    allocator.release(owner("c"), "releasing");
    const keep = [
      { containerId: "a", ifname: "eth0" },
      { containerId: "gone", ifname: "eth0" },
    ];
    expect(allocator.retain("net", keep, "cooling")).toEqual([owner("b"), owner("a", "eth1")]);
    expect(allocator.find(owner("a"))).toHaveLength(2);
    expect(allocator.list("other")).toMatchObject([{ state: "allocated" }]);
    // What the agent has yet to unwire stays so.
    expect(allocator.list("net").filter((lease) => lease.owner.sandboxId === "c")).toMatchObject([
      { state: "releasing" },
      { state: "releasing" },
    ]);
    expect(allocator.retain("net", [], "cooling")).toEqual([owner("a")]);
  });
});

test("usage counts each range set", () => {
  const { allocator, del } = setUp();
  for (const id of ["a", "b", "c"]) allocator.allocate(owner(id), dual);
  del("a");
  allocator.release(owner("b"), "releasing");
  const counts = { used: 2, releasing: 1, cooling: 1, gateways: 1n, excluded: 0n };
  expect(allocator.usage("net", dual)).toEqual([
    { ...counts, range: "10.0.0.1-10.0.0.6", total: 5n, free: 2n },
    { ...counts, range: "fd00::1-fd00::ffff:ffff:ffff:ffff", total: 2n ** 64n - 2n, free: 2n ** 64n - 5n },
  ]);
});

test("pending detaches are kept once each", () => {
  const { allocator } = setUp();
  allocator.recordPendingDetach(owner("a"));
  allocator.recordPendingDetach(owner("a"));
  allocator.recordPendingDetach(owner("b"));
  allocator.forgetPendingDetach(owner("a"));
  expect(allocator.pendingDetaches()).toEqual([owner("b")]);
});
