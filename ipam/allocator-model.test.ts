import { expect, test } from "vitest";
import type { Owner } from "../shared/cni/types.ts";
import type { CniError } from "../shared/errors.ts";
import { formatIp, type Ip } from "../shared/net/ip.ts";
import { Fields } from "../shared/schema/json-fields.ts";
import { random } from "../test/support/random.ts";
import { scratchDir } from "../test/support/scratch-dir.ts";
import { Allocator } from "./allocator.ts";
import { type IpamConfig, parseIpamConfig } from "./config/ipam-config.ts";
import type { Allocation, Lease } from "./lease.ts";
import { SqliteStore } from "./store/sqlite-store.ts";

const config = (ipam: object): IpamConfig =>
  parseIpamConfig({ conf: new Fields({ ipam }), network: "net", version: "1.0.0", args: "" });

const owner = (sandboxId: string): Owner => ({ network: "net", sandboxId, ifname: "eth0" });

const ipsOf = (leases: readonly Lease[]): readonly string[] => leases.map(({ address }) => formatIp(address.ip));

/**
 * Random sequences against a model that says what must hold, not how: on the database, with a pool that is
 * smaller than the owners are many.
 */
test.each([1, 2, 3])("nothing is doubled, lost or given too early: seed %i", async (seed) => {
  using scratch = scratchDir();
  using store = await SqliteStore.open(`${scratch.path}/leases.db`, scratch.path);
  const clock = { ms: 1_000_000 };
  const allocator = new Allocator(store, { bootId: "boot", now: () => clock.ms });
  const pool = config({
    ranges: [
      [
        { subnet: "10.0.0.0/28", rangeEnd: "10.0.0.7" },
        { subnet: "10.0.0.0/28", rangeStart: "10.0.0.9" },
      ],
      [{ subnet: "fd00::/125" }],
    ],
    cooldownMs: 100,
  });
  const gateways = new Set(["10.0.0.1", "fd00::1"]);
  const pick = random(seed);
  /** Owner to its addresses; address to the time from which it may be given to anyone. */
  const held = new Map<string, readonly Ip[]>();
  const releasing = new Map<string, Lease>();
  const refused = { count: 0 };

  const add = (id: string): Allocation | undefined => {
    try {
      return allocator.allocate(owner(id), pool);
    } catch (caught) {
      expect((caught as CniError).message).toContain("free, wanted at least 1");
      refused.count++;
      return undefined;
    }
  };
  for (let step = 0; step < 1500; step++) {
    const id = `s${pick(20)}`;
    clock.ms += pick(30);
    const action = pick(8);
    if (action < 4) {
      const before = held.get(id);
      const allocation = add(id);
      if (allocation === undefined) {
        // Nothing can be refused while one of each family is neither held nor releasing.
        const used = [...held.values()].flat().length + releasing.size;
        expect(used).toBeGreaterThanOrEqual(6);
        continue;
      }
      expect(allocation.created).toBe(before === undefined);
      if (before !== undefined) expect(allocation.leases.map((lease) => lease.address.ip)).toEqual(before);
      held.set(
        id,
        allocation.leases.map((lease) => lease.address.ip),
      );
      for (const lease of allocation.leases) {
        const name = formatIp(lease.address.ip);
        expect(gateways.has(name)).toBe(false);
        const waiting = releasing.get(name);
        if (waiting !== undefined) expect(waiting.owner.sandboxId).toBe(id);
        releasing.delete(name);
      }
    } else if (action < 7) {
      const to = action === 6 ? "releasing" : "cooling";
      const left = allocator.release(owner(id), to);
      expect(left.length).toBe(held.get(id)?.length ?? 0);
      held.delete(id);
      if (to === "releasing") for (const lease of left) releasing.set(formatIp(lease.address.ip), lease);
    } else {
      const [name, lease] = [...releasing][pick(releasing.size || 1)] ?? [];
      if (name === undefined || lease === undefined) continue;
      expect(allocator.finishRelease(lease)).toBe(true);
      releasing.delete(name);
    }
    const all = [...held.values()].flat().map(formatIp);
    expect(new Set(all).size).toBe(all.length);
    const listed = allocator.list();
    expect(ipsOf(listed.filter((lease) => lease.state === "allocated")).toSorted()).toEqual(all.toSorted());
    expect(ipsOf(listed.filter((lease) => lease.state === "releasing")).toSorted()).toEqual(
      [...releasing.keys()].toSorted(),
    );
  }
  // The pool was driven to its end, or the test has shown little.
  expect(refused.count).toBeGreaterThan(20);
});
