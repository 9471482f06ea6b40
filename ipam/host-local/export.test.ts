import { mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { formatIp } from "../../shared/net/ip.ts";
import { configOf, ownerOf } from "../../test/fakes/allocator-in-memory.ts";
import { filesIn, hostLocalInScratch, leasesOf } from "../../test/fakes/host-local-directory.ts";
import type { Allocator } from "../allocator.ts";
import { exportHostLocal } from "./export.ts";
import { importHostLocal } from "./import.ts";
import { takeOver } from "./take-over.ts";

const config = configOf({ ranges: [[{ subnet: "10.0.0.0/24" }], [{ subnet: "fd00::/64" }]] });
const silent = (): void => undefined;

const add = (allocator: Allocator, id: string): string =>
  allocator
    .allocate(ownerOf(id), config)
    .leases.map(({ address }) => formatIp(address.ip))
    .join(" ");

describe("an empty directory", () => {
  test("gets the addresses in use and the cursors, for this user alone", async () => {
    using there = hostLocalInScratch();
    using allocator = await there.open();
    for (const id of ["a", "b", "c", "d"]) add(allocator, id);
    allocator.release(ownerOf("b"), "cooling");
    allocator.release(ownerOf("c"), "releasing");
    const directory = `${there.dataDir}/out/net`;
    const report = await exportHostLocal(allocator, { directory, network: "net" });
    expect(report).toMatchObject({ leases: 6, written: 8, removed: 0, unreadable: [] });
    expect(filesIn(directory)).toEqual({
      "10.0.0.2": "a\r\neth0",
      "10.0.0.4": "c\r\neth0",
      "10.0.0.5": "d\r\neth0",
      "fd00::2": "a\r\neth0",
      "fd00::4": "c\r\neth0",
      "fd00::5": "d\r\neth0",
      "last_reserved_ip.0": "10.0.0.5",
      "last_reserved_ip.1": "fd00::5",
      lock: "",
    });
    for (const name of readdirSync(directory)) expect(statSync(`${directory}/${name}`).mode & 0o777).toBe(0o600);
    expect(statSync(directory).mode & 0o777).toBe(0o700);
  });

  test("gets again what has changed alone", async () => {
    using there = hostLocalInScratch();
    using allocator = await there.open();
    for (const id of ["a", "b"]) add(allocator, id);
    const options = { directory: `${there.dataDir}/out`, network: "net" };
    await exportHostLocal(allocator, options);
    const told: number[] = [];
    const again = { ...options, onProgress: ({ done }: { readonly done: number }) => void told.push(done) };
    expect(await exportHostLocal(allocator, again)).toMatchObject({ leases: 4, written: 0, removed: 0 });
    allocator.release(ownerOf("a"), "cooling");
    expect(await exportHostLocal(allocator, options)).toMatchObject({ leases: 2, written: 0, removed: 2 });
    add(allocator, "c");
    // Two addresses, and who got the last of each set.
    expect(await exportHostLocal(allocator, again)).toMatchObject({ leases: 4, written: 4, removed: 0 });
    expect(told.at(-1)).toBe(4);
  });

  test("gets Windows names on request", async () => {
    using there = hostLocalInScratch();
    using allocator = await there.open();
    add(allocator, "a");
    const directory = `${there.dataDir}/out`;
    await exportHostLocal(allocator, { directory, network: "net", windows: true });
    expect(Object.keys(filesIn(directory))).toEqual([
      "10.0.0.2",
      "fd00__2",
      "last_reserved_ip.0",
      "last_reserved_ip.1",
      "lock",
    ]);
  });
});

test("a directory with anything else in it is refused and stays as it is", async () => {
  using there = hostLocalInScratch({ "10.0.0.9": "x\r\neth0", other: "" });
  using allocator = await there.open();
  add(allocator, "a");
  const before = filesIn(there.directory);
  await expect(exportHostLocal(allocator, { directory: there.directory, network: "net" })).rejects.toThrow(
    `Cannot export network "net": "${there.directory}" holds 2 entries of something else, wanted an empty directory`,
  );
  expect(filesIn(there.directory)).toEqual({ ...before, lock: "" });
});

describe("back to where the leases came from", () => {
  test("files of who has left go, those of who has come are added, what was unreadable is left alone", async () => {
    using there = hostLocalInScratch({
      "10.0.0.4": "a\r\neth0",
      "10.0.0.5": "b\r\neth0",
      "10.0.0.6": "old",
      "10.0.0.7": "",
      "last_reserved_ip.0": "10.0.0.7",
      note: "mine",
    });
    using allocator = await there.open();
    await takeOver(allocator, "net", silent, config);
    allocator.release(ownerOf("a"), "cooling");
    expect(add(allocator, "c")).toBe("10.0.0.8 fd00::2");
    const report = await exportHostLocal(allocator, { directory: there.directory, network: "net" });
    expect(report.unreadable.map(({ file }) => file)).toEqual(["10.0.0.7", "note"]);
    expect(filesIn(there.directory)).toEqual({
      "10.0.0.5": "b\r\neth0",
      "10.0.0.6": "old",
      "10.0.0.7": "",
      "10.0.0.8": "c\r\neth0",
      "fd00::2": "c\r\neth0",
      "last_reserved_ip.0": "10.0.0.8",
      "last_reserved_ip.1": "fd00::2",
      lock: "",
      note: "mine",
    });
  });

  test("cursors that came along go back where nothing was given since", async () => {
    using there = hostLocalInScratch({
      "10.0.0.4": "a\r\neth0",
      "last_reserved_ip.0": "10.0.0.9",
      "last_reserved_ip.1": "fd00::9",
    });
    using allocator = await there.open();
    await importHostLocal(allocator, { directory: there.directory, network: "net" });
    await exportHostLocal(allocator, { directory: there.directory, network: "net" });
    expect(filesIn(there.directory)).toMatchObject({
      "last_reserved_ip.0": "10.0.0.9",
      "last_reserved_ip.1": "fd00::9",
    });
  });

  test("an export that was cut short can be run again", async () => {
    using there = hostLocalInScratch();
    using allocator = await there.open();
    for (const id of ["a", "b"]) add(allocator, id);
    const directory = `${there.dataDir}/out`;
    const stopped = new Error("stopped");
    const stop = (): void => {
      throw stopped;
    };
    await expect(exportHostLocal(allocator, { directory, network: "net", onProgress: stop })).rejects.toBe(stopped);
    expect(await exportHostLocal(allocator, { directory, network: "net" })).toMatchObject({ leases: 4 });
    expect(Object.keys(filesIn(directory))).toHaveLength(7);
  });
});

test("only what has ranges to give from settles a network that host-local never served", async () => {
  using there = hostLocalInScratch();
  rmSync(there.directory, { recursive: true });
  using allocator = await there.open();
  await takeOver(allocator, "net", silent);
  mkdirSync(there.directory);
  there.write({ "10.0.0.2": "a\r\neth0" });
  await takeOver(allocator, "other", silent, config);
  mkdirSync(`${there.dataDir}/other`);
  writeFileSync(`${there.dataDir}/other/10.0.0.3`, "b\r\neth0");
  for (const network of ["net", "other"]) await takeOver(allocator, network, silent);
  expect(leasesOf(allocator)).toEqual(["10.0.0.2 a eth0"]);
});

describe("after an export", () => {
  test("the directory counts: what host-local gave is taken over, what it took back is given up", async () => {
    using there = hostLocalInScratch();
    rmSync(there.directory, { recursive: true });
    using allocator = await there.open();
    for (const id of ["a", "b"]) add(allocator, id);
    await exportHostLocal(allocator, { directory: there.directory, network: "net" });
    rmSync(`${there.directory}/10.0.0.2`);
    there.write({ "10.0.0.3": "next\r\neth0", "10.0.0.4": "c\r\neth0" });
    const lines: string[] = [];
    await takeOver(allocator, "net", (line) => lines.push(line), config);
    expect(leasesOf(allocator)).toEqual(["10.0.0.3 next eth0", "10.0.0.4 c eth0", "fd00::2 a eth0", "fd00::3 b eth0"]);
    expect(lines[0]).toContain("2 taken over, 2 known already, 1 given up, which host-local has released");
    // Once: from now on the directory counts for nothing.
    there.write({ "10.0.0.5": "late\r\neth0" });
    await takeOver(allocator, "net", (line) => lines.push(line), config);
    expect(lines).toHaveLength(1);
  });

  test("a directory that is gone says nothing: ours stay", async () => {
    using there = hostLocalInScratch();
    using allocator = await there.open();
    add(allocator, "a");
    const directory = `${there.dataDir}/out`;
    await exportHostLocal(allocator, { directory, network: "net" });
    rmSync(directory, { recursive: true });
    await takeOver(allocator, "net", silent, config);
    expect(leasesOf(allocator)).toEqual(["10.0.0.2 a eth0", "fd00::2 a eth0"]);
    // As good as before: a directory that comes now is not looked at.
    mkdirSync(directory);
    writeFileSync(`${directory}/lock`, "");
    await takeOver(allocator, "net", silent, config);
    expect(leasesOf(allocator)).toHaveLength(2);
  });
});
