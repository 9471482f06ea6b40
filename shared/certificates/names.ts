import { der, oid, utf8 } from "./der.ts";
import { type DerReader, oidText, readText } from "./der-reader.ts";

/** What certificates and requests call somebody (RFC 5280). */

export const attributeIds = { commonName: "2.5.4.3", organization: "2.5.4.10" } as const;

export interface NameAttribute {
  /** `2.5.4.3`. */
  readonly id: string;
  readonly value: string;
}

/** An organization and a name in it, in this order: what reads it with the parts turned round finds the name first. */
export const memberName = (organization: string, commonName: string): Uint8Array =>
  nameOf([
    { id: attributeIds.organization, value: organization },
    { id: attributeIds.commonName, value: commonName },
  ]);

export const commonNameOnly = (commonName: string): Uint8Array =>
  nameOf([{ id: attributeIds.commonName, value: commonName }]);

const nameOf = (attributes: readonly NameAttribute[]): Uint8Array =>
  der(0x30, ...attributes.map(({ id, value }) => der(0x31, der(0x30, oid(id), utf8(value)))));

/** One attribute in each part. @throws {Error} in a sentence */
export function readName(reader: DerReader): readonly NameAttribute[] {
  const parts: NameAttribute[] = [];
  const name = reader.inside(0x30);
  while (!name.isAtEnd) {
    const part = name.inside(0x31);
    const attribute = part.inside(0x30);
    // A second one in the same part would be a name that others read in another order.
    part.end();
    const id = oidText(attribute.read(0x06));
    parts.push({ id, value: readText(attribute) });
    attribute.end();
  }
  return parts;
}

export const extensionIds = {
  basicConstraints: "2.5.29.19",
  keyUsage: "2.5.29.15",
  extendedKeyUsage: "2.5.29.37",
  subjectKeyId: "2.5.29.14",
  authorityKeyId: "2.5.29.35",
  subjectAltName: "2.5.29.17",
} as const;

export interface Extension {
  readonly id: string;
  readonly value: Uint8Array;
}

export const extension = (id: string, value: Uint8Array, isCritical = false): Uint8Array =>
  der(0x30, oid(id), ...(isCritical ? [der(0x01, [0xff])] : []), der(0x04, value));

/** The extensions of a list. @throws {Error} in a sentence */
export function readExtensions(reader: DerReader): readonly Extension[] {
  const extensions: Extension[] = [];
  const list = reader.inside(0x30);
  while (!list.isAtEnd) {
    const entry = list.inside(0x30);
    const id = oidText(entry.read(0x06));
    if (entry.tag === 0x01) entry.read(0x01);
    extensions.push({ id, value: entry.read(0x04) });
    entry.end();
  }
  return extensions;
}
