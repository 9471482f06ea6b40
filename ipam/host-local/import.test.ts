import { closeSync, mkdirSync, openSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { formatCidr, formatIp } from "../../shared/net/ip.ts";
import { openLibc } from "../../shared/server/libc.linux.ts";
import { configOf, ownerOf } from "../../test/fakes/allocator-in-memory.ts";
import { filesIn, hostLocalInScratch, leasesOf } from "../../test/fakes/host-local-directory.ts";
import { MemoryStore } from "../../test/fakes/memory-store.ts";
import { describeWith } from "../../test/support/requires.ts";
import { Allocator } from "../allocator.ts";
import { maxFileBytes, readDirectory } from "./directory.ts";
import { describeImport, importHostLocal, type Progress } from "./import.ts";

const config = configOf({ ranges: [[{ subnet: "10.0.0.0/24" }], [{ subnet: "fd00::/64" }]] });

describe("taking over", () => {
  test("addresses, holders, age, subnets and cursors come along; the directory stays as it was", async () => {
    using there = hostLocalInScratch({
      "10.0.0.4": "a\r\neth0",
      "fd00::4": "a\r\neth0",
      "10.0.0.9": "b\r\nnet1\n",
      "172.16.0.1": "c\r\neth0",
      "last_reserved_ip.0": "10.0.0.9",
      "last_reserved_ip.1": "fd00::7",
      lock: "",
    });
    const given = new Date(Date.now() - 60_000);
    utimesSync(`${there.directory}/10.0.0.4`, given, given);
    const before = filesIn(there.directory);
    using allocator = await there.open();
    const report = await importHostLocal(allocator, { directory: there.directory, network: "net", config });
    expect(report).toMatchObject({ taken: 4, already: 0, released: 0, dropped: 0, clashes: [], unreadable: [] });
    expect(leasesOf(allocator)).toEqual(["10.0.0.4 a eth0", "10.0.0.9 b net1", "172.16.0.1 c eth0", "fd00::4 a eth0"]);
    const [first, , outside, last] = allocator.list();
    expect(first).toMatchObject({ rangeSet: 0, allocatedAtMs: given.getTime() });
    expect(formatCidr(first!.address)).toBe("10.0.0.4/24");
    expect(formatIp(last!.gateway!)).toBe("fd00::1");
    expect(last!.rangeSet).toBe(1);
    expect(formatCidr(outside!.address)).toBe("172.16.0.1/32");
    expect(filesIn(there.directory)).toEqual(before);

    const next = allocator.allocate(ownerOf("d"), config).leases.map(({ address }) => formatIp(address.ip));
    expect(next).toEqual(["10.0.0.10", "fd00::8"]);
  });

  test("once taken, what others hold since is theirs, and what is free stays so", async () => {
    using there = hostLocalInScratch({ "10.0.0.4": "a\r\neth0", "10.0.0.5": "b\r\neth0", "10.0.0.6": "c\r\neth0" });
    using allocator = await there.open();
    const options = { directory: there.directory, network: "net" };
    await importHostLocal(allocator, options);
    for (const id of ["a", "b"]) allocator.release(ownerOf(id), "cooling");
    const wanted = configOf({ subnet: "10.0.0.0/24" }, { runtimeConfig: { ips: ["10.0.0.4"] } });
    allocator.allocate(ownerOf("other"), wanted);
    // Of which nobody here has ever heard.
    writeFileSync(`${there.directory}/10.0.0.9`, "late\r\neth0");
    const again = await importHostLocal(allocator, options);
    expect(again).toMatchObject({
      taken: 0,
      already: 1,
      released: 2,
      dropped: 0,
      clashes: [{ ours: { owner: ownerOf("other") } }],
    });
    expect(allocator.find(ownerOf("other"))).toHaveLength(1);
  });

  test("files with Windows names are the same", async () => {
    using there = hostLocalInScratch({
      fd00__4: "a\r\neth0",
      "10.0.0.4": "a\r\neth0",
      "last_reserved_ip.1": "fd00::7",
    });
    using allocator = await there.open();
    await importHostLocal(allocator, { directory: there.directory, network: "net" });
    expect(leasesOf(allocator)).toEqual(["10.0.0.4 a eth0", "fd00::4 a eth0"]);
    expect(allocator.release(ownerOf("a"), "cooling")).toHaveLength(2);
  });

  test("leases older than this boot are of another one", async () => {
    using there = hostLocalInScratch({ "10.0.0.4": "a\r\neth0", "10.0.0.5": "b\r\neth0" });
    utimesSync(`${there.directory}/10.0.0.4`, new Date(2000, 1), new Date(2000, 1));
    using allocator = await there.open();
    await importHostLocal(allocator, { directory: there.directory, network: "net" });
    expect(allocator.list().map((lease) => lease.bootId)).toEqual(["earlier", allocator.bootId]);
  });

  test("without ranges a lease gets its subnet from its owner's next ADD", async () => {
    using there = hostLocalInScratch({ "10.0.0.4": "a\r\neth0" });
    using allocator = await there.open();
    await importHostLocal(allocator, { directory: there.directory, network: "net" });
    expect(formatCidr(allocator.list()[0]!.address)).toBe("10.0.0.4/32");
    const { leases, created } = allocator.allocate(ownerOf("a"), config);
    expect(created).toBe(false);
    expect(leases.map((lease) => `${formatCidr(lease.address)} ${formatIp(lease.gateway!)}`)).toEqual([
      "10.0.0.4/24 10.0.0.1",
    ]);
    expect(allocator.list()).toEqual(leases);
  });
});

describe("files without an interface's name", () => {
  test("belong to any interface of their container, unless one has its own", async () => {
    using there = hostLocalInScratch({ "10.0.0.4": "a", "10.0.0.5": "b", "10.0.0.6": "b\r\nnet1" });
    using allocator = await there.open();
    await importHostLocal(allocator, { directory: there.directory, network: "net" });
    expect(allocator.find(ownerOf("a", "whatever"))).toHaveLength(1);
    expect(allocator.release(ownerOf("b", "net1"), "cooling").map((lease) => formatIp(lease.address.ip))).toEqual([
      "10.0.0.6",
    ]);
    expect(allocator.release(ownerOf("b", "eth0"), "cooling").map((lease) => formatIp(lease.address.ip))).toEqual([
      "10.0.0.5",
    ]);
    expect(leasesOf(allocator)).toContain("10.0.0.4 a any");
  });

  test("are kept by a GC that lists any interface of their container", async () => {
    using there = hostLocalInScratch({ "10.0.0.4": "a", "10.0.0.5": "b" });
    using allocator = await there.open();
    await importHostLocal(allocator, { directory: there.directory, network: "net" });
    const given = allocator.retain("net", [{ containerId: "a", ifname: "eth0" }], "cooling");
    expect(given.map((owner) => owner.sandboxId)).toEqual(["b"]);
  });
});

test("peers 4: what cannot be understood is reported with its reason, and an address among it stays out of use", async () => {
  using there = hostLocalInScratch({
    "10.0.0.2": "",
    "10.0.0.3": "a\neth0",
    "10.0.0.4": "x".repeat(maxFileBytes + 1),
    "10.0.0.5": "a\r\neth0",
    "fd00::5": "b\r\neth0",
    fd00__5: "c\r\neth0",
    "10.0.0": "a\r\neth0",
    "last_reserved_ip.0": "10.0.0.5\n",
  });
  mkdirSync(`${there.directory}/10.0.0.6`);
  symlinkSync(`${there.directory}/10.0.0.5`, `${there.directory}/10.0.0.7`);
  symlinkSync("/nowhere", `${there.directory}/10.0.0.8`);
  using allocator = await there.open();
  const report = await importHostLocal(allocator, { directory: there.directory, network: "net", config });
  const reasons = Object.fromEntries(report.unreadable.map(({ file, reason }) => [file, reason]));
  const kept = "; its address stays out of use";
  expect(reasons).toEqual({
    "10.0.0.2": `it is empty, wanted a container id and an interface name${kept}`,
    "10.0.0.3": `its lines end with LF, wanted CR LF; host-local does not know such a file again either${kept}`,
    "10.0.0.4": `it is longer than ${maxFileBytes} bytes, wanted a container id and an interface name${kept}`,
    "10.0.0.6": `it is a directory, wanted a file${kept}`,
    "10.0.0.7": `it is a symbolic link, wanted a file${kept}`,
    "10.0.0.8": `it is a symbolic link, wanted a file${kept}`,
    "10.0.0": 'its name is no address, wanted one, or "last_reserved_ip.N"',
    fd00__5: 'its name is the same address as that of "fd00::5"',
    "last_reserved_ip.0": "its content is no address, wanted the one given out last and nothing else",
  });
  expect(describeImport(report)).toContain(
    `"${there.directory}/10.0.0.2" was not understood: it is empty, wanted a container id and an interface name${kept}`,
  );
  expect(leasesOf(allocator)).toContain("10.0.0.2 unreadable-10.0.0.2 any");
  // The first address that no entry of the directory has.
  const [v4] = allocator.allocate(ownerOf("new"), config).leases;
  expect(formatIp(v4!.address.ip)).toBe("10.0.0.9");
});

describe("again", () => {
  test("changes nothing, and brings nothing back that was released since", async () => {
    using there = hostLocalInScratch({ "10.0.0.4": "a\r\neth0", "10.0.0.5": "b\r\neth0" });
    using allocator = await there.open();
    const options = { directory: there.directory, network: "net", config };
    await importHostLocal(allocator, options);
    const leases = allocator.list();
    expect(await importHostLocal(allocator, options)).toMatchObject({ taken: 0, already: 2 });
    expect(allocator.list()).toEqual(leases);

    allocator.release(ownerOf("a"), "cooling");
    expect(await importHostLocal(allocator, options)).toMatchObject({ taken: 0, already: 1, released: 1 });
    expect(leasesOf(allocator)).toEqual(["10.0.0.4 a eth0 cooling", "10.0.0.5 b eth0"]);
    // On demand, for a directory that host-local went on with.
    there.write({ "10.0.0.6": "c\r\neth0" });
    expect(await importHostLocal(allocator, { ...options, again: true })).toMatchObject({ taken: 2, already: 1 });
    expect(leasesOf(allocator)).toEqual(["10.0.0.4 a eth0", "10.0.0.5 b eth0", "10.0.0.6 c eth0"]);
  });

  test("a lease of ours stays where host-local has given its address to another", async () => {
    using there = hostLocalInScratch({ "10.0.0.2": "theirs\r\neth0", "10.0.0.3": "b\r\neth0" });
    using allocator = await there.open();
    allocator.allocate(ownerOf("ours"), config);
    const report = await importHostLocal(allocator, { directory: there.directory, network: "net", config });
    expect(report).toMatchObject({ taken: 1, clashes: [{ theirs: { containerId: "theirs", ifname: "eth0" } }] });
    expect(leasesOf(allocator)).toContain("10.0.0.2 ours eth0");
    expect(describeImport(report).join("\n")).toContain(
      '"10.0.0.2" of "theirs" (eth0) was not taken over: it is held by "ours" (eth0), allocated',
    );
  });
});

test("a network of very many leases costs one look at the store, and its progress can be followed", async () => {
  const number = 3000;
  const files = Array.from({ length: number }, (_, i) => [`10.1.${i >> 8}.${i & 255}`, `c${i}\r\neth0`]);
  using there = hostLocalInScratch(Object.fromEntries(files));
  class CountingStore extends MemoryStore {
    looks = 0;
    override select(query: Parameters<MemoryStore["select"]>[0]): ReturnType<MemoryStore["select"]> {
      this.looks++;
      return super.select(query);
    }
  }
  using store = new CountingStore();
  using allocator = new Allocator(store, { bootId: "boot", now: Date.now });
  const seen: Progress[] = [];
  const onProgress = (progress: Progress): void => void seen.push(progress);
  await importHostLocal(allocator, { directory: there.directory, network: "net", onProgress });
  expect(store.looks).toBe(1);
  for (const step of ["reading", "keeping"] as const) {
    const done = seen.filter((progress) => progress.step === step).map((progress) => progress.done);
    expect(done.length).toBeGreaterThan(2);
    expect(done).toEqual(done.toSorted((a, b) => a - b));
    expect(done.at(-1)).toBe(number);
  }
});

test("host-local's lock is held from the first look to the end", async () => {
  using there = hostLocalInScratch({ "10.0.0.2": "a\r\neth0", lock: "" });
  using allocator = await there.open();
  const seen: boolean[] = [];
  const fd = openSync(`${there.directory}/lock`, "r");
  const onProgress = (): void => void seen.push(openLibc().lockFile(fd));
  await importHostLocal(allocator, { directory: there.directory, network: "net", onProgress });
  expect(new Set(seen)).toEqual(new Set([false]));
  onProgress();
  expect(seen.at(-1)).toBe(true);
  closeSync(fd);
});

describeWith("entries that are no files", ["linux", "root"], () => {
  test("such as a pipe and a device are named, and nothing is waited for", async () => {
    using there = hostLocalInScratch({});
    const made = [
      ["10.0.0.2", "p"],
      ["10.0.0.3", "c", "1", "3"],
    ].map(([name, ...what]) => Bun.spawnSync(["mknod", `${there.directory}/${name}`, ...what]).exitCode);
    expect(made).toEqual([0, 0]);
    const { unreadable } = await readDirectory(there.directory, () => undefined);
    expect(unreadable.map(({ reason }) => reason.split(";")[0])).toEqual([
      "it is a pipe, wanted a file",
      "it is a device, wanted a file",
    ]);
  });
});

test("a lock that is a link is refused, and nothing is taken", async () => {
  using there = hostLocalInScratch({ "10.0.0.2": "a\r\neth0" });
  symlinkSync(`${there.dataDir}/elsewhere`, `${there.directory}/lock`);
  using allocator = await there.open();
  await expect(importHostLocal(allocator, { directory: there.directory, network: "net" })).rejects.toThrow(
    `Cannot lock host-local's directory: "${there.directory}/lock" cannot be opened`,
  );
  expect(allocator.list()).toEqual([]);
});

test("names of files that would command a terminal are told harmlessly", async () => {
  using there = hostLocalInScratch({ "a\u001b[2J\n\u202eb": "x" });
  using allocator = await there.open();
  const report = await importHostLocal(allocator, { directory: there.directory, network: "net" });
  expect(report.unreadable).toHaveLength(1);
  for (const line of describeImport(report)) expect(line).toMatch(/^[\x20-\x7e]*$/);
});
