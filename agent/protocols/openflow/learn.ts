import { type Bits, type Field, headerOf } from "./fields.ts";
import { readFieldName } from "./match-wire.ts";
import { InvalidFlow } from "./openflow-error.ts";
import { hex } from "./values.ts";
import type { WireReader } from "./wire-reader.ts";
import type { WireWriter } from "./wire-writer.ts";

/** What one line of a learned flow is made of: bits of the packet at hand, or a number. */
export type LearnSource = Bits | { readonly number: bigint; readonly count: number };

export type LearnSpec =
  /** The learned flow matches `destination` on what `source` is now. */
  | { readonly t: "match"; readonly source: LearnSource; readonly destination: Bits }
  /** The learned flow sets `destination`. */
  | { readonly t: "load"; readonly source: LearnSource; readonly destination: Bits }
  /** The learned flow sends to the port that `source` is now. */
  | { readonly t: "output"; readonly source: Bits };

/** Adds a flow made of the packet at hand (nicira-ext.h, NXAST_LEARN). Timeouts in seconds, 0 none. */
export interface Learn {
  readonly t: "learn";
  readonly table: number;
  readonly priority: number;
  readonly cookie: bigint;
  readonly idleTimeout: number;
  readonly hardTimeout: number;
  readonly finIdleTimeout: number;
  readonly finHardTimeout: number;
  readonly sendFlowRemoved: boolean;
  /** Learned flows go with the last flow that learns them. */
  readonly deleteLearned: boolean;
  /** Of flows with this cookie in the table; beyond, nothing is learned. 0: no limit (since Open vSwitch 2.8). */
  readonly limit: number;
  readonly specs: readonly LearnSpec[];
}

/** @throws {InvalidFlow} */
export function learn(options: Pick<Learn, "table" | "specs"> & Partial<Omit<Learn, "t">>): Learn {
  for (const spec of options.specs) checkSpec(spec);
  if (options.table === 0xff) throw new InvalidFlow("an action learn", "its table is 255, wanted 0 to 254");
  return {
    t: "learn",
    priority: 0x8000,
    cookie: 0n,
    idleTimeout: 0,
    hardTimeout: 0,
    finIdleTimeout: 0,
    finHardTimeout: 0,
    sendFlowRemoved: false,
    deleteLearned: false,
    limit: 0,
    ...options,
  };
}

/** Matches a whole field on a number: `learnMatch(whole("eth_type"), 0x800)`; without one, on the packet's own bits. */
export const learnMatch = (destination: Bits, value?: number | bigint): LearnSpec => ({
  t: "match",
  source: value === undefined ? destination : { number: BigInt(value), count: destination.count },
  destination,
});

export const learnLoad = (destination: Bits, source: number | bigint | Bits): LearnSpec => ({
  t: "load",
  source: typeof source === "object" ? source : { number: BigInt(source), count: destination.count },
  destination,
});

function checkSpec(spec: LearnSpec): void {
  if (spec.t === "output") return;
  const { source, destination } = spec;
  const what = `an action learn with ${destination.field.name}`;
  if (source.count !== destination.count) {
    throw new InvalidFlow(what, `${source.count} bits are given, wanted ${destination.count}`);
  }
  if ("number" in source && (source.number < 0n || source.number >> BigInt(source.count) !== 0n)) {
    throw new InvalidFlow(what, `${hex(source.number)} is given, wanted ${source.count} bits`);
  }
  if (spec.t === "load" && !destination.field.writable) {
    throw new InvalidFlow(what, "the field is there to be read only");
  }
}

const learnFlag = { sendFlowRemoved: 1, deleteLearned: 2, writeResult: 4 } as const;
const fromNumber = 1 << 13;
const kinds = { match: 0, load: 1 << 11, output: 2 << 11 } as const;

/** What follows the head of NXAST_LEARN, and with a limit of NXAST_LEARN2. */
export function writeLearn(writer: WireWriter, learned: Learn): void {
  const flags =
    (learned.sendFlowRemoved ? learnFlag.sendFlowRemoved : 0) | (learned.deleteLearned ? learnFlag.deleteLearned : 0);
  writer.u16(learned.idleTimeout).u16(learned.hardTimeout).u16(learned.priority).u64(learned.cookie);
  writer.u16(flags).u8(learned.table).u8(0).u16(learned.finIdleTimeout).u16(learned.finHardTimeout);
  if (learned.limit > 0) writer.u32(learned.limit).zeros(4);
  for (const spec of learned.specs) {
    const { source } = spec;
    writer.u16(kinds[spec.t] | ("number" in source ? fromNumber : 0) | source.count);
    // A number takes whole pairs of bytes, its lowest bit last.
    if ("number" in source) writer.uint(source.number, 2 * Math.ceil(source.count / 16));
    else writer.u32(headerOf(source.field)).u16(source.from);
    if (spec.t !== "output") writer.u32(headerOf(spec.destination.field)).u16(spec.destination.from);
  }
}

/**
 * @param isSecond it is NXAST_LEARN2
 * @returns `undefined` for one that also says whether it learned, which has no place in `Learn`
 * @throws {MalformedMessage}
 */
export function readLearn(reader: WireReader, isSecond: boolean): Learn | undefined {
  const [idleTimeout, hardTimeout, priority] = [reader.u16(), reader.u16(), reader.u16()];
  const cookie = reader.u64();
  const flags = reader.u16();
  const table = reader.u8();
  const [finIdleTimeout, finHardTimeout] = [reader.skip(1).u16(), reader.u16()];
  if ((flags & learnFlag.writeResult) !== 0) return undefined;
  const limit = isSecond ? reader.u32() : 0;
  if (isSecond) reader.skip(4);
  const specs: LearnSpec[] = [];
  while (reader.left >= 2) {
    const head = reader.u16();
    if (head === 0) break;
    specs.push(readSpec(reader, head));
  }
  const sendFlowRemoved = (flags & learnFlag.sendFlowRemoved) !== 0;
  const deleteLearned = (flags & learnFlag.deleteLearned) !== 0;
  const timeouts = { idleTimeout, hardTimeout, finIdleTimeout, finHardTimeout };
  return { t: "learn", table, priority, cookie, ...timeouts, sendFlowRemoved, deleteLearned, limit, specs };
}

function readSpec(reader: WireReader, head: number): LearnSpec {
  const count = head & 0x3ff;
  const kind = (head >> 11) & 3;
  if (count === 0 || kind === 3) throw reader.malformed(`a line of "learn" begins with 0x${head.toString(16)}`);
  const source = head & fromNumber ? numberOf(reader, count) : bitsOf(reader, count);
  if (kind !== 2) {
    const destination = bitsOf(reader, count);
    return { t: kind === 0 ? "match" : "load", source, destination };
  }
  if ("number" in source) throw reader.malformed('a line of "learn" sends to a number, wanted a field');
  return { t: "output", source };
}

function numberOf(reader: WireReader, count: number): LearnSource {
  const number = reader.uint(2 * Math.ceil(count / 16));
  if (number >> BigInt(count) !== 0n) throw reader.malformed(`a number of "learn" has more than ${count} bits`);
  return { number, count };
}

function bitsOf(reader: WireReader, count: number): Bits {
  const field: Field = readFieldName(reader);
  const from = reader.u16();
  if (from + count > field.bits)
    throw reader.malformed(`${count} bits from ${from} on are more than ${field.name} has`);
  return { field, from, count };
}
