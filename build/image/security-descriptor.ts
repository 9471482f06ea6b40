/** Self-relative security descriptors ([MS-DTYP] 2.4.6), as files of Windows' layers and keys of its registry have them. */

/** Authority 5, "NT", and what comes behind: S-1-5-32-544 and so on. */
const wellKnown = (...parts: readonly number[]): Buffer => {
  const sid = Buffer.alloc(8 + 4 * parts.length);
  sid.writeUInt8(1, 0);
  sid.writeUInt8(parts.length, 1);
  sid.writeUInt8(5, 7);
  for (const [index, part] of parts.entries()) sid.writeUInt32LE(part, 8 + 4 * index);
  return sid;
};

export const administrators = wellKnown(32, 544);
export const localSystem = wellKnown(18);
export const users = wellKnown(32, 545);

/** An ACCESS_ALLOWED_ACE (2.4.4.2). */
export function accessTo(sid: Buffer, mask: number, flags = 0): Buffer {
  const ace = Buffer.alloc(8);
  ace.writeUInt8(flags, 1);
  ace.writeUInt16LE(8 + sid.length, 2);
  ace.writeUInt32LE(mask, 4);
  return Buffer.concat([ace, sid]);
}

/** Owned by the administrators, with SYSTEM as group, and these rights. */
export function descriptorOf(rights: readonly Buffer[]): Buffer {
  const selfRelative = 0x8000;
  const hasAcl = 0x4;
  const head = Buffer.alloc(20);
  head.writeUInt8(1, 0);
  head.writeUInt16LE(selfRelative | hasAcl, 2);
  head.writeUInt32LE(head.length, 4);
  head.writeUInt32LE(head.length + administrators.length, 8);
  head.writeUInt32LE(head.length + administrators.length + localSystem.length, 16);
  const aces = Buffer.concat([...rights]);
  const acl = Buffer.alloc(8);
  acl.writeUInt8(2, 0);
  acl.writeUInt16LE(acl.length + aces.length, 2);
  acl.writeUInt16LE(rights.length, 4);
  return Buffer.concat([head, administrators, localSystem, acl, aces]);
}
