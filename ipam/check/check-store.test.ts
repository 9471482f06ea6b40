import { chmodSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { type IpamTerminal, ipamTerminal } from "../../test/fakes/ipam-terminal.ts";
import type { Lease } from "../lease.ts";
import { declareComplete, declareIncomplete } from "../recovery/integrity.ts";
import { type FindingCode, findingCodes } from "./finding.ts";

interface Report {
  readonly leases: number;
  readonly repaired: number;
  readonly findings: readonly { readonly code: FindingCode; readonly severity: string; readonly what: string }[];
}

async function check(node: IpamTerminal, ...args: string[]): Promise<Report & { readonly status: number }> {
  const { status, stdout, stderr } = await node.run("check", "--json", ...args);
  expect(stderr).toBe("");
  return { status, ...JSON.parse(stdout) };
}

/** Three pods with two addresses each: 10.1.0.2 to .4, fd00:1::2 to ::4. */
async function withPods(): Promise<IpamTerminal> {
  const node = ipamTerminal();
  for (const id of ["s1", "s2", "s3"]) await node.allocate(id);
  return node;
}

/** As no process of ours writes. */
function write(node: IpamTerminal, sql: string): void {
  const db = new DatabaseSync(`${node.dataDir}/leases.db`);
  db.exec(sql);
  db.close();
}

const changeEach =
  (change: (lease: Lease) => Lease) =>
  (node: IpamTerminal): Promise<void> =>
    node.change((store) => {
      for (const lease of store.select({ by: "network" })) store.put(change(lease));
    });

const hex = (last: string): string => `x'00000000000000000000ffff0a01${last}'`;
const hourAgo = (): number => Date.now() - 3_600_000;

interface Fault {
  readonly code: FindingCode;
  readonly severity: "error" | "warning" | "note";
  readonly what: string;
  readonly make: (node: IpamTerminal) => void | Promise<void>;
  readonly args?: (node: IpamTerminal) => readonly string[];
}

const faults: readonly Fault[] = [
  {
    code: "taken-run-missing",
    severity: "error",
    what: '"10.1.0.2-10.1.0.4" has leases and is not noted as taken',
    make: (node) => write(node, `DELETE FROM taken WHERE first = ${hex("0002")}`),
  },
  {
    code: "taken-run-empty",
    severity: "error",
    what: '"10.1.0.9" is noted as taken as a run of its own, which the leases do not say',
    make: (node) => write(node, `INSERT INTO taken VALUES ('blue', ${hex("0009")}, ${hex("0009")})`),
  },
  {
    code: "taken-run-split",
    severity: "error",
    what: '"10.1.0.2-10.1.0.4" has leases, and "10.1.0.2-10.1.0.3" is noted as taken',
    make: (node) => write(node, `UPDATE taken SET last = ${hex("0003")} WHERE first = ${hex("0002")}`),
  },
  {
    code: "generation-behind",
    severity: "error",
    what: '4 leases of network "blue" with generations that were never counted: "10.1.0.3", "10.1.0.4", "fd00:1::3" and 1 more',
    make: (node) => write(node, "UPDATE mark SET value = '2' WHERE name = 'generation'"),
  },
  {
    code: "generation-twice",
    severity: "error",
    what: "Generation 1 names more than one lease",
    make: (node) => write(node, "UPDATE lease SET generation = 1 WHERE generation = 2"),
  },
  {
    code: "gateway-given",
    severity: "error",
    what: '1 lease of network "blue" on the address of a gateway: "10.1.0.3"',
    make: changeEach((lease) => (lease.generation === 3 ? { ...lease, gateway: lease.address.ip } : lease)),
  },
  {
    code: "leases-lost",
    severity: "warning",
    what: 'Some leases of network "blue" were lost when the database was damaged; the damaged one is "leases.db.damaged-then"',
    make: (node) => node.change((store) => declareIncomplete(store, "leases.db.damaged-then")),
  },
  {
    code: "two-addresses",
    severity: "warning",
    what: 'Sandbox "s1" (eth0) of network "blue" holds two addresses of one range set and family',
    make: (node) => write(node, "UPDATE lease SET sandbox_id = 's1' WHERE generation = 3"),
  },
  {
    code: "wrong-name",
    severity: "warning",
    what: 'with owners whose names no runtime gives: "10.1.0.2"',
    make: (node) => write(node, "UPDATE lease SET sandbox_id = char(27) || '[2J' WHERE generation = 1"),
  },
  {
    code: "wrong-prefix",
    severity: "warning",
    what: 'with prefix lengths that their family has not: "10.1.0.2"',
    make: (node) => write(node, "UPDATE lease SET prefix = 33 WHERE generation = 1"),
  },
  {
    code: "time-ahead",
    severity: "note",
    what: 'with times that lie ahead: "10.1.0.2"',
    make: changeEach((lease) => (lease.generation === 1 ? { ...lease, allocatedAtMs: Date.now() + 3_600_000 } : lease)),
  },
  {
    code: "long-releasing",
    severity: "warning",
    what: 'releasing for over 10 minutes: "10.1.0.2"',
    make: changeEach((lease) =>
      lease.generation === 1 ? { ...lease, state: "releasing", releasedAtMs: hourAgo() } : lease,
    ),
  },
  {
    code: "long-departing",
    severity: "warning",
    what: 'The interface "eth0" of sandbox "gone" waits to be taken away',
    make: (node) => write(node, `INSERT INTO departure VALUES ('blue', 'gone', 'eth0', ${hourAgo()})`),
  },
  {
    code: "open-to-others",
    severity: "warning",
    what: "has mode 0644, which lets others than its owner in",
    make: (node) => chmodSync(`${node.dataDir}/leases.db`, 0o644),
  },
  {
    code: "earlier-boot",
    severity: "note",
    what: '6 leases of network "blue" allocated before the last boot',
    make: changeEach((lease) => ({ ...lease, bootId: "another" })),
  },
  {
    code: "outside-ranges",
    severity: "note",
    what: 'in no range of the configuration: "10.1.0.2", "10.1.0.3", "10.1.0.4"',
    make: (node) =>
      reconfigure(node, {
        ranges: [[{ subnet: "10.1.0.0/24", rangeStart: "10.1.0.10" }], [{ subnet: "fd00:1::/64" }]],
      }),
    args: (node) => ["--conf", node.conf],
  },
  {
    code: "reserved-address",
    severity: "note",
    what: 'on addresses that are a gateway\'s or excluded now: "10.1.0.3"',
    make: (node) =>
      reconfigure(node, { ranges: [[{ subnet: "10.1.0.0/24" }], [{ subnet: "fd00:1::/64" }]], exclude: ["10.1.0.3"] }),
    args: (node) => ["--conf", node.conf],
  },
  {
    code: "damaged-file",
    severity: "error",
    what: "is damaged",
    make: (node) => {
      write(node, "PRAGMA wal_checkpoint(TRUNCATE)");
      const path = `${node.dataDir}/leases.db`;
      const bytes = readFileSync(path);
      bytes.fill(0x55, 2048 + 8, 2048 + 400);
      writeFileSync(path, bytes);
    },
  },
];

function reconfigure(node: IpamTerminal, ipam: object): void {
  const section = { type: "pipette-ipam", dataDir: node.dataDir, ...ipam };
  writeFileSync(node.conf, JSON.stringify({ cniVersion: "1.0.0", name: "blue", type: "bridge", ipam: section }));
}

test("a database of pods that come and go is in order, also beside its configuration", async () => {
  using node = await withPods();
  await node.run("release", "--container", "s2");
  expect(await check(node, "--conf", node.conf)).toMatchObject({ status: 0, leases: 6, findings: [] });
  expect((await node.run("check")).stdout).toBe(`${node.dataDir}/leases.db: 6 leases, in order\n`);
});

test("an interface that waits to be taken away since a moment ago is in order", async () => {
  using node = await withPods();
  await node.change((store) => store.setPendingDetach({ network: "blue", sandboxId: "left", ifname: "eth0" }, true));
  expect(await check(node)).toMatchObject({ status: 0, findings: [] });
});

test("of many interfaces that wait for long the first are told of", async () => {
  using node = await withPods();
  const rows = Array.from({ length: 150 }, (_, i) => `('blue', 'gone${i}', 'eth0', ${hourAgo()})`);
  write(node, `INSERT INTO departure VALUES ${rows.join(", ")}`);
  const { findings } = await check(node);
  expect(findings.length).toBeGreaterThan(1);
  expect(findings.length).toBeLessThan(rows.length);
});

test("there is a case for each code", () => {
  // Of the configuration, which only the command has: ipam/config/unknown-keys.test.ts.
  expect(faults.map(({ code }) => code).sort()).toEqual(
    [...findingCodes.filter((code) => code !== "unknown-key")].sort(),
  );
});

describe.each(faults)("$code", ({ code, severity, what, make, args = () => [] }) => {
  test("is found, with what it is, why it matters and what to do", async () => {
    using node = await withPods();
    await make(node);
    const report = await check(node, ...args(node));
    const found = report.findings.filter((finding) => finding.code === code);
    expect(found, JSON.stringify(report)).not.toEqual([]);
    expect(found[0]).toMatchObject({ severity, why: expect.stringMatching(/\w/), todo: expect.stringMatching(/\w/) });
    expect(found[0]?.what).toContain(what);
    expect(report.status).toBe(severity === "note" ? 0 : 1);
    if (code !== "damaged-file") expect(report.leases).toBe(((await node.json("list")) as unknown[]).length);
    const { stdout } = await node.run("check", ...args(node));
    expect(stdout).toMatch(/\n {2}why: .*\n {2}do: /);
    expect(stdout).not.toContain("\u001b");
  });
});

test.each(faults.slice(0, 4))("--repair puts $code right, and keeps the leases", async ({ make }) => {
  using node = await withPods();
  await make(node);
  const before = await node.json("list");
  expect(await check(node, "--repair")).toMatchObject({ status: 0, repaired: 1, findings: [] });
  expect(await node.json("list")).toEqual(before);
  await node.allocate("s4");
  expect(await check(node)).toMatchObject({ status: 0, leases: 8, findings: [] });
});

test("a file that is cut short, or no database at all, is a finding too", async () => {
  for (const content of ["cut", "none"]) {
    using node = await withPods();
    write(node, "PRAGMA wal_checkpoint(TRUNCATE)");
    const path = `${node.dataDir}/leases.db`;
    if (content === "cut") truncateSync(path, 3000);
    else
      writeFileSync(
        path,
        "this is no database, but it is longer than a header of SQLite would be, by some way\n".repeat(9),
      );
    const { status, findings } = await check(node);
    expect([status, findings[0]?.code]).toEqual([1, "damaged-file"]);
  }
});

test("leases that were lost are told of too where none is left", async () => {
  using node = ipamTerminal();
  await node.change((store) => declareIncomplete(store, "aside"));
  const { status, findings } = await check(node);
  expect([status, findings[0]?.what]).toEqual([1, expect.stringMatching(/^Some leases were lost/)]);
  await node.change((store) => declareComplete(store, ""));
  expect((await check(node)).status).toBe(0);
});

test("without a database says so", async () => {
  using node = ipamTerminal();
  expect(await node.run("check")).toMatchObject({ status: 3, stderr: expect.stringContaining("holds no leases.db") });
});

test("a key that nobody knows is told of, of the configuration and of the network's settings file", async () => {
  using node = await withPods();
  reconfigure(node, { ranges: [[{ subnet: "10.1.0.0/24" }], [{ subnet: "fd00:1::/64" }]], exclud: [], colour: 1 });
  writeFileSync(`${node.dataDir}/blue.json`, '{ "stickyy": true }', { mode: 0o600 });
  const { status, findings } = await check(node, "--conf", node.conf);
  expect([status, findings.map(({ code, severity, what }) => [code, severity, what])]).toEqual([
    1,
    [
      ["unknown-key", "warning", expect.stringMatching(/exclud.*, in the network configuration$/)],
      ["unknown-key", "warning", expect.stringMatching(/stickyy.*, in ".*\/blue\.json"$/)],
      ["unknown-key", "note", expect.stringMatching(/colour.*, in the network configuration$/)],
    ],
  ]);
  expect((await node.run("check", "--conf", node.conf)).stdout).toContain('do:   write "exclude"\n');
});
