import { createHash, createPublicKey, generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";
import { bitsOf, parseIp } from "../net/ip.ts";

/**
 * X.509 certificates (RFC 5280) of one shape: ECDSA on P-256 with SHA-256. The runtime reads and checks certificates but
 * issues none; why not a library: docs/dependencies.md.
 */

export interface Issued {
  /** In PEM. */
  readonly cert: string;
  readonly key: string;
}

/** An authority that signs the certificates of servers. */
export function issueAuthority(name: string, validity: Validity): Issued {
  const { publicKey, privateKey } = newKey();
  const extensions = [
    extension("2.5.29.19", der(0x30, der(0x01, [0xff]), integer([0])), true),
    // keyCertSign and cRLSign.
    extension("2.5.29.15", der(0x03, [0x01, 0x06]), true),
    extension("2.5.29.14", der(0x04, keyId(publicKey))),
  ];
  return certify({ subject: name, issuer: name, publicKey, validity, extensions }, privateKey, privateKey);
}

/** A server's certificate. @param names DNS names and addresses under which clients reach it, the first as its subject */
export function issueServer(names: readonly string[], authority: Authority, validity: Validity): Issued {
  const { publicKey, privateKey } = newKey();
  const { key, name } = authority;
  const authorityKey = der(0x80, keyId(createPublicKey(key)));
  const extensions = [
    // digitalSignature.
    extension("2.5.29.15", der(0x03, [0x07, 0x80]), true),
    extension("2.5.29.37", der(0x30, oid("1.3.6.1.5.5.7.3.1"))),
    extension("2.5.29.35", der(0x30, authorityKey)),
    extension("2.5.29.17", der(0x30, ...names.map(generalName))),
  ];
  return certify({ subject: names[0] ?? "", issuer: name, publicKey, validity, extensions }, privateKey, key);
}

export interface Authority {
  readonly name: string;
  readonly key: KeyObject;
}

export interface Validity {
  readonly from: Date;
  readonly until: Date;
}

interface Contents {
  readonly subject: string;
  readonly issuer: string;
  readonly publicKey: KeyObject;
  readonly validity: Validity;
  readonly extensions: readonly Uint8Array[];
}

const newKey = (): { publicKey: KeyObject; privateKey: KeyObject } =>
  generateKeyPairSync("ec", { namedCurve: "P-256" });

/** Long enough that no two certificates ever have the same. */
const serialBytes = 16;

function certify(
  { subject, issuer, publicKey, validity, extensions }: Contents,
  own: KeyObject,
  signer: KeyObject,
): Issued {
  const algorithm = der(0x30, oid("1.2.840.10045.4.3.2"));
  const serial = randomBytes(serialBytes);
  // Neither negative nor zero.
  serial[0] = ((serial[0] ?? 0) & 0x7f) | 0x40;
  const toSign = der(
    0x30,
    der(0xa0, integer([2])),
    integer(serial),
    algorithm,
    nameOf(issuer),
    der(0x30, time(validity.from), time(validity.until)),
    nameOf(subject),
    publicKey.export({ type: "spki", format: "der" }),
    der(0xa3, der(0x30, ...extensions)),
  );
  const certificate = der(0x30, toSign, algorithm, der(0x03, [0], sign("sha256", toSign, signer)));
  const lines = certificate.toBase64().match(/.{1,64}/g) ?? [];
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`,
    key: String(own.export({ type: "pkcs8", format: "pem" })),
  };
}

/** RFC 7093: of the key's own bits. */
const keyId = (key: KeyObject): Uint8Array =>
  createHash("sha256")
    .update(key.export({ type: "spki", format: "der" }))
    .digest()
    .subarray(0, 20);

const nameOf = (commonName: string): Uint8Array =>
  der(0x30, der(0x31, der(0x30, oid("2.5.4.3"), der(0x0c, new TextEncoder().encode(commonName)))));

function generalName(name: string): Uint8Array {
  const ip = parseIp(name);
  if (ip === undefined) return der(0x82, new TextEncoder().encode(name));
  const digits = ip.value.toString(16).padStart(bitsOf(ip.family) / 4, "0");
  return der(0x87, Uint8Array.fromHex(digits));
}

const extension = (id: string, value: Uint8Array, isCritical = false): Uint8Array =>
  der(0x30, oid(id), ...(isCritical ? [der(0x01, [0xff])] : []), der(0x04, value));

/** `YYMMDDhhmmssZ` until 2049, and with the whole year from then on. */
function time(date: Date): Uint8Array {
  const text = `${date.toISOString().slice(0, 19).replaceAll(/[-:T]/g, "")}Z`;
  const isShort = date.getUTCFullYear() < 2050;
  return der(isShort ? 0x17 : 0x18, new TextEncoder().encode(isShort ? text.slice(2) : text));
}

const integer = (bytes: ArrayLike<number>): Uint8Array => der(0x02, bytes);

function oid(text: string): Uint8Array {
  const [first = 0, second = 0, ...rest] = text.split(".").map(Number);
  const bytes = [first * 40 + second];
  for (const part of rest) {
    const digits = [part & 0x7f];
    for (let left = part >>> 7; left > 0; left >>>= 7) digits.unshift((left & 0x7f) | 0x80);
    bytes.push(...digits);
  }
  return der(0x06, bytes);
}

/** One value of DER (X.690): what it is, its length, and its contents. */
function der(tag: number, ...contents: readonly ArrayLike<number>[]): Uint8Array {
  const length = contents.reduce((sum, part) => sum + part.length, 0);
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  const bytes = new Uint8Array(1 + size.length + length);
  bytes.set([tag, ...size]);
  let at = 1 + size.length;
  for (const part of contents) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}
