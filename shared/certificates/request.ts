import { createPublicKey, type KeyObject, sign, verify } from "node:crypto";
import { bits, der, integer, oid, pem } from "./der.ts";
import { bytesOfPem, DerReader, oidText } from "./der-reader.ts";
import { generalName, signatureIds, signatureOf } from "./issue.ts";
import {
  type Extension,
  extension,
  extensionIds,
  memberName,
  type NameAttribute,
  readExtensions,
  readName,
} from "./names.ts";

/** Requests for certificates (PKCS #10, RFC 2986): made by nodes, read by who signs. */

const label = "CERTIFICATE REQUEST";
/** Of a key of 4096 bits and a few names there are about 1,200. */
const maxBytes = 16 * 1024;
/** PKCS #9: the extensions that the certificate is to have. */
const extensionRequestId = "1.2.840.113549.1.9.14";

/** A request of a node among the others of its organization, in PEM; what it is good for says who hands it on. */
export function makeRequest(organization: string, name: string, privateKey: KeyObject): string {
  const names = extension(extensionIds.subjectAltName, der(0x30, generalName(name)));
  const publicKey = createPublicKey(privateKey).export({ type: "spki", format: "der" });
  const wanted = der(0x30, oid(extensionRequestId), der(0x31, der(0x30, names)));
  const toSign = der(0x30, integer([0]), memberName(organization, name), publicKey, der(0xa0, wanted));
  const { algorithm, hash } = signatureOf(privateKey);
  return pem(label, der(0x30, toSign, algorithm, bits(sign(hash, toSign, privateKey))));
}

export interface SigningRequest {
  /** In the order in which they stand. */
  readonly subject: readonly NameAttribute[];
  readonly dnsNames: readonly string[];
  /** Kinds of names besides, as their tags: `0x87` is an address. */
  readonly otherNames: readonly number[];
  /** Object identifiers of all that it asks for besides names. */
  readonly otherExtensions: readonly string[];
  readonly publicKey: KeyObject;
}

/**
 * Reads a request of somebody who is not trusted, and checks that it was signed with the key that it names.
 * @throws {Error} in a sentence that says what is wrong with it
 */
export function readRequest(text: string): SigningRequest {
  const outer = new DerReader(bytesOfPem(text, label, maxBytes));
  const request = outer.inside(0x30);
  outer.end();
  const signed = request.whole(0x30);
  const algorithm = request.inside(0x30);
  const hash = hashes.get(oidText(algorithm.read(0x06)));
  const signature = wholeBits(request.read(0x03));
  request.end();
  const info = new DerReader(signed).inside(0x30);
  const version = info.read(0x02);
  if (version.length !== 1 || version[0] !== 0) throw new Error("it is of no version that there is");
  const subject = readName(info);
  const publicKey = readKey(info.whole(0x30));
  const extensions = readAttributes(info.inside(0xa0));
  info.end();
  const names = readNames(extensions);
  if (hash === undefined) throw new Error("it is signed in a way that is not known here, wanted SHA-256 or better");
  if (!isSigned(hash, signed, publicKey, signature)) throw new Error("it is not signed with the key that it names");
  return { subject, ...names, publicKey };
}

/** What a request may be signed with, and what of it a key of another kind refuses by itself. */
const hashes: ReadonlyMap<string, string> = new Map([
  [signatureIds.rsa256, "sha256"],
  ["1.2.840.113549.1.1.12", "sha384"],
  ["1.2.840.113549.1.1.13", "sha512"],
  [signatureIds.ecdsa256, "sha256"],
  [signatureIds.ecdsa384, "sha384"],
]);

function wholeBits(contents: Uint8Array): Uint8Array {
  if (contents[0] !== 0) throw new Error("a signature does not fill its bytes");
  return contents.subarray(1);
}

function readKey(spki: Uint8Array): KeyObject {
  try {
    return createPublicKey({ key: Buffer.from(spki), format: "der", type: "spki" });
  } catch {
    throw new Error("its key cannot be read");
  }
}

function isSigned(hash: string, signed: Uint8Array, key: KeyObject, signature: Uint8Array): boolean {
  try {
    return verify(hash, signed, key, signature);
  } catch {
    return false;
  }
}

/** The extensions that it asks for, of which it may do so once, and for nothing else. */
function readAttributes(attributes: DerReader): readonly Extension[] {
  if (attributes.isAtEnd) return [];
  const attribute = attributes.inside(0x30);
  attributes.end();
  const id = oidText(attribute.read(0x06));
  if (id !== extensionRequestId)
    throw new Error(`it has an attribute ${id}, wanted none but the extensions it asks for`);
  const values = attribute.inside(0x31);
  attribute.end();
  const extensions = readExtensions(values);
  values.end();
  return extensions;
}

function readNames(extensions: readonly Extension[]): Omit<SigningRequest, "subject" | "publicKey"> {
  const dnsNames: string[] = [];
  const otherNames: number[] = [];
  const isNames = ({ id }: Extension): boolean => id === extensionIds.subjectAltName;
  for (const { value } of extensions.filter(isNames)) {
    const outer = new DerReader(value);
    const names = outer.inside(0x30);
    outer.end();
    while (!names.isAtEnd) {
      const tag = names.tag ?? 0;
      const contents = names.read(tag);
      if (tag === 0x82) dnsNames.push(asciiOf(contents));
      else otherNames.push(tag);
    }
  }
  return { dnsNames, otherNames, otherExtensions: extensions.filter((each) => !isNames(each)).map(({ id }) => id) };
}

function asciiOf(bytes: Uint8Array): string {
  if (bytes.some((byte) => byte < 0x21 || byte > 0x7e)) throw new Error("a DNS name has characters that none has");
  return new TextDecoder().decode(bytes);
}
