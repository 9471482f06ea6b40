/**
 * What every frame of the red team carries, so that receivers know it again after headers were rewritten, taken off or
 * put around it: eight bytes that occur nowhere else, and the frame's number.
 */
const magic = Uint8Array.from([0x9e, 0x52, 0xd7, 0xea, 0x4d, 0xb1, 0xc3, 0x86]);
const magicBuffer = Buffer.from(magic);

export const tokenBytes = magic.length + 4;

export function token(number: number): Uint8Array {
  const made = new Uint8Array(tokenBytes);
  made.set(magic);
  new DataView(made.buffer).setUint32(magic.length, number);
  return made;
}

/** The number of the frame that these bytes came with; `undefined` where they are none of the red team's. */
export function numberIn(bytes: Uint8Array): number | undefined {
  const at = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).lastIndexOf(magicBuffer);
  if (at < 0 || at + tokenBytes > bytes.length) return undefined;
  return new DataView(bytes.buffer, bytes.byteOffset + at + magic.length).getUint32(0);
}
