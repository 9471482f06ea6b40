import { crc32 } from "node:zlib";
import { deflate } from "./deflate.ts";

export interface ZipEntry {
  readonly path: string;
  readonly bytes: Uint8Array;
}

/** The format counts from 1980 on, by two seconds, without a zone: 1980-01-01 00:00. */
const date = (1 << 5) | 1;
const versionNeeded = 20;
const deflated = 8;
const utf8Names = 0x0800;

/** An archive as Windows' own Explorer and Expand-Archive read it; the same entries give the same bytes. */
export function zip(entries: readonly ZipEntry[]): Uint8Array<ArrayBuffer> {
  const parts: Uint8Array[] = [];
  const directory: Uint8Array[] = [];
  let offset = 0;
  for (const { path, bytes } of entries) {
    const name = Buffer.from(path);
    const packed = deflate(bytes);
    // The fields that both headers of an entry have.
    const common = Buffer.alloc(26);
    common.writeUInt16LE(versionNeeded, 0);
    common.writeUInt16LE(utf8Names, 2);
    common.writeUInt16LE(deflated, 4);
    common.writeUInt16LE(date, 8);
    common.writeUInt32LE(crc32(bytes), 10);
    common.writeUInt32LE(packed.length, 14);
    common.writeUInt32LE(bytes.length, 18);
    common.writeUInt16LE(name.length, 22);
    const local = Buffer.concat([Buffer.from("PK\x03\x04", "latin1"), common, name]);
    const place = Buffer.alloc(14);
    place.writeUInt32LE(offset, 10);
    const madeBy = Buffer.from([versionNeeded, 0]);
    directory.push(Buffer.from("PK\x01\x02", "latin1"), madeBy, common, place, name);
    parts.push(local, packed);
    offset += local.length + packed.length;
  }
  const listing = Buffer.concat(directory);
  const end = Buffer.alloc(22);
  end.write("PK\x05\x06", "latin1");
  end.writeUInt16LE(entries.length, 8);
  end.writeUInt16LE(entries.length, 10);
  end.writeUInt32LE(listing.length, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...parts, listing, end]);
}
