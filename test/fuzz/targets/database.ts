import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Allocator } from "../../../ipam/allocator.ts";
import { parseIpamConfig } from "../../../ipam/config/ipam-config.ts";
import { openVerified } from "../../../ipam/recovery/open-verified.ts";
import { repairing } from "../../../ipam/recovery/repair.ts";
import { formatIp } from "../../../shared/net/ip.ts";
import { Fields } from "../../../shared/schema/json-fields.ts";
import { ownerOf } from "../../fakes/allocator-in-memory.ts";
import type { Opened, Target } from "../engine/target.ts";
import { requireCniError, requireHarmless } from "./words.ts";

const conf = new Fields({ ipam: { ranges: [[{ subnet: "10.1.0.0/26" }]], cooldownMs: 0 } });
const config = parseIpamConfig({ conf, network: "net", version: "1.0.0", args: "" });

interface Files {
  readonly database: Uint8Array;
  readonly log: Uint8Array;
}

/** A database as a killed process leaves it: forty leases, some given up, the last of them in the log only. */
async function filled(directory: string): Promise<Files> {
  const allocator = await Allocator.open(directory);
  for (let i = 0; i < 40; i++)
    allocator.allocate(ownerOf(`pod-${i}`), config, { name: `web-${i}`, namespace: "a", uid: "" });
  for (let i = 0; i < 40; i += 3) allocator.release(ownerOf(`pod-${i}`), "cooling");
  const read = (name: string): Uint8Array => new Uint8Array(readFileSync(join(directory, name)));
  const files = { database: read("leases.db"), log: read("leases.db-wal") };
  allocator[Symbol.dispose]();
  return files;
}

/** Six bytes of damage each: which file and how, where, with what. */
function damaged({ database, log }: Files, input: Uint8Array): Files {
  let files: Files = { database: database.slice(), log: log.slice() };
  const view = new DataView(input.buffer, input.byteOffset, input.length);
  for (let at = 0; at + 6 <= input.length && at < 6 * 64; at += 6) {
    const how = view.getUint8(at);
    const key = how & 1 ? "log" : "database";
    const bytes = files[key];
    const place = bytes.length === 0 ? 0 : view.getUint32(at + 1) % bytes.length;
    const value = view.getUint8(at + 5);
    if ((how & 0x0e) === 0x0e) files = { ...files, [key]: bytes.subarray(0, place) };
    else if ((how & 0x0e) === 0x0c) bytes.fill(value, place, place + 4096);
    else if (bytes.length > 0) bytes[place] = value;
  }
  return files;
}

/** No address twice, and every owner finds its own. */
function requireSense(allocator: Allocator): void {
  const leases = allocator.list("net");
  const addresses = leases.map(({ address }) => formatIp(address.ip));
  if (new Set(addresses).size !== addresses.length) throw new Error("Two leases have one address");
}

/** As a plugin has it: what damage it meets is mended, and then it serves. */
async function use(directory: string): Promise<void> {
  await repairing(
    () => directory,
    (line) => requireHarmless(line, "a line about the repairing"),
    async () => {
      using allocator = await Allocator.open(directory);
      allocator.find(ownerOf("pod-1"));
      allocator.allocate(ownerOf("pod-1"), config);
      allocator.allocate(ownerOf("new"), config);
      allocator.release(ownerOf("pod-2"), "cooling");
      allocator.usage("net", config);
      requireSense(allocator);
    },
  );
}

async function refusable(run: () => Promise<void>): Promise<void> {
  try {
    await run();
  } catch (caught) {
    requireCniError(caught);
  }
}

async function openDatabases(): Promise<Opened> {
  const root = mkdtempSync(join(tmpdir(), "pipette-fuzz-database-"));
  mkdirSync(join(root, "whole"));
  const whole = await filled(join(root, "whole"));
  const directory = join(root, "data");
  return {
    run: async (input) => {
      rmSync(directory, { recursive: true, force: true });
      mkdirSync(directory, { mode: 0o700 });
      const files = damaged(whole, input);
      writeFileSync(join(directory, "leases.db"), files.database, { mode: 0o600 });
      if (files.log.length > 0) writeFileSync(join(directory, "leases.db-wal"), files.log, { mode: 0o600 });
      await refusable(() => use(directory));
      // As an agent has it: every page is looked at first, and then nothing may be wrong any more.
      await refusable(async () => {
        using allocator = await openVerified(directory, (line) => requireHarmless(line, "a line about the repairing"));
        allocator.allocate(ownerOf("newer"), config);
        requireSense(allocator);
      });
    },
    close: () => rmSync(root, { recursive: true, force: true }),
  };
}

export const database: Target = {
  name: "database",
  what: "damage of the lease database and its log",
  mutators: [],
  dictionary: [
    "\x00\x00\x00\x00\x00\x00",
    "\x01\x00\x00\x00\x20\xff",
    "\x0e\x00\x00\x10\x00\x00",
    "\x0c\x00\x00\x20\x00\x00",
  ],
  maxBytes: 384,
  open: openDatabases,
};
