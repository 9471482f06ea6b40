import { describe, expect, test } from "vitest";
import { formatIp, type Ip, parseIp } from "../../shared/net/ip.ts";
import { MemoryStore } from "../../test/fakes/memory-store.ts";
import { random } from "../../test/support/random.ts";
import { scratchDir } from "../../test/support/scratch-dir.ts";
import type { Lease } from "../lease.ts";
import { SqliteStore } from "./sqlite-store.ts";
import type { PodPlace, Store } from "./store.ts";

const ip = (text: string): Ip => parseIp(text)!;

function lease(address: string, more: Partial<Lease> & { network?: string; sandboxId?: string } = {}): Lease {
  const { network = "net", sandboxId = "s1", ...rest } = more;
  return {
    owner: { network, sandboxId, ifname: "eth0" },
    rangeSet: 0,
    address: { ip: ip(address), prefix: 24 },
    state: "allocated",
    bootId: "boot",
    generation: 1,
    allocatedAtMs: 1000,
    ...rest,
  };
}

const left = (address: string, state: "releasing" | "cooling", releasedAtMs: number, generation = 1): Lease =>
  lease(address, { state, releasedAtMs, generation });

const addresses = (leases: readonly Lease[]): readonly string[] => leases.map(({ address }) => formatIp(address.ip));

/** Runs with an open store and closes it. */
type WithStore = (use: (store: Store) => void) => Promise<void>;

const stores: readonly [string, WithStore][] = [
  [
    "memory",
    async (use) => {
      using store = new MemoryStore();
      use(store);
    },
  ],
  [
    "SQLite",
    async (use) => {
      using scratch = scratchDir();
      using store = await SqliteStore.open(`${scratch.path}/leases.db`, scratch.path);
      use(store);
    },
  ],
];

describe.each(stores)("a store: %s", (_name, withStore) => {
  const put = (store: Store, ...leases: Lease[]): void =>
    store.transaction((): void => {
      for (const one of leases) store.put(one);
    });
  const remove = (store: Store, ...leases: Lease[]): void =>
    store.transaction((): void => {
      for (const one of leases) store.remove(one);
    });

  test("gives back every field", () =>
    withStore((store) => {
      const full = lease("10.0.0.2", {
        rangeSet: 3,
        gateway: ip("fd00::1"),
        state: "cooling",
        pod: { namespace: "default", name: "web", uid: "u1" },
        sticky: true,
        generation: 2 ** 40,
        allocatedAtMs: 1_795_000_000_123,
        releasedAtMs: 1_795_000_000_456,
      });
      put(store, full, lease("fd00::2"));
      expect(store.select({ by: "network" })).toEqual([full, lease("fd00::2")]);
    }));

  test("replaces the lease of an address, whoever had it", () =>
    withStore((store) => {
      put(store, lease("10.0.0.2", { pod: { namespace: "a", name: "b", uid: "c" } }));
      put(store, lease("10.0.0.2", { sandboxId: "s2", generation: 7 }));
      expect(store.select({ by: "network" })).toEqual([lease("10.0.0.2", { sandboxId: "s2", generation: 7 })]);
      expect(store.select({ by: "owner", owner: lease("10.0.0.2").owner })).toEqual([]);
    }));

  test("knows whether an address still has a very lease", () =>
    withStore((store) => {
      const first = lease("10.0.0.2", { generation: 7 });
      expect(store.holds(first)).toBe(false);
      put(store, first, lease("10.0.0.3", { network: "other", generation: 7 }));
      expect(store.holds(first)).toBe(true);
      expect(store.holds({ ...first, generation: 8 })).toBe(false);
      expect(store.holds(lease("10.0.0.3", { generation: 7 }))).toBe(false);
      put(store, left("10.0.0.2", "releasing", 5, 7));
      expect(store.holds(first)).toBe(false);
      put(store, lease("10.0.0.2", { sandboxId: "s2", generation: 9 }));
      expect(store.holds(first)).toBe(false);
    }));

  test("finds by owner, address, window and network, in order of address", () =>
    withStore((store) => {
      put(store, lease("fd00::2"), lease("10.0.0.10"), lease("10.0.0.9", { sandboxId: "s2" }));
      put(store, lease("10.0.0.3", { network: "other" }));
      const { owner } = lease("10.0.0.10");
      expect(addresses(store.select({ by: "owner", owner }))).toEqual(["10.0.0.10", "fd00::2"]);
      expect(store.select({ by: "owner", owner: { ...owner, ifname: "eth1" } })).toEqual([]);
      expect(store.select({ by: "address", network: "net", ip: ip("10.0.0.9") })).toHaveLength(1);
      expect(store.select({ by: "address", network: "other", ip: ip("10.0.0.9") })).toEqual([]);
      const window = { by: "window", network: "net", from: ip("10.0.0.9"), to: ip("10.0.0.255") } as const;
      expect(addresses(store.select({ ...window, limit: 9 }))).toEqual(["10.0.0.9", "10.0.0.10"]);
      expect(addresses(store.select({ ...window, limit: 1 }))).toEqual(["10.0.0.9"]);
      expect(addresses(store.select({ by: "network", network: "net" }))).toEqual(["10.0.0.9", "10.0.0.10", "fd00::2"]);
      expect(store.select({ by: "network" })).toHaveLength(4);
    }));

  test("pages through all networks from any place, taken or not", () =>
    withStore((store) => {
      put(store, lease("10.0.0.2", { network: "b" }), lease("fd00::2", { network: "a" }));
      put(store, lease("10.0.0.9", { network: "a" }), lease("10.0.0.3", { network: "b" }));
      const page = (network: string, after: string, limit: number): readonly string[] =>
        store
          .select({ by: "page", after: { network, ip: ip(after) }, limit })
          .map(({ owner, address }) => `${owner.network} ${formatIp(address.ip)}`);
      expect(page("", "::", 9)).toEqual(["a 10.0.0.9", "a fd00::2", "b 10.0.0.2", "b 10.0.0.3"]);
      expect(page("a", "10.0.0.9", 2)).toEqual(["a fd00::2", "b 10.0.0.2"]);
      expect(page("a", "10.0.0.8", 1)).toEqual(["a 10.0.0.9"]);
      expect(page("b", "10.0.0.3", 9)).toEqual([]);
    }));

  test("lists what cools, longest first", () =>
    withStore((store) => {
      put(store, left("10.0.0.2", "cooling", 300), left("10.0.0.3", "releasing", 100), lease("10.0.0.4"));
      put(
        store,
        left("10.0.0.5", "cooling", 200, 2),
        left("10.0.0.6", "cooling", 200, 1),
        left("fd00::1", "cooling", 400),
      );
      const cooling = { by: "cooling", network: "net", limit: 9 } as const;
      expect(addresses(store.select({ ...cooling, releasedByMs: 300 }))).toEqual(["10.0.0.6", "10.0.0.5", "10.0.0.2"]);
      expect(addresses(store.select({ ...cooling, releasedByMs: 300, limit: 1 }))).toEqual(["10.0.0.6"]);
      const within = { from: ip("10.0.0.2"), to: ip("10.0.0.5") };
      expect(addresses(store.select({ ...cooling, releasedByMs: 999, within }))).toEqual(["10.0.0.5", "10.0.0.2"]);
      expect(store.select({ ...cooling, network: "other", releasedByMs: 999 })).toEqual([]);
    }));

  test("finds what has cooled, in no order", () =>
    withStore((store) => {
      put(store, left("10.0.0.2", "cooling", 300), left("10.0.0.3", "releasing", 100), lease("10.0.0.4"));
      put(store, left("10.0.0.5", "cooling", 200), left("fd00::1", "cooling", 400));
      const cooled = (releasedByMs: number, limit = 9, network = "net") =>
        addresses(store.select({ by: "cooled", network, releasedByMs, limit })).toSorted();
      expect(cooled(300)).toEqual(["10.0.0.2", "10.0.0.5"]);
      expect(cooled(999)).toEqual(["10.0.0.2", "10.0.0.5", "fd00::1"]);
      expect(cooled(999, 2)).toHaveLength(2);
      expect([cooled(199), cooled(999, 9, "other")]).toEqual([[], []]);
    }));

  test("knows the next free address through runs that grow, meet and break", () =>
    withStore((store) => {
      const next = (from: string): string => formatIp(store.nextFree("net", ip(from)));
      expect(next("10.0.0.2")).toBe("10.0.0.2");
      put(store, lease("10.0.0.2"), lease("10.0.0.4"), lease("10.0.0.3"), lease("10.0.0.6"));
      expect(next("10.0.0.2")).toBe("10.0.0.5");
      expect(next("10.0.0.4")).toBe("10.0.0.5");
      expect(next("10.0.0.1")).toBe("10.0.0.1");
      expect(next("10.0.0.6")).toBe("10.0.0.7");
      expect(formatIp(store.nextFree("other", ip("10.0.0.2")))).toBe("10.0.0.2");
      put(store, lease("10.0.0.5"));
      expect(next("10.0.0.2")).toBe("10.0.0.7");
      remove(store, lease("10.0.0.4"));
      expect(next("10.0.0.2")).toBe("10.0.0.4");
      expect(next("10.0.0.5")).toBe("10.0.0.7");
      remove(store, lease("10.0.0.2"), lease("10.0.0.6"), lease("10.0.0.6"));
      expect([next("10.0.0.2"), next("10.0.0.3"), next("10.0.0.5")]).toEqual(["10.0.0.2", "10.0.0.4", "10.0.0.6"]);
    }));

  test("counts to the last address of each family, and no further", () =>
    withStore((store) => {
      put(store, lease("255.255.255.255"), lease("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"), lease("::1:0:0:0"));
      expect(store.nextFree("net", ip("255.255.255.255")).value).toBeGreaterThan(ip("255.255.255.255").value);
      expect(store.nextFree("net", ip("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff")).value).toBe(1n << 128n);
      put(store, lease("ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe"));
      expect(store.nextFree("net", ip("ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe")).value).toBe(1n << 128n);
      remove(store, lease("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"));
      put(store, lease("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"));
      expect(store.nextFree("net", ip("ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe")).value).toBe(1n << 128n);
      remove(store, ...store.select({ by: "network" }));
      expect(store.count("net", ip("::"), ip("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"), 0).taken).toBe(0n);
    }));

  test("counts a window", () =>
    withStore((store) => {
      put(store, ...["10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.8"].map((text) => lease(text)));
      put(
        store,
        left("10.0.0.9", "cooling", 1),
        left("10.0.0.20", "releasing", 1),
        lease("10.0.0.5", { network: "other" }),
      );
      const count = (from: string, to: string, cooledByMs = 0) => store.count("net", ip(from), ip(to), cooledByMs);
      expect(count("10.0.0.1", "10.0.0.254")).toEqual({ taken: 6n, releasing: 1, cooling: 1 });
      expect(count("10.0.0.3", "10.0.0.8")).toEqual({ taken: 3n, releasing: 0, cooling: 0 });
      expect(count("10.0.0.3", "10.0.0.3")).toEqual({ taken: 1n, releasing: 0, cooling: 0 });
      expect(count("10.0.0.10", "10.0.0.19")).toEqual({ taken: 0n, releasing: 0, cooling: 0 });
      expect(count("fd00::", "fd00::ffff")).toEqual({ taken: 0n, releasing: 0, cooling: 0 });
      // What has cooled long enough is free; what waits for its interface is not, however long.
      expect(count("10.0.0.1", "10.0.0.254", 1)).toEqual({ taken: 5n, releasing: 1, cooling: 0 });
      expect(count("10.0.0.9", "10.0.0.9", 1)).toEqual({ taken: 0n, releasing: 0, cooling: 0 });
    }));

  test("keeps marks and pending detaches", () =>
    withStore((store) => {
      const [first, second] = [lease("10.0.0.2").owner, lease("10.0.0.2", { sandboxId: "s0" }).owner];
      store.transaction((): void => {
        store.setMark("a", "1");
        store.setMark("a", "2");
        store.setPendingDetach(first, true);
      });
      store.transaction((): void => store.setPendingDetach(second, true));
      store.transaction((): void => store.setPendingDetach(first, true));
      expect([store.mark("a"), store.mark("b")]).toEqual(["2", undefined]);
      for (let i = 0; i < 2; i++) store.transaction((): void => store.setMark("a", undefined));
      expect(store.mark("a")).toBe(undefined);
      expect(new Set(store.pendingDetaches())).toEqual(new Set([first, second]));
      expect([first, { ...first, ifname: "eth1" }].map((owner) => store.hasPendingDetach(owner))).toEqual([
        true,
        false,
      ]);
      store.transaction((): void => store.setPendingDetach(first, false));
      expect(store.pendingDetaches()).toEqual([second]);
      expect([first, second].map((owner) => store.hasPendingDetach(owner))).toEqual([false, true]);
    }));

  test("remembers a pod's address of each range set, and of all pods the latest", () =>
    withStore((store) => {
      const web = { network: "net", ifname: "eth0", namespace: "default", name: "web" };
      const others = [
        { ...web, network: "other" },
        { ...web, ifname: "eth1" },
        { ...web, namespace: "prod" },
        { ...web, name: "db" },
      ];
      const remember = (place: PodPlace, rangeSet: number, address: string, most = 9): void =>
        store.transaction((): void => store.remember(place, rangeSet, ip(address), most));
      const known = (place: PodPlace): readonly string[] => store.remembered(place).map(formatIp);
      remember(web, 0, "10.0.0.2");
      remember(web, 1, "fd00::2");
      for (const place of others) remember(place, 0, "10.0.0.9");
      expect(known(web)).toEqual(["fd00::2", "10.0.0.2"]);
      remember(web, 0, "10.0.0.3");
      expect(known(web)).toEqual(["10.0.0.3", "fd00::2"]);
      expect(others.map(known)).toEqual([["10.0.0.9"], ["10.0.0.9"], ["10.0.0.9"], ["10.0.0.9"]]);
      // The second address was noted before those of the others.
      remember({ ...web, name: "new" }, 0, "10.0.0.4", 3);
      expect(known(web)).toEqual(["10.0.0.3"]);
      expect(others.flatMap(known)).toEqual(["10.0.0.9"]);
    }));

  test("keeps all of a transaction or nothing", () =>
    withStore((store) => {
      put(store, lease("10.0.0.2"));
      const place = { network: "net", ifname: "eth0", namespace: "default", name: "web" };
      const fail = (): never => {
        throw new Error("no");
      };
      expect(() =>
        store.transaction((): void => {
          store.put(lease("10.0.0.3"));
          store.remove(lease("10.0.0.2"));
          store.setMark("a", "1");
          store.setPendingDetach(lease("10.0.0.2").owner, true);
          store.remember(place, 0, ip("10.0.0.2"), 9);
          fail();
        }),
      ).toThrow("no");
      expect(addresses(store.select({ by: "network" }))).toEqual(["10.0.0.2"]);
      expect([store.mark("a"), store.pendingDetaches().length]).toEqual([undefined, 0]);
      expect(store.remembered(place)).toEqual([]);
      expect(formatIp(store.nextFree("net", ip("10.0.0.2")))).toBe("10.0.0.3");
    }));

  test("refuses asynchronous work, before it starts where that can be seen, and keeps nothing of it", () =>
    withStore((store) => {
      let ran = false;
      const asynchronous = async (): Promise<void> => {
        ran = true;
        store.put(lease("10.0.0.2"));
      };
      expect(() => store.transaction(asynchronous as unknown as () => never)).toThrow(
        "the work of a transaction is synchronous",
      );
      expect(ran).toBe(false);
      const disguised = (): unknown => {
        store.put(lease("10.0.0.2"));
        return Promise.resolve();
      };
      expect(() => store.transaction(disguised as unknown as () => never)).toThrow("answers no promise");
      expect(store.select({ by: "network" })).toEqual([]);
    }));

  test("refuses changes outside of a transaction, and one inside another", () =>
    withStore((store) => {
      expect(() => store.put(lease("10.0.0.2"))).toThrow("inside a transaction");
      expect(() => store.remove(lease("10.0.0.2"))).toThrow("inside a transaction");
      expect(() => store.setMark("a", "1")).toThrow("inside a transaction");
      const place = { network: "net", ifname: "eth0", namespace: "default", name: "web" };
      expect(() => store.remember(place, 0, ip("10.0.0.2"), 9)).toThrow("inside a transaction");
      expect(() => store.setPendingDetach(lease("10.0.0.2").owner, true)).toThrow("inside a transaction");
      expect(() => store.transaction((): void => store.transaction((): void => undefined))).toThrow("do not nest");
      // Usable afterwards.
      put(store, lease("10.0.0.2"));
    }));

  test("closes twice", () =>
    withStore((store) => {
      store[Symbol.dispose]();
      store[Symbol.dispose]();
    }));
});

test("SQLite finds the free addresses that a plain search finds, through thousands of random changes", async () => {
  using scratch = scratchDir();
  using sqlite = await SqliteStore.open(`${scratch.path}/leases.db`, scratch.path);
  using memory = new MemoryStore();
  const next = random(4);
  const pool = Array.from({ length: 40 }, (_, i) => lease(i < 20 ? `10.0.0.${i}` : `fd00::${i}`));
  sqlite.transaction((): void =>
    memory.transaction((): void => {
      for (let step = 0; step < 5000; step++) {
        const one = pool[next(pool.length)]!;
        const taking = next(2) === 0;
        for (const store of [sqlite, memory]) {
          if (taking) store.put(one);
          else store.remove(one);
        }
        const from = pool[next(pool.length)]!.address.ip;
        expect(sqlite.nextFree("net", from)).toEqual(memory.nextFree("net", from));
        const [low, high] = [ip("10.0.0.5"), pool[next(20)]!.address.ip];
        if (low.value <= high.value)
          expect(sqlite.count("net", low, high, 0)).toEqual(memory.count("net", low, high, 0));
      }
    }),
  );
});
