import { DatabaseSync } from "node:sqlite";
import { Allocator } from "../../ipam/mod.ts";
import { keyOf, keyOfNumber, numberOf } from "../../ipam/store/address-key.ts";
import type { Cidr } from "../../shared/net/ip.ts";
import { gatewayIn } from "../../shared/net/ip.ts";
import { random } from "./random.ts";

/** How full a pool is and how its leases lie in it. */
export interface Filling {
  readonly network: string;
  readonly subnet: Cidr;
  readonly leases: number;
  /**
   * `packed`: side by side from the subnet's third address on. `scattered`: anywhere in the subnet, at random; where
   * that is larger than 2^32 addresses, each alone in its part of it.
   */
  readonly shape: "packed" | "scattered";
  /** Allocated where absent, else cooling since then, each a millisecond longer than the one below it. */
  readonly coolingSinceMs?: number;
}

const largestSampled = 2 ** 32;

/**
 * Makes `<dataDir>/leases.db` with so many standing leases, by SQL in bulk: a million takes some seconds. They are what
 * a runtime leaves: names of 64 hexadecimal digits, a pod each. Sandbox `standingId(i)` has the i-th address.
 */
export async function fillStore(dataDir: string, filling: Filling): Promise<void> {
  (await Allocator.open(dataDir))[Symbol.dispose]();
  const db = new DatabaseSync(`${dataDir}/leases.db`);
  db.exec("PRAGMA synchronous = OFF; PRAGMA cache_size = -1000000");
  // An index that is made at the end is sorted once, and lies as densely as one can.
  const indexes = db.prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL").all();
  db.exec(`BEGIN; ${indexes.map(({ name }) => `DROP INDEX ${name};`).join(" ")}`);
  const offsets = filling.shape === "packed" ? packed(filling.leases) : scattered(filling.leases, filling.subnet);
  insertLeases(db, filling, offsets);
  db.prepare("INSERT INTO mark VALUES ('generation', ?)").run(String(filling.leases));
  db.exec(`${indexes.map(({ sql }) => `${sql};`).join(" ")} COMMIT; PRAGMA wal_checkpoint(TRUNCATE)`);
  db.close();
}

/** Odd, so that all products differ. */
const spreadingFactor = 0x9e3779b1;

export const standingId = (index: number): string =>
  (Math.imul(index, spreadingFactor) >>> 0).toString(16).padStart(8, "0").repeat(8);

function insertLeases(db: DatabaseSync, { network, subnet, coolingSinceMs }: Filling, offsets: Iterable<bigint>): void {
  const addLease = db.prepare(`INSERT INTO lease VALUES (${Array(16).fill("?").join(", ")})`);
  const addRun = db.prepare("INSERT INTO taken VALUES (?, ?, ?)");
  const gateway = gatewayIn(subnet);
  const base = numberOf(gateway) + 1n;
  const [prefix, gatewayKey] = [subnet.prefix, keyOf(gateway)];
  const [uid, boot] = ["3f2c1a90-6a7b-4c11-9e55-0d2f7a6b8c44", "7d9f4c0e-58c4-4c39-9f0e-0b6d2f6f2d11"];
  const state = coolingSinceMs === undefined ? "allocated" : "cooling";
  let index = 0;
  let run: { first: bigint; last: bigint } | undefined;
  const endRun = (): void => {
    if (run !== undefined) addRun.run(network, keyOfNumber(run.first), keyOfNumber(run.last));
  };
  for (const offset of offsets) {
    const number = base + offset;
    const owner = [standingId(index), "eth0", state, "default", `standing-${index}`, uid];
    const left = coolingSinceMs === undefined ? null : coolingSinceMs - index;
    const times = [++index, 1_700_000_000_000 + index, left];
    addLease.run(network, keyOfNumber(number), prefix, gatewayKey, 0, ...owner, boot, ...times, 0);
    if (run !== undefined && run.last + 1n === number) {
      run.last = number;
      continue;
    }
    endRun();
    run = { first: number, last: number };
  }
  endRun();
}

function* packed(count: number): Generator<bigint> {
  for (let i = 0; i < count; i++) yield BigInt(i);
}

/** In order. Every choice of so many addresses is as likely as any other, up to `largestSampled` addresses. */
function* scattered(count: number, { ip, prefix }: Cidr): Generator<bigint> {
  const next = random(1);
  // Network address, gateway and broadcast address stay free.
  const size = 2 ** ((ip.family === 4 ? 32 : 128) - prefix) - 3;
  if (size > largestSampled) {
    const part = BigInt(Math.floor(size / count));
    for (let i = 0; i < count; i++) yield BigInt(i) * part + (BigInt(next(0xffff_ffff)) % part);
    return;
  }
  let left = count;
  for (let i = 0; left > 0; i++) {
    if (next(size - i) >= left) continue;
    left--;
    yield BigInt(i);
  }
}
