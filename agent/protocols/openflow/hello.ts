import { headerBytes, MessageType, Version } from "./constants.ts";
import { WireReader } from "./wire-reader.ts";
import { WireWriter } from "./wire-writer.ts";

/** Ours, the best first. */
const spoken: readonly Version[] = [Version.v15, Version.v13];
const versionBitmap = 1;

/** OFPT_HELLO with the versions that `allowed` has (OpenFlow 1.5.1, 7.5.1). */
export function writeHello(allowed: readonly Version[]): Uint8Array {
  const writer = new WireWriter(16);
  writer
    .u8(Math.max(...allowed))
    .u8(MessageType.HELLO)
    .u16(headerBytes + 8)
    .u32(1);
  return writer
    .u16(versionBitmap)
    .u16(8)
    .u32(allowed.reduce((bits, version) => bits | (1 << version), 0))
    .done();
}

/**
 * The version that both sides speak, the highest of them; `undefined` where there is none.
 * @param theirs of their HELLO's header, which counts where no bitmap follows
 * @throws {MalformedMessage}
 */
export function agreeOnVersion(theirs: number, body: Uint8Array, allowed: readonly Version[]): Version | undefined {
  const ours = spoken.filter((version) => allowed.includes(version));
  const reader = new WireReader(body, "a HELLO");
  // Elements of other kinds, and more of them, are for later versions: they are to be skipped.
  while (reader.left >= 4) {
    const type = reader.u16();
    const length = reader.u16();
    if (length < 4) throw reader.malformed(`an element says ${length} bytes, wanted 4 at least`);
    const element = reader.part(length - 4, "an element of HELLO");
    reader.skipPadding(length);
    if (type !== versionBitmap || element.left < 4) continue;
    const bitmap = element.u32();
    return ours.find((version) => (bitmap >>> version) & 1);
  }
  return ours.find((version) => version === Math.min(theirs, Math.max(...allowed)));
}
