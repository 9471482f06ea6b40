import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { formatIp, parseIp } from "../../shared/net/ip.ts";
import { scratchDir } from "../../test/support/scratch-dir.ts";
import { keyOf } from "../store/address-key.ts";
import { type Salvage, salvage } from "./salvage.ts";

type Row = Readonly<Record<string, SQLInputValue>>;
interface Rows {
  readonly lease?: readonly Row[];
  readonly taken?: readonly Row[];
  readonly mark?: readonly Row[];
  readonly departure?: readonly Row[];
  readonly remembered?: readonly Row[];
}

const key = (text: string): Uint8Array => keyOf(parseIp(text)!);
const lease: Row = {
  network: "blue",
  address: key("10.1.0.2"),
  prefix: 24,
  gateway: key("10.1.0.1"),
  range_set: 1,
  sandbox_id: "s1",
  ifname: "eth0",
  state: "allocated",
  pod_namespace: "shop",
  pod_name: "web",
  pod_uid: "u",
  boot_id: "b",
  generation: 7,
  allocated_at_ms: 1000,
  released_at_ms: null,
  sticky: 1,
};
const run = (first: unknown, last: unknown = first, network: unknown = "blue"): Row =>
  ({ network, first, last }) as Row;
const memory: Row = {
  turn: 1,
  network: "blue",
  pod_namespace: "shop",
  pod_name: "web",
  ifname: "eth0",
  range_set: 0,
  address: key("10.1.0.2"),
};

const columns: Readonly<Record<keyof Rows, readonly string[]>> = {
  lease: Object.keys(lease),
  taken: ["network", "first", "last"],
  mark: ["name", "value"],
  departure: ["network", "sandbox_id", "ifname", "since_ms"],
  remembered: Object.keys(memory),
};

/** What is read of a database whose rows damage has made so: its tables take anything. */
function readOf(rows: Rows, without?: keyof Rows): Salvage {
  using scratch = scratchDir();
  const path = `${scratch.path}/leases.db`;
  const db = new DatabaseSync(path);
  for (const [table, names] of Object.entries(columns)) {
    if (table === without) continue;
    db.exec(`CREATE TABLE ${table} (${names.join(", ")})`);
    if (table === "lease") db.exec("CREATE INDEX lease_owner ON lease (network, sandbox_id, ifname)");
    for (const row of rows[table as keyof Rows] ?? [])
      db.prepare(`INSERT INTO ${table} VALUES (${names.map(() => "?").join(", ")})`).run(
        ...names.map((name) => row[name] ?? null),
      );
  }
  db.close();
  return salvage(path);
}
const addresses = ({ leases }: Salvage): readonly string[] =>
  leases.map(({ address, owner }) => `${formatIp(address.ip)} ${owner.sandboxId}`);

describe("a lease", () => {
  test("that is sound is as it was", () => {
    expect(readOf({ lease: [lease] })).toEqual({
      leases: [
        {
          owner: { network: "blue", sandboxId: "s1", ifname: "eth0" },
          rangeSet: 1,
          address: { ip: parseIp("10.1.0.2"), prefix: 24 },
          gateway: parseIp("10.1.0.1"),
          state: "allocated",
          pod: { namespace: "shop", name: "web", uid: "u" },
          bootId: "b",
          generation: 7,
          allocatedAtMs: 1000,
          sticky: true,
        },
      ],
      marks: new Map(),
      pendingDetaches: [],
      remembered: [],
      complete: true,
    });
  });

  test.each<readonly [string, Row, "whole" | "bare" | "lost"]>([
    ["without a gateway", { gateway: null }, "whole"],
    ["that cools", { state: "cooling", released_at_ms: 5 }, "whole"],
    ["with another text for sticky", { sticky: "yes" }, "whole"],
    ["of no network", { network: null }, "lost"],
    ["of a network that is a number", { network: 1 }, "lost"],
    ["of no sandbox", { sandbox_id: null }, "lost"],
    ["of no interface", { ifname: null }, "lost"],
    ["of no address", { address: null }, "lost"],
    ["of an address in words", { address: "10.1.0.2" }, "lost"],
    ["of half an address", { address: key("10.1.0.2").slice(0, 8) }, "lost"],
    ["of no boot", { boot_id: null }, "bare"],
    ["without a prefix length", { prefix: null }, "bare"],
    ["with a broken range set", { range_set: 0.5 }, "bare"],
    ["with a broken generation", { generation: "x" }, "bare"],
    ["without a time", { allocated_at_ms: null }, "bare"],
    ["in no state", { state: "gone" }, "bare"],
    ["with half a gateway", { gateway: key("10.1.0.1").slice(0, 4) }, "bare"],
    ["that was released and was not", { released_at_ms: 5 }, "bare"],
    ["that cools since no time", { state: "cooling" }, "bare"],
  ])("%s", (_name, change, outcome) => {
    const found = readOf({ lease: [{ ...lease, ...change }] }, "taken");
    expect(found.leases.map(({ bootId }) => bootId)).toEqual({ whole: ["b"], bare: ["unknown"], lost: [] }[outcome]);
    expect(found.complete).toBe(outcome !== "lost");
    if (outcome === "whole") expect(found.leases[0]?.sticky).toBe(change["sticky"] === undefined ? true : undefined);
    if (outcome !== "bare") return;
    expect(found.leases).toMatchObject([
      { owner: { sandboxId: "s1" }, address: { prefix: 32 }, state: "allocated", generation: 0, rangeSet: 0 },
    ]);
  });
});

describe("addresses that are noted as taken", () => {
  const lost: Row = { ...lease, sandbox_id: null };
  const [two, four] = [key("10.1.0.2"), key("10.1.0.4")];

  test("and have no lease are those of owners whom nobody knows", () => {
    const found = readOf({ lease: [lease], taken: [run(two, four)] });
    expect(addresses(found)).toEqual(["10.1.0.2 s1", "10.1.0.3 unreadable-10.1.0.3", "10.1.0.4 unreadable-10.1.0.4"]);
    expect(found.complete).toBe(true);
  });

  test.each<readonly [string, readonly Row[], boolean]>([
    ["none", [], true],
    ["one of no network", [run(two, four, null)], false],
    ["one without a beginning", [run(null, four)], false],
    ["one without an end", [run(two, null)], false],
    ["one that is too long", [run(two, key("10.33.0.2"))], false],
  ])("are all that is known where a lease is lost: %s", (_name, taken, complete) => {
    const found = readOf({ lease: [lost], taken });
    expect([addresses(found), found.complete]).toEqual([[], complete]);
    // Where the leases are sound they need not be.
    expect(readOf({ lease: [lease], taken }).complete).toBe(true);
  });

  test("cannot be read", () => {
    expect(readOf({ lease: [lost] }, "taken").complete).toBe(false);
    expect(readOf({ taken: [run(two)] }, "lease")).toMatchObject({ complete: true, leases: [{ generation: 0 }] });
  });
});

test("of the rest what is sound is kept", () => {
  const found = readOf({
    mark: [
      { name: "generation", value: "7" },
      { name: "x", value: null },
    ],
    departure: [
      { network: "blue", sandbox_id: "s9", ifname: "eth0", since_ms: 1 },
      { network: "blue", sandbox_id: "s9", ifname: null, since_ms: 1 },
      { network: null, sandbox_id: "s9", ifname: "eth0", since_ms: 1 },
    ],
    remembered: [
      { ...memory, turn: 3, pod_name: "third" },
      { ...memory, turn: 1, pod_name: "first" },
      ...["turn", "network", "pod_namespace", "pod_name", "ifname", "range_set", "address"].map((column) => ({
        ...memory,
        [column]: null,
      })),
    ],
  });
  expect([...found.marks]).toEqual([["generation", "7"]]);
  expect(found.pendingDetaches).toEqual([{ network: "blue", sandboxId: "s9", ifname: "eth0" }]);
  const place = { network: "blue", ifname: "eth0", namespace: "shop" };
  expect(found.remembered).toEqual([
    { place: { ...place, name: "first" }, rangeSet: 0, ip: parseIp("10.1.0.2") },
    { place: { ...place, name: "third" }, rangeSet: 0, ip: parseIp("10.1.0.2") },
  ]);
});
