import { describe, expect, test } from "vitest";
import { allocatorInMemory, configOf, five, ipsOf, ownerOf, podOf } from "../../test/fakes/allocator-in-memory.ts";
import { maxRememberedAddresses } from "./sticky.ts";

const sticky = configOf({ subnet: "10.0.0.0/29", cooldownMs: 1000, sticky: true });
const web = podOf("web-0");

describe("a pod of a sticky network", () => {
  test("gets its last address back in a new sandbox: while it cools, and after", () => {
    const { add, del, clock } = allocatorInMemory();
    expect(add("a", sticky, web)).toBe("10.0.0.2");
    add("x", sticky, podOf("other"));
    del("a");
    expect(add("b", sticky, web)).toBe("10.0.0.2");
    del("b");
    clock.ms += 5000;
    add("y", sticky, podOf("another"));
    expect(add("c", sticky, web)).toBe("10.0.0.2");
    // Nor does it disturb the others' turn.
    expect(add("z", sticky, podOf("fourth"))).toBe("10.0.0.5");
  });

  test("does not wait for it: one that somebody has, had since, or that is still being released is not free", () => {
    const { allocator, add, del } = allocatorInMemory();
    add("a", sticky, web);
    // The old sandbox is still there.
    expect(add("b", sticky, web)).toBe("10.0.0.3");
    allocator.release(ownerOf("a"), "releasing");
    allocator.release(ownerOf("b"), "releasing");
    expect(add("c", sticky, web)).toBe("10.0.0.4");
    del("c");
    for (const id of ["d", "e"]) add(id, sticky, podOf(id));
    // All that is left is what cools, of "web-0" itself.
    expect(add("f", sticky, podOf("f"))).toBe("10.0.0.4");
    del("f");
    del("d");
    // Cooling, but for another pod.
    expect(add("g", sticky, web)).toBe("10.0.0.5");
  });

  test("is the same by network, interface, namespace and name, not by its uid", () => {
    const { allocator, add, del } = allocatorInMemory();
    add("a", sticky, { ...web, uid: "u1" });
    del("a");
    const others = [podOf("web-0", "prod"), podOf("web-1")];
    expect(others.map((pod) => add(pod.namespace + pod.name, sticky, pod))).toEqual(["10.0.0.3", "10.0.0.4"]);
    expect(ipsOf(allocator.allocate(ownerOf("b", "eth1"), sticky, web).leases)).toEqual(["10.0.0.5"]);
    expect(add("c", sticky, { ...web, uid: "u2" })).toBe("10.0.0.2");
  });

  test.each([podOf("web-0", "prod"), podOf("web-1")])(
    "does not get one that cools for another: $namespace/$name",
    (other) => {
      const { add, del } = allocatorInMemory();
      const asking = configOf({ subnet: "10.0.0.0/29", sticky: true }, { runtimeConfig: { ips: ["10.0.0.2"] } });
      add("a", sticky, web);
      del("a");
      expect(add("b", asking, other)).toBe("10.0.0.2");
      del("b");
      expect(add("c", sticky, web)).toBe("10.0.0.3");
      expect(add("d", sticky, other)).toBe("10.0.0.2");
    },
  );

  test("gets an address of each range set back, whatever their order is now; else the next", () => {
    const { add, del } = allocatorInMemory();
    const sets = [[{ subnet: "10.0.0.0/29" }], [{ subnet: "fd00::/64" }]];
    add("x", configOf({ ranges: sets, sticky: true }), podOf("x"));
    add("a", configOf({ ranges: sets, sticky: true }), web);
    del("a");
    const turned = configOf({ ranges: [...sets.toReversed(), [{ subnet: "10.9.0.0/29" }]], sticky: true });
    expect(add("b", turned, web)).toBe("fd00::3 10.0.0.3 10.9.0.2");
    del("b");
    const excluding = configOf({ ranges: sets, sticky: true, exclude: ["10.0.0.3"] });
    expect(add("c", excluding, web)).toBe("10.0.0.4 fd00::3");
  });

  test("is remembered by what ended its lease: DEL, GC, an undone ADD or a reclaimed lease", () => {
    const { allocator, add, boot } = allocatorInMemory();
    const pods = ["p", "q", "r"].map((name) => podOf(name));
    for (const pod of pods) add(pod.name, sticky, pod);
    allocator.retain("net", [{ containerId: "r", ifname: "eth0" }], "cooling");
    boot("boot-2").reclaim(allocator.find(ownerOf("r"))[0]!, "cooling");
    allocator.undo(allocator.allocate(ownerOf("s"), sticky, podOf("s")), "cooling");
    const back = [...pods.toReversed(), podOf("s")].map((pod) => add(`${pod.name}2`, sticky, pod));
    expect(back).toEqual(["10.0.0.4", "10.0.0.3", "10.0.0.2", "10.0.0.5"]);
  });

  test("still gets what it asks for, and what its own sandbox left", () => {
    const { add, del } = allocatorInMemory();
    add("a", sticky, web);
    del("a");
    const asking = configOf({ subnet: "10.0.0.0/29", sticky: true }, { runtimeConfig: { ips: ["10.0.0.6"] } });
    expect(add("b", asking, web)).toBe("10.0.0.6");
  });

  test("that lives long is not forgotten over those that come and go", () => {
    const { store, add, del } = allocatorInMemory();
    add("a", sticky, web);
    const place = { network: "net", ifname: "eth0", namespace: "default", name: "web-0" };
    expect(store.remembered(place)).toEqual([]);
    const notes: number[] = [];
    const remember = store.remember.bind(store);
    store.remember = (...args) => {
      notes.push(args[3]);
      remember(...args);
    };
    del("a");
    expect(store.remembered(place)).toHaveLength(1);
    expect(notes).toEqual([maxRememberedAddresses]);
  });
});

test("a network that is not sticky notes nothing and looks nothing up", () => {
  const { store, add, del } = allocatorInMemory();
  const refuse = (): never => {
    throw new Error("Broken invariant: this must cost nothing");
  };
  store.remember = refuse;
  store.remembered = refuse;
  add("a", five, web);
  del("a");
  expect(add("b", five, web)).toBe("10.0.0.3");
  // Nor does a sandbox without a pod where it is.
  add("c", sticky);
  del("c");
});
