import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { beforeAll, describe, expect, test } from "vitest";
import { brokenInvariants } from "../support/invariants.ts";
import { fillPage, overwrite } from "../support/noise.ts";
import { random } from "../support/random.ts";
import { addressesOf, IpamCalls, leases, terminal } from "./ipam-calls.ts";
import { compileForWindows } from "./wine/c-program.ts";
import { describeWine } from "./wine/describe-wine.ts";
import { onDriveZ } from "./wine/prefix.ts";
import type { Program } from "./wine/program.ts";

const ranges = [[{ subnet: "10.1.0.0/24" }]];

describeWine("the allocator on Windows", (wine) => {
  describe("pipette-ipam.exe", () => {
    test.each([
      ["its own place", undefined, "C:\\ProgramData\\pipette"],
      ["a directory with blanks and umlauts", "C:\\Program Files\\Däten", "C:\\Program Files\\Däten"],
      ["slashes of the other kind", "C:/fwd/slash", "C:\\fwd\\slash"],
    ])("runs every verb on a database in %s", async (_, dataDir, place) => {
      const calls = new IpamCalls(wine.prefix, dataDir === undefined ? { ranges } : { ranges, dataDir });
      expect(await calls.add("a")).toBe("10.1.0.2");
      expect(await calls.add("a")).toBe("10.1.0.2");
      expect(await calls.add("b")).toBe("10.1.0.3");
      const prevResult = { cniVersion: "1.1.0", ips: [{ address: "10.1.0.2/24" }] };
      await calls.must("CHECK", "a", { prevResult });
      await calls.must("STATUS", "");
      await calls.must("DEL", "a");
      await calls.must("DEL", "a");
      expect((await calls.run("CHECK", "a", { prevResult })).status).toBe(1);
      await calls.must("GC", "", { "cni.dev/valid-attachments": [] });
      expect(await leases(wine.prefix, place)).toEqual(["10.1.0.2/24 cooling a", "10.1.0.3/24 cooling b"]);
      expect(brokenInvariants(wine.prefix.unixPath(`${place}\\leases.db`))).toEqual([]);
      expect(readdirSync(wine.prefix.unixPath(place)).filter((name) => !name.startsWith("leases.db"))).toEqual([]);
    });

    test.each(["relative", "\\dir", "C:", "C:dir", "NUL", "D:\\dir"])(
      "refuses the data directory %s",
      async (dataDir) => {
        const ended = await new IpamCalls(wine.prefix, { ranges, dataDir }).run("ADD", "a");
        expect(ended.status).toBe(1);
        expect(JSON.parse(ended.stdout).msg).toMatch(/^Cannot .*, wanted/);
      },
    );

    test("has commands at a terminal that tell what is in the database", async () => {
      const dataDir = "C:\\told";
      const calls = new IpamCalls(wine.prefix, { ranges, dataDir });
      for (const id of ["a", "b", "c"]) await calls.add(id);
      const at = ["--data-dir", dataDir];
      const said = async (...args: string[]): Promise<string> => {
        const ended = await terminal(wine.prefix, [...args, ...at]);
        expect(ended).toMatchObject({ status: 0, stderr: "" });
        return ended.stdout;
      };
      expect(await said("list")).toMatch(/10\.1\.0\.3\s+allocated\s+net\s+b\s+eth0/);
      expect(await said("stats")).toMatch(/net\s+10\.1\.0\.1-10\.1\.0\.254\s+253\s+3\s/);
      expect(await said("check")).toBe(`${dataDir}\\leases.db: 3 leases, in order\n`);
      expect(await said("map")).toMatch(/^net 10\.1\.0\.1-10\.1\.0\.254\n10\.1\.0\.1 +◆███·/);
      expect(await said("show", "10.1.0.4")).toMatch(/sandbox +c\n/);
      expect((await terminal(wine.prefix, ["list", "--data-dir", "C:\\none"])).status).toBe(3);
    });
  });

  describe("processes of pipette-ipam.exe at once", () => {
    test("two that are each the first in their directory make one database", async () => {
      for (let i = 0; i < 3; i++) {
        const dataDir = `C:\\first${i}\\deep`;
        const calls = new IpamCalls(wine.prefix, { ranges, dataDir });
        const given = await Promise.all([calls.add("a"), calls.add("b")]);
        expect(given.sort()).toEqual(["10.1.0.2", "10.1.0.3"]);
        expect(brokenInvariants(wine.prefix.unixPath(`${dataDir}\\leases.db`))).toEqual([]);
      }
    });

    test("eight give no address twice, also where some leave meanwhile, and the same sandbox gets the same", async () => {
      const dataDir = "C:\\eight";
      // No more addresses than attachments at a time: one that was left has to be given again.
      const calls = new IpamCalls(wine.prefix, {
        ranges: [[{ subnet: "10.1.0.0/27", rangeEnd: "10.1.0.13" }]],
        dataDir,
      });
      for (let round = 0; round < 2; round++) {
        const ids = Array.from({ length: 8 }, (_, i) => `r${round}p${i}`);
        const given = await Promise.all([...ids.map((id) => calls.add(id)), calls.add(`r${round}p0`)]);
        expect(new Set(given).size).toBe(8);
        expect(given[8]).toBe(given[0]);
        await Promise.all(ids.map((id) => calls.must("DEL", id)));
      }
      expect(brokenInvariants(wine.prefix.unixPath(`${dataDir}\\leases.db`))).toEqual([]);
    });

    test("those that are killed at any moment leave a sound database, and the next one its address", async () => {
      const dataDir = "C:\\killed";
      const calls = new IpamCalls(wine.prefix, { ranges, dataDir });
      const next = random(20_261_121);
      const ids = Array.from({ length: 16 }, (_, i) => `k${i}`);
      let killed = 0;
      for (let i = 0; i < ids.length; i += 4) {
        const running: Program[] = ids.slice(i, i + 4).map((id) => calls.start("ADD", id));
        for (const program of running) {
          await Bun.sleep(next(90));
          if (!program.hasEnded) killed += 1;
          program.kill("SIGKILL");
        }
        await Promise.all(running.map((program) => program.ended));
      }
      expect(killed).toBeGreaterThan(4);
      // Who was killed while it made the database has left an empty one; whoever comes next makes the rest.
      await calls.add("between");
      expect(brokenInvariants(wine.prefix.unixPath(`${dataDir}\\leases.db`))).toEqual([]);
      const given = [];
      for (let i = 0; i < ids.length; i += 8) {
        given.push(...(await Promise.all(ids.slice(i, i + 8).map((id) => calls.add(id)))));
      }
      expect(new Set(given).size).toBe(ids.length);
      expect(await leases(wine.prefix, dataDir)).toHaveLength(ids.length + 1);
      expect(brokenInvariants(wine.prefix.unixPath(`${dataDir}\\leases.db`))).toEqual([]);
    });
  });

  /** Moves everything into the database itself, where it can be damaged. */
  function emptyLog(path: string): void {
    const db = new DatabaseSync(path);
    db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    db.close();
  }

  describe("a damaged database on Windows", () => {
    const holdLock = (): string => wine.prefix.unixPath("C:\\hold-lock.exe");
    beforeAll(() => compileForWindows("stubs/hold-lock.c", holdLock()));

    const damages: readonly [string, (path: string) => void][] = [
      ["its header overwritten", (path) => overwrite(path, 0, 100)],
      ["its last page overwritten", (path) => fillPage(path, 3)],
    ];

    test.each(damages)(
      "with %s is set aside once by four processes, and no standing address is given again",
      async (name, damage) => {
        const dataDir = `C:\\${name.replaceAll(" ", "-")}`;
        const calls = new IpamCalls(wine.prefix, { ranges, dataDir });
        const ids = ["a", "b", "c", "d"];
        const before = new Map<string, string>();
        for (const id of ids) before.set(id, await calls.add(id));
        const path = wine.prefix.unixPath(`${dataDir}\\leases.db`);
        emptyLog(path);
        damage(path);
        const all = await Promise.all([...ids, "new"].map((id) => calls.run("ADD", id)));
        const given = all.map((ended) => (ended.status === 0 ? addressesOf(ended) : JSON.parse(ended.stdout).msg));
        expect(given.slice(0, 4)).toEqual([...before.values()]);
        expect([...before.values()]).not.toContain(given[4]);
        const beside = readdirSync(wine.prefix.unixPath(dataDir)).filter((file) => /damaged-[^-]*$/.test(file));
        expect(beside).toHaveLength(1);
        expect(brokenInvariants(wine.prefix.unixPath(`${dataDir}\\leases.db`))).toEqual([]);
      },
    );

    test("is not rebuilt while another process has it open", async () => {
      const dataDir = "C:\\locked";
      const calls = new IpamCalls(wine.prefix, { ranges, dataDir });
      const address = await calls.add("a");
      const path = `${dataDir}\\leases.db`;
      emptyLog(wine.prefix.unixPath(path));
      overwrite(wine.prefix.unixPath(path), 0, 100);
      // What every process has locked for as long as it has the database open.
      const args = [path, "0x40000002", "510", "shared"];
      await using holder = wine.prefix.start(holdLock(), { args, inputStaysOpen: true });
      await holder.saying("locked");
      const waiting = calls.start("ADD", "a");
      await Bun.sleep(1_500);
      expect(waiting.hasEnded).toBe(false);
      expect(readdirSync(wine.prefix.unixPath(dataDir)).some((name) => name.includes("damaged"))).toBe(false);
      holder.endInput();
      expect(addressesOf(await waiting.ended)).toBe(address);
    });
  });

  describe("a directory of host-local on Windows", () => {
    const dataDir = "C:\\cni\\networks";
    const holdLock = (): string => wine.prefix.unixPath("C:\\hold-lock.exe");
    beforeAll(async () => {
      await compileForWindows("stubs/hold-lock.c", holdLock());
      const directory = join(wine.prefix.unixPath(dataDir), "net");
      mkdirSync(directory, { recursive: true });
      const files = {
        "10.1.0.2": "a\r\neth0",
        "10.1.0.9": "b\r\neth0",
        fd81__2: "a\r\neth0",
        "last_reserved_ip.0": "10.1.0.9",
      };
      for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text);
      writeFileSync(join(directory, "lock"), "");
    });

    test("is taken over once, after whoever has its lock, and its leases are ours then", async () => {
      const calls = new IpamCalls(wine.prefix, { ranges: [...ranges, [{ subnet: "fd81::/64" }]], dataDir });
      await using holder = wine.prefix.start(holdLock(), {
        args: [`${dataDir}\\net\\lock`, "0", "1", "exclusive"],
        inputStaysOpen: true,
      });
      await holder.saying("locked");
      const waiting = ["c", "d", "e"].map((id) => calls.start("ADD", id));
      await Bun.sleep(1_500);
      expect(waiting.map((program) => program.hasEnded)).toEqual([false, false, false]);
      holder.endInput();
      const all = await Promise.all(waiting.map((program) => program.ended));
      expect(all.map(addressesOf).sort()).toEqual(["10.1.0.10 fd81::3", "10.1.0.11 fd81::4", "10.1.0.12 fd81::5"]);
      expect(all.filter(({ stderr }) => stderr.includes("taken over"))).toHaveLength(1);
      expect(await calls.add("a")).toBe("10.1.0.2 fd81::2");
      expect(await calls.add("b")).toBe("10.1.0.9");
    });

    test("is written by the export as host-local on Windows writes it", async () => {
      const out = wine.prefix.unixPath("C:\\back");
      const args = ["export", "--data-dir", dataDir, "--network", "net", "--to", onDriveZ(out)];
      expect(await terminal(wine.prefix, args)).toMatchObject({ status: 0 });
      expect(readdirSync(out)).toEqual(expect.arrayContaining(["10.1.0.2", "fd81__2", "last_reserved_ip.0"]));
    });
  });
});
