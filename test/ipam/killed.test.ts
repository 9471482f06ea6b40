import { cpSync, existsSync, readdirSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { beforeAll, expect, test } from "vitest";
import { openVerified } from "../../ipam/mod.ts";
import { leasesIn } from "../conformance/leases.ts";
import { compileExecutables, scratch } from "../conformance/plugin.ts";
import { callPlugin } from "../support/cni-call.ts";
import { brokenInvariants } from "../support/invariants.ts";
import { fillPage } from "../support/noise.ts";
import { random } from "../support/random.ts";
import { describeWith } from "../support/requires.ts";
import { seed } from "../support/seed.ts";
import { databaseOf } from "./earlier-schemas.ts";
import { ipamCall, mustSucceed } from "./ipam-call.ts";
import { callsOf, type KillPoint, killAt } from "./kill-points.ts";

/** The calls that change what outlives a process: each of them is a point in every run, but for rebuilding, which makes very many. */
const changing = new Set("pwrite64 write fsync fdatasync ftruncate fallocate unlink rename link mkdir".split(" "));
/** Of the others, so many in a run of all tests; with PIPETTE_KILL=all every one. */
const sampled = process.env["PIPETTE_KILL"] === "all" ? Number.POSITIVE_INFINITY : 12;

const confIn = (dataDir: string, more: object = {}) => ({
  cniVersion: "1.1.0",
  name: "pt-kill",
  ipam: { type: "pipette-ipam", dataDir, ranges: [[{ subnet: "10.76.0.0/24" }], [{ subnet: "fd76::/64" }]] },
  ...more,
});

/** A call that is killed: what it finds, what it is, and how many addresses `c1` has once it has come to its end. */
interface Scene {
  readonly name: string;
  prepare(dataDir: string): Promise<void>;
  readonly verb: "ADD" | "DEL" | "GC";
  readonly conf?: object;
  readonly held: 0 | 2;
  /** What it finds is damaged, and what a killed call leaves may still be. */
  readonly damaged?: true;
}

const add = (id: string, dataDir: string) => mustSucceed(ipamCall("ADD", id, confIn(dataDir)));
const keepNone = { "cni.dev/valid-attachments": [] };

/** So many changes that the next process to end moves the log into the database; the reader keeps this one from it. */
async function withLongLog(dataDir: string): Promise<void> {
  await add("c0", dataDir);
  const reader = new DatabaseSync(`${dataDir}/leases.db`);
  reader.exec("BEGIN; SELECT count(*) FROM lease");
  const writer = new DatabaseSync(`${dataDir}/leases.db`);
  for (let i = 0; i < 70; i++) writer.exec(`INSERT OR REPLACE INTO mark VALUES ('test', '${i}')`);
  cpSync(dataDir, `${dataDir}.copy`, { recursive: true });
  for (const db of [writer, reader]) db.close();
  cpSync(`${dataDir}.copy`, dataDir, { recursive: true });
}

/** The index of owners is gone: the first look-up meets it, and everything can be read all the same. */
async function withDamage(dataDir: string): Promise<void> {
  await add("c0", dataDir);
  const db = new DatabaseSync(`${dataDir}/leases.db`);
  db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  const index = db.prepare("SELECT rootpage FROM sqlite_schema WHERE name = 'lease_owner'").get();
  db.close();
  fillPage(`${dataDir}/leases.db`, Number(index?.["rootpage"]));
}

const scenes: readonly Scene[] = [
  { name: "peers 4: ADD that makes the database", prepare: async () => undefined, verb: "ADD", held: 2 },
  { name: "peers 4: ADD", prepare: async (dir) => void (await add("c0", dir)), verb: "ADD", held: 2 },
  { name: "peers 4: ADD after which the log is moved", prepare: withLongLog, verb: "ADD", held: 2 },
  {
    name: "peers 4: ADD that brings an earlier schema forward",
    prepare: async (dir) => databaseOf(1, dir),
    verb: "ADD",
    held: 2,
  },
  { name: "peers 7: DEL", prepare: async (dir) => void (await add("c1", dir)), verb: "DEL", held: 0 },
  { name: "peers 7: ADD that rebuilds a damaged database", prepare: withDamage, verb: "ADD", held: 2, damaged: true },
  { name: "peers 7: GC", prepare: async (dir) => void (await add("c1", dir)), verb: "GC", conf: keepNone, held: 0 },
];

describeWith("pipette-ipam killed in the middle", ["linux", "strace"], () => {
  beforeAll(compileExecutables);

  for (const scene of scenes) {
    test(`${scene.name}, seed ${seed}`, { timeout: 600_000 }, async () => {
      using data = scratch();
      const template = `${data.path}/template`;
      await scene.prepare(template);
      let runs = 0;
      const fresh = (): string => {
        const dir = `${data.path}/run${runs++}`;
        if (existsSync(template)) cpSync(template, dir, { recursive: true });
        return dir;
      };
      const callIn = (dir: string) => ipamCall(scene.verb, "c1", confIn(dir, scene.conf));
      const heldIn = async (dir: string) =>
        (await leasesIn(dir)).filter(({ containerId, state }) => containerId === "c1" && state === "allocated").length;

      const points = choose(await callsOf(callIn(fresh())), scene.damaged === true ? 25 : Number.POSITIVE_INFINITY);
      let killed = 0;
      for (const point of points) {
        const dir = fresh();
        const at = `killed at ${point.name} ${point.nth}, seed ${seed}`;
        if (await killAt(callIn(dir), point)) killed++;
        // A database that was about to be made is made by this look, as the next process would.
        const look = existsSync(dir) && scene.damaged !== true;
        if (look) expect([0, 2], at).toContain(await heldIn(dir));
        if (look) expect(brokenInvariants(`${dir}/leases.db`), at).toEqual([]);
        await callPlugin(callIn(dir));
        if (scene.damaged === true) (await openVerified(dir, () => undefined))[Symbol.dispose]();
        expect(setAsideIn(dir), at).toHaveLength(scene.damaged === true ? 1 : 0);
        expect(await heldIn(dir), at).toBe(scene.held);
        expect(brokenInvariants(`${dir}/leases.db`), at).toEqual([]);
      }
      // How often threads wait for each other differs from run to run: a few points may lie behind the end.
      expect(killed).toBeGreaterThan(0.9 * points.length);
      if (sampled > points.length) console.log(`${scene.name}: killed at ${killed} of ${points.length} points`);
    });
  }
});

/** Each once, and nothing else that is not the database's. */
function setAsideIn(dir: string): readonly string[] {
  const others = readdirSync(dir).filter((name) => !/^leases\.db(-wal|-shm)?$/.test(name));
  const aside = others.filter((name) => /^leases\.db\.damaged-[^-]*$/.test(name));
  expect(others.filter((name) => !aside.some((main) => name.startsWith(main)))).toEqual([]);
  return aside;
}

function choose(calls: readonly string[], maxChanging: number): readonly KillPoint[] {
  const counts = new Map<string, number>();
  const points = calls.map((name) => {
    const nth = (counts.get(name) ?? 0) + 1;
    counts.set(name, nth);
    return { name, nth };
  });
  const pick = random(seed);
  const some = (from: KillPoint[], most: number): readonly KillPoint[] => {
    while (from.length > most) from.splice(pick(from.length), 1);
    return from;
  };
  const others = points.filter(({ name }) => !changing.has(name));
  const changes = points.filter(({ name }) => changing.has(name));
  const chosen = new Set([...some(changes, Math.max(maxChanging, sampled)), ...some(others, sampled)]);
  return points.filter((point) => chosen.has(point));
}
