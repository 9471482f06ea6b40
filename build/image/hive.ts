import { accessTo, administrators, descriptorOf, localSystem } from "./security-descriptor.ts";

/**
 * The least registry hive that Windows loads: a base block, and one bin with the root key and who may use it. Windows
 * Server 2025 looks into the five hives of an image's lowest layer and refuses empty files, which earlier ones took.
 * Layout: https://github.com/msuhanov/regf/blob/master/Windows%20registry%20file%20format%20specification.md
 */

const page = 4096;
const none = 0xffff_ffff;
/** Offsets are counted from the first bin, whose own header comes before its cells. */
const binHeader = 32;
const cellAlignment = 8;

const keyFlags = { hiveEntry: 0x4, noDelete: 0x8, nameInLatin1: 0x20 } as const;
/** KEY_ALL_ACCESS: winnt.h */
const allAccess = 0xf_003f;

export function emptyHive(): Uint8Array {
  const rootAt = binHeader;
  const security = securityCell(rootAt + cellSize(rootKey(0).length));
  const root = cell(rootKey(security.at));
  const cells = [root, security.bytes];
  const used = binHeader + cells.reduce((sum, { length }) => sum + length, 0);
  const free = Buffer.alloc(page - used);
  free.writeInt32LE(free.length, 0);
  return Buffer.concat([baseBlock(rootAt), binOf(), ...cells, free]);
}

function baseBlock(rootAt: number): Buffer {
  const block = Buffer.alloc(page);
  block.write("regf", 0, "latin1");
  // Two sequence numbers, equal where nothing was interrupted; no time.
  block.writeUInt32LE(1, 4);
  block.writeUInt32LE(1, 8);
  // Version 1.5 of a file that lies on a disk as it lies in memory.
  block.writeUInt32LE(1, 20);
  block.writeUInt32LE(5, 24);
  block.writeUInt32LE(1, 32);
  block.writeUInt32LE(rootAt, 36);
  block.writeUInt32LE(page, 40);
  block.writeUInt32LE(1, 44);
  const checksumAt = 508;
  let sum = 0;
  for (let at = 0; at < checksumAt; at += 4) sum ^= block.readUInt32LE(at);
  block.writeUInt32LE(sum >>> 0, checksumAt);
  return block;
}

function binOf(): Buffer {
  const header = Buffer.alloc(binHeader);
  header.write("hbin", 0, "latin1");
  header.writeUInt32LE(page, 8);
  return header;
}

function rootKey(securityAt: number): Buffer {
  const name = Buffer.from("ROOT", "latin1");
  const key = Buffer.alloc(76);
  key.write("nk", 0, "latin1");
  key.writeUInt16LE(keyFlags.hiveEntry | keyFlags.noDelete | keyFlags.nameInLatin1, 2);
  // Parent, subkeys (stable, volatile), values, class: there are none.
  for (const at of [16, 28, 32, 40, 48]) key.writeUInt32LE(none, at);
  key.writeUInt32LE(securityAt, 44);
  key.writeUInt16LE(name.length, 72);
  return Buffer.concat([key, name]);
}

/** In a list of one, which is before and behind itself, used by one key. */
function securityCell(at: number): { readonly at: number; readonly bytes: Buffer } {
  const descriptor = descriptorOf([accessTo(administrators, allAccess), accessTo(localSystem, allAccess)]);
  const head = Buffer.alloc(20);
  head.write("sk", 0, "latin1");
  head.writeUInt32LE(at, 4);
  head.writeUInt32LE(at, 8);
  head.writeUInt32LE(1, 12);
  head.writeUInt32LE(descriptor.length, 16);
  return { at, bytes: cell(Buffer.concat([head, descriptor])) };
}

const cellSize = (bytes: number): number => Math.ceil((4 + bytes) / cellAlignment) * cellAlignment;

/** Its size, negative since it is in use, and its content. */
function cell(content: Uint8Array): Buffer {
  const bytes = Buffer.alloc(cellSize(content.length));
  bytes.writeInt32LE(-bytes.length, 0);
  bytes.set(content, 4);
  return bytes;
}
