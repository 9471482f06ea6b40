import { mkdirSync, readdirSync, readFileSync, renameSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, expect, test } from "vitest";
import { formatIp } from "../../shared/net/ip.ts";
import { Fields } from "../../shared/schema/json-fields.ts";
import { fillPage, overwrite, pageBytes } from "../../test/support/noise.ts";
import { describeWith } from "../../test/support/requires.ts";
import { scratchDir } from "../../test/support/scratch-dir.ts";
import { Allocator } from "../allocator.ts";
import { parseIpamConfig } from "../config/ipam-config.ts";
import { rebuildDirectoryOf } from "../data-directory.ts";
import { missingSince } from "./integrity.ts";
import { openVerified } from "./open-verified.ts";
import { rebuildDatabase } from "./rebuild.ts";

const pods = Array.from({ length: 60 }, (_, i) => `pod${i}`);
const owner = (sandboxId: string) => ({ network: "blue", sandboxId, ifname: "eth0" });

let scratch: ReturnType<typeof scratchDir>;
let path: string;
let lines: string[];

const conf = () => {
  const ipam = { type: "pipette-ipam", dataDir: scratch.path, sticky: true, ranges: [[{ subnet: "10.1.0.0/22" }]] };
  return parseIpamConfig({ conf: new Fields({ name: "blue", ipam }), network: "blue", version: "1.1.0", args: "" });
};
const rebuild = () => rebuildDatabase(path, (line) => lines.push(line));
/** Beside the database; a log and its index go with each. */
const others = () => readdirSync(scratch.path).filter((name) => name !== "leases.db" && !/-(wal|shm)$/.test(name));
function intoOneFile(): void {
  const db = new DatabaseSync(path);
  db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  db.close();
}

/** Everything that a database keeps, in words. */
async function content() {
  using allocator = await Allocator.open(scratch.path);
  return allocator.transaction((store) => ({
    leases: [...store.select({ by: "network" })].map(
      (each) => `${formatIp(each.address.ip)} ${each.owner.sandboxId} ${each.state} ${each.generation} ${each.bootId}`,
    ),
    marks: ["generation", "host-local blue", "other"].map((name) => store.mark(name)),
    detaches: store.pendingDetaches(),
    missing: missingSince(store, "blue"),
  }));
}

beforeEach(async () => {
  scratch = scratchDir();
  path = `${scratch.path}/leases.db`;
  lines = [];
  {
    using allocator = await Allocator.open(scratch.path);
    for (const name of pods) allocator.allocate(owner(name), conf());
    allocator.release(owner("pod3"), "cooling");
    allocator.release(owner("pod4"), "releasing");
    allocator.recordPendingDetach(owner("left"));
    allocator.transaction((store): void => {
      for (const name of ["host-local blue", "other"]) store.setMark(name, "here");
    });
  }
  intoOneFile();
});
afterEach(() => scratch[Symbol.dispose]());

function rootOf(name: string): number {
  const db = new DatabaseSync(path, { readOnly: true });
  const row = db.prepare("SELECT rootpage FROM sqlite_schema WHERE name = ?").get(name);
  db.close();
  return Number(row?.["rootpage"]);
}

describeWith("a damaged database", ["linux"], () => {
  test.each<readonly [string, () => void]>([
    ["its first 16 bytes overwritten", () => overwrite(path, 0, 16)],
    ["its header overwritten", () => overwrite(path, 0, 100)],
    ["its index of owners overwritten", () => fillPage(path, rootOf("lease_owner"))],
    ["its runs of taken addresses overwritten", () => fillPage(path, rootOf("taken"))],
  ])("keeps everything: %s", async (_name, damage) => {
    const before = await content();
    intoOneFile();
    damage();
    const hurt = readFileSync(path);
    await rebuild();
    expect(await content()).toEqual(before);
    const aside = others();
    expect(aside).toEqual([expect.stringMatching(/^leases\.db\.damaged-\d{8}T\d{6}\.\d{3}Z$/)]);
    expect(readFileSync(`${scratch.path}/${aside[0]}`).equals(hurt)).toBe(true);
    expect(lines).toEqual([
      expect.stringMatching(
        /^The lease database ".*" is damaged \([^)]+(?:\(\)[^)]*)?\): it is set aside as ".*\.damaged-.*Z"$/,
      ),
      `The lease database "${path}" is made anew with the 60 leases that could be read; no other address was in use`,
    ]);
  });

  test("keeps the addresses and not their owners where those alone are lost, and counts on from the mark", async () => {
    for (const name of ["lease", "lease_owner"]) fillPage(path, rootOf(name));
    await rebuild();
    const { leases, marks, missing } = await content();
    expect([leases.length, marks, missing]).toEqual([60, ["120", "here", "here"], undefined]);
    expect(leases[0]).toBe("10.1.0.2 unreadable-10.1.0.2 allocated 61 unknown");
  });

  test.each<readonly [string, () => void]>([
    ["its first page overwritten", () => overwrite(path, 0, pageBytes)],
    ["cut to one page", () => truncateSync(path, pageBytes)],
    ["cut to 100 bytes", () => truncateSync(path, 100)],
    ["cut to a part of a page", () => truncateSync(path, pageBytes + 7)],
    [
      "leases and runs overwritten",
      () => {
        for (const page of ["lease", "taken"].map(rootOf)) fillPage(path, page);
      },
    ],
  ])("says that addresses may be in use that nobody knows of: %s", async (_name, damage) => {
    damage();
    await rebuild();
    const { missing, marks } = await content();
    expect(missing).toBe(others()[0]);
    // The import from host-local is made again.
    expect(marks[1]).toBeUndefined();
    expect(lines[1]).toContain("; others may have been lost");
  });

  test("of which the middle is lost is read from both ends", async () => {
    const pages = statSync(path).size / pageBytes;
    // A page with leases in it, which is no root.
    const roots = new Set(
      ["lease", "lease_owner", "lease_left", "taken", "mark", "departure", "remembered"].map(rootOf),
    );
    const file = readFileSync(path);
    const holds = (page: number): boolean => file.subarray((page - 1) * pageBytes, page * pageBytes).includes("pod30");
    for (let page = 2; page <= pages; page++) if (!roots.has(page) && holds(page)) fillPage(path, page);
    await rebuild();
    const { leases, missing } = await content();
    expect([leases.length, missing]).toEqual([60, undefined]);
    expect(leases.filter((line) => line.includes("unreadable")).length).toBeGreaterThan(0);
    expect(leases.at(-1)).toContain("pod59");
  });

  test("that is sound stays as it is", async () => {
    const before = readFileSync(path);
    await rebuild();
    expect([readFileSync(path).equals(before), others(), lines]).toEqual([true, [], []]);
  });

  test("that is gone is not made", async () => {
    await expect(rebuildDatabase(`${scratch.path}/none.db`, () => undefined)).rejects.toMatchObject({ code: 101 });
    expect(others()).toEqual([]);
  });

  test("in a place where nothing can be written is told of, and stays", async () => {
    overwrite(path, 0, 16);
    const hurt = readFileSync(path);
    // What the next one would clear away is no directory of files.
    mkdirSync(`${rebuildDirectoryOf(path)}/sub/sub`, { recursive: true });
    await expect(rebuild()).rejects.toMatchObject({ code: 101, message: expect.stringContaining("Cannot rebuild") });
    expect(readFileSync(path).equals(hurt)).toBe(true);
  });
});

describeWith("a rebuild that was ended in the middle", ["linux"], () => {
  test("before anything was changed begins anew", async () => {
    overwrite(path, 0, 16);
    mkdirSync(`${rebuildDirectoryOf(path)}`);
    writeFileSync(`${rebuildDirectoryOf(path)}/ready.db`, "half");
    await rebuild();
    expect((await content()).leases).toHaveLength(60);
    expect(others()).toHaveLength(1);
  });

  test("after that goes on with what is ready", async () => {
    const sound = readFileSync(path);
    mkdirSync(`${rebuildDirectoryOf(path)}`);
    writeFileSync(`${rebuildDirectoryOf(path)}/ready.db`, sound);
    writeFileSync(`${rebuildDirectoryOf(path)}/leases.db.damaged-then`, "old");
    writeFileSync(`${path}-wal`, "of the damaged one");
    const began = Buffer.alloc(sound.length * 2, "x");
    began.write("Pipette rebuilds");
    writeFileSync(path, began);
    await rebuild();
    expect([readFileSync(path).equals(sound), others(), lines]).toEqual([true, ["leases.db.damaged-then"], []]);
    expect((await content()).leases).toHaveLength(60);
  });

  test("is ended by whoever opens the database for others, as is damage that nobody has met", async () => {
    mkdirSync(`${rebuildDirectoryOf(path)}`);
    writeFileSync(`${rebuildDirectoryOf(path)}/next.db`, "half");
    const open = async () => {
      using allocator = await openVerified(scratch.path, (line) => lines.push(line));
      return allocator.list().length;
    };
    expect([await open(), others(), lines]).toEqual([60, [], []]);
    intoOneFile();
    fillPage(path, rootOf("lease_owner"));
    expect([await open(), others().length, lines.length]).toEqual([60, 1, 2]);
  });

  test("of a file that is another one by then is left alone", async () => {
    renameSync(path, `${path}.was`);
    await expect(rebuild()).rejects.toThrow("it cannot be opened");
    expect(others()).toEqual(["leases.db.was"]);
  });
});

test("an address of a sticky pod is remembered beyond a rebuild", async () => {
  const pod = { namespace: "shop", name: "web", uid: "u" };
  {
    using allocator = await Allocator.open(scratch.path);
    allocator.allocate(owner("first"), conf(), pod);
    allocator.release(owner("first"), "cooling");
  }
  intoOneFile();
  overwrite(path, 0, 16);
  await rebuild();
  using allocator = await Allocator.open(scratch.path);
  for (const name of ["x", "y"]) allocator.allocate(owner(name), conf());
  const { leases } = allocator.allocate(owner("next"), conf(), pod);
  expect(leases.map(({ address }) => formatIp(address.ip))).toEqual(["10.1.0.62"]);
});
