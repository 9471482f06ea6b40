import { existsSync, mkdirSync, readdirSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { beforeEach, expect, test, vi } from "vitest";
import { scratchDir } from "../../test/support/scratch-dir.ts";
import { Allocator } from "../allocator.ts";
import { migrations } from "./schema.ts";
import { openDatabase } from "./sqlite-open.ts";

/** What SQLite was asked for, in order. */
const opened = vi.hoisted((): string[] => []);
vi.mock("node:sqlite", async (original) => {
  const real = await original<typeof import("node:sqlite")>();
  class Watched extends real.DatabaseSync {
    constructor(...args: ConstructorParameters<typeof real.DatabaseSync>) {
      opened.push(String(args[0]));
      super(...args);
    }
  }
  return { ...real, DatabaseSync: Watched };
});
beforeEach(() => void opened.splice(0));

const owner = { network: "net", sandboxId: "s1", ifname: "eth0" };

const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8);

/** Makes a database with this SQL. */
function database(path: string, sql: string): void {
  const db = new DatabaseSync(path);
  db.exec(sql);
  db.close();
}

test("directory and files are for this user alone, whatever the umask", async () => {
  using scratch = scratchDir();
  const dataDir = `${scratch.path}/a/b`;
  const umask = process.umask(0);
  try {
    using allocator = await Allocator.open(dataDir);
    allocator.recordPendingDetach(owner);
    expect(process.umask()).toBe(0);
  } finally {
    process.umask(umask);
  }
  expect([modeOf(`${scratch.path}/a`), modeOf(dataDir)]).toEqual(["700", "700"]);
  expect(
    readdirSync(dataDir)
      .sort()
      .map((name) => `${name} ${modeOf(`${dataDir}/${name}`)}`),
  ).toEqual(["leases.db 600", "leases.db-shm 600", "leases.db-wal 600"]);
});

test("what is written stays when nobody moves the log, and the log stays short", async () => {
  using scratch = scratchDir();
  for (let i = 0; i < 200; i++) {
    using allocator = await Allocator.open(scratch.path);
    allocator.recordPendingDetach({ ...owner, sandboxId: `s${i}` });
  }
  using allocator = await Allocator.open(scratch.path);
  expect(allocator.pendingDetaches()).toHaveLength(200);
  // 200 pages and more went through it.
  expect(statSync(`${scratch.path}/leases.db-wal`).size).toBeLessThan(100 * 2048);
});

test("what is not there is not opened: SQLite would open for reading alone what another process creates just then", async () => {
  using scratch = scratchDir();
  const path = `${scratch.path}/leases.db`;
  expect(await openDatabase(path)).toBeUndefined();
  expect(opened).toEqual([]);
  database(path, "");
  (await openDatabase(path))?.close();
  expect(opened).toEqual([path, expect.stringContaining("leases.db?mode=rw")]);
});

test("a look makes nothing", async () => {
  using scratch = scratchDir();
  expect(await Allocator.openExisting(`${scratch.path}/none`)).toBeUndefined();
  expect(await Allocator.openExisting(scratch.path)).toBeUndefined();
  expect(readdirSync(scratch.path)).toEqual([]);
});

test("paths with signs that mean something in an address of the database are paths", async () => {
  using scratch = scratchDir();
  const dataDir = `${scratch.path}/a b?mode=memory#c%41&x=ü`;
  for (let i = 0; i < 2; i++) {
    using allocator = await Allocator.open(dataDir);
    allocator.recordPendingDetach(owner);
  }
  expect(existsSync(`${dataDir}/leases.db`)).toBe(true);
  using allocator = await Allocator.openExisting(dataDir);
  expect(allocator?.pendingDetaches()).toEqual([owner]);
});

test("an empty file, as a crash at the very beginning leaves it, becomes a database", async () => {
  using scratch = scratchDir();
  writeFileSync(`${scratch.path}/leases.db`, "");
  using allocator = await Allocator.open(scratch.path);
  allocator.recordPendingDetach(owner);
});

test.each([
  [
    "of a newer schema",
    (path: string) => database(path, `CREATE TABLE lease (x); PRAGMA user_version = ${migrations.length + 1}`),
    `its schema version is ${migrations.length + 1}, wanted ${migrations.length} or lower`,
  ],
  [
    "of another program",
    (path: string) => database(path, "CREATE TABLE t (x)"),
    "another program's tables are in it, wanted Pipette's",
  ],
  [
    "of no program",
    (path: string) => writeFileSync(path, "not a database, but long enough ".repeat(200)),
    "its content is damaged (file is not a database)",
  ],
  ["that is a directory", (path: string) => mkdirSync(path), "it cannot be opened"],
])("a database %s is refused with its path, and stays as it is", async (_name, make, wanted) => {
  using scratch = scratchDir();
  const path = `${scratch.path}/leases.db`;
  make(path);
  const before = statSync(path).size;
  for (const open of [Allocator.open, Allocator.openExisting]) {
    await expect(open(scratch.path)).rejects.toMatchObject({
      code: 101,
      message: expect.stringContaining(`Cannot use the lease database "${path}": ${wanted}`),
    });
  }
  expect(statSync(path).size).toBe(before);
  expect(readdirSync(scratch.path)).toEqual(["leases.db"]);
});

test("a truncated database is refused at the first use", async () => {
  using scratch = scratchDir();
  const path = `${scratch.path}/leases.db`;
  {
    using allocator = await Allocator.open(scratch.path);
    for (let i = 0; i < 300; i++) allocator.recordPendingDetach({ ...owner, sandboxId: `s${i}` });
  }
  // All of it into the database, so that the log cannot repair it.
  database(path, "PRAGMA wal_checkpoint(TRUNCATE)");
  truncateSync(path, 5000);
  const use = async (): Promise<void> => {
    using allocator = await Allocator.open(scratch.path);
    allocator.pendingDetaches();
  };
  await expect(use()).rejects.toMatchObject({
    code: 101,
    message: expect.stringContaining(`"${path}": its content is damaged`),
  });
});

test("a directory that cannot be made is named", async () => {
  using scratch = scratchDir();
  writeFileSync(`${scratch.path}/file`, "");
  await expect(Allocator.open(`${scratch.path}/file/dir`)).rejects.toMatchObject({
    code: 101,
    message: expect.stringContaining(
      `Cannot create the lease database "${scratch.path}/file/dir/leases.db": its directory cannot be made`,
    ),
  });
});

test("a lock that another process keeps is waited for, up to the bound that the error names", {
  timeout: 30_000,
}, async () => {
  using scratch = scratchDir();
  using allocator = await Allocator.open(scratch.path);
  const holder = new DatabaseSync(`${scratch.path}/leases.db`);
  holder.exec("BEGIN IMMEDIATE");
  try {
    expect(() => allocator.recordPendingDetach(owner)).toThrow(
      `Cannot use the lease database "${scratch.path}/leases.db": other processes held its lock for 5000 ms`,
    );
    // Reading does not wait.
    expect(allocator.pendingDetaches()).toEqual([]);
  } finally {
    holder.exec("ROLLBACK");
    holder.close();
  }
  allocator.recordPendingDetach(owner);
  expect(allocator.pendingDetaches()).toEqual([owner]);
});
