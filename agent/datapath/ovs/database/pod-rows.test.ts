import { expect, test } from "vitest";
import { parseIp } from "../../../../shared/net/ip.ts";
import { PodRows, PortNumbers } from "./pod-rows.ts";
import { formatIdentity } from "./port-identity.ts";
import type { SwitchDatabase } from "./switch-database.ts";

test("reads what a row says of itself once, and again when it has changed", () => {
  let reads = 0;
  class CountedIds extends Map<string, string> {
    override get(key: string): string | undefined {
      reads++;
      return super.get(key);
    }
  }
  const rowFor = (sandboxId: string, mac: string) => {
    const owner = { network: "pods", sandboxId, ifname: "eth0" };
    const ids = formatIdentity({ owner, mac, ips: [parseIp("10.1.0.2")!], netns: "/n", ownLease: true });
    return { name: sandboxId, external_ids: new CountedIds(Object.entries(ids)) };
  };
  const ports = new Map<string, ReturnType<typeof rowFor>>();
  ports.set("a", rowFor("a", "02:00:00:00:00:01")).set("b", rowFor("b", "none"));
  const view = {
    named: (table: string, name: string) => (table === "Bridge" ? { ports: new Set(ports.keys()) } : ports.get(name)),
    row: (_table: string, uuid: string) => ports.get(uuid),
  };
  const rows = new PodRows({ view } as unknown as SwitchDatabase, "br-int");
  const macs = (): readonly (string | undefined)[] => rows.all().map(({ port }) => port?.mac);
  expect(macs()).toEqual(["02:00:00:00:00:01", undefined]);
  const once = reads;
  expect(once).toBeGreaterThan(0);
  expect(macs()).toEqual(["02:00:00:00:00:01", undefined]);
  expect(rows.ownerOf("b")?.sandboxId).toBe("b");
  expect(reads).toBe(once);
  ports.set("b", rowFor("b", "02:00:00:00:00:02"));
  expect(macs()).toEqual(["02:00:00:00:00:01", "02:00:00:00:00:02"]);
});

test("has a pod's port that is on its bridge, and is that pod's", () => {
  const owner = { network: "pods", sandboxId: "a", ifname: "eth0" };
  const idsOf = (sandboxId: string) => {
    const identity = { mac: "02:00:00:00:00:01", ips: [], netns: "/n", ownLease: true };
    return new Map(Object.entries(formatIdentity({ ...identity, owner: { ...owner, sandboxId } })));
  };
  const standing = { _uuid: "1", name: "a-p", external_ids: idsOf("a") };
  const looks = (row: object | undefined, ports: readonly string[] | undefined) => {
    const bridge = ports === undefined ? undefined : { ports: new Set(ports) };
    const view = { named: (table: string) => (table === "Bridge" ? bridge : row) };
    return new PodRows({ view } as unknown as SwitchDatabase, "br-int").has({ port: "a-p", owner });
  };
  expect(looks(standing, ["0", "1"])).toBe(true);
  expect(looks(undefined, ["0"])).toBe(false);
  // It is gone from the bridge, or that is.
  expect([looks(standing, ["0"]), looks(standing, undefined)]).toEqual([false, false]);
  // Another pod's, or nobody's.
  expect(looks({ ...standing, external_ids: idsOf("b") }, ["1"])).toBe(false);
  expect(looks({ ...standing, external_ids: new Map() }, ["1"])).toBe(false);
});

test("goes on behind the highest that is taken, and does not come back to one soon", () => {
  const numbers = new PortNumbers();
  expect(numbers.next(new Set([1, 2000, 32_768]))).toBe(2001);
  expect(numbers.next(new Set([1, 2000]))).toBe(2002);
  expect(new PortNumbers().next(new Set())).toBe(1024);
});

test("begins again at its end, passes over what is taken, and gives up where everything is", () => {
  const numbers = new PortNumbers();
  expect(numbers.next(new Set([32_767, 1024]))).toBe(1025);
  const all = new Set(Array.from({ length: 32_767 }, (_, i) => i + 1));
  expect(numbers.next(all)).toBe(0);
});
