import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
  X509Certificate,
} from "node:crypto";
import { bitsOf, parseIp } from "../net/ip.ts";
import { bits, der, integer, noValue, oid, pem, time } from "./der.ts";
import { DerReader } from "./der-reader.ts";
import { commonNameOnly, extension, extensionIds, memberName, readExtensions } from "./names.ts";

/**
 * X.509 certificates (RFC 5280) of few shapes: an authority, a server, a node among nodes. The runtime reads and checks
 * certificates but issues none; why not a library: docs/dependencies.md.
 */

export interface Issued {
  /** In PEM. */
  readonly cert: string;
  readonly key: string;
}

/** An authority that signs other certificates. */
export function issueAuthority(name: string, validity: Validity): Issued {
  const { publicKey, privateKey } = newKey();
  const extensions = [
    extension(extensionIds.basicConstraints, der(0x30, der(0x01, [0xff]), integer([0])), true),
    // keyCertSign and cRLSign.
    extension(extensionIds.keyUsage, der(0x03, [0x01, 0x06]), true),
    extension(extensionIds.subjectKeyId, der(0x04, keyId(publicKey))),
  ];
  const subject = commonNameOnly(name);
  const cert = certify({ subject, issuer: subject, publicKey, validity, extensions }, privateKey);
  return { cert, key: pkcs8(privateKey) };
}

/** A server's certificate. @param names DNS names and addresses under which clients reach it, the first as its subject */
export function issueServer(names: readonly string[], authority: Authority, validity: Validity): Issued {
  const { publicKey, privateKey } = newKey();
  const { key, name } = authority;
  const issuer = commonNameOnly(name);
  const extensions = leafExtensions({ purpose: purposes.server, names, authorityKeyId: keyId(createPublicKey(key)) });
  const subject = commonNameOnly(names[0] ?? "");
  return { cert: certify({ subject, issuer, publicKey, validity, extensions }, key), key: pkcs8(privateKey) };
}

/** Who a node is among the others of its organization. */
export interface Member {
  readonly organization: string;
  /** Also its one DNS name. */
  readonly name: string;
  readonly publicKey: KeyObject;
}

/**
 * A certificate with which a node speaks IPsec, in PEM.
 * @param authority in PEM, with the key that signs; somebody else may have made it
 * @throws {Error} for an authority whose key signs nothing that we know
 */
export function issueMember({ organization, name, publicKey }: Member, authority: Issued, validity: Validity): string {
  const { subject: issuer, subjectKeyId } = readAuthority(authority.cert);
  const key = createPrivateKey(authority.key);
  const extensions = leafExtensions({ purpose: purposes.ipsecTunnel, names: [name], authorityKeyId: subjectKeyId });
  return certify({ subject: memberName(organization, name), issuer, publicKey, validity, extensions }, key);
}

/** Object identifiers of what a certificate is good for. */
const purposes = { server: "1.3.6.1.5.5.7.3.1", ipsecTunnel: "1.3.6.1.5.5.7.3.6" } as const;

interface Leaf {
  readonly purpose: string;
  readonly names: readonly string[];
  /** Absent where the authority says none. */
  readonly authorityKeyId: Uint8Array | undefined;
}

const leafExtensions = ({ purpose, names, authorityKeyId }: Leaf): Uint8Array[] => [
  // digitalSignature.
  extension(extensionIds.keyUsage, der(0x03, [0x07, 0x80]), true),
  extension(extensionIds.extendedKeyUsage, der(0x30, oid(purpose))),
  ...(authorityKeyId === undefined
    ? []
    : [extension(extensionIds.authorityKeyId, der(0x30, der(0x80, authorityKeyId)))]),
  extension(extensionIds.subjectAltName, der(0x30, ...names.map(generalName))),
];

/** How the certificates of an authority name it: in its own words. @throws {Error} in a sentence */
function readAuthority(cert: string): { readonly subject: Uint8Array; readonly subjectKeyId: Uint8Array | undefined } {
  const fields = new DerReader(new Uint8Array(new X509Certificate(cert).raw)).inside(0x30).inside(0x30);
  if (fields.tag === 0xa0) fields.read(0xa0);
  fields.read(0x02);
  for (let skipped = 0; skipped < 3; skipped++) fields.read(0x30);
  const subject = fields.whole(0x30);
  fields.read(0x30);
  const extensions = fields.tag === 0xa3 ? readExtensions(fields.inside(0xa3)) : [];
  const known = extensions.find(({ id }) => id === extensionIds.subjectKeyId)?.value;
  return { subject, subjectKeyId: known === undefined ? undefined : new DerReader(known).read(0x04) };
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
  /** Names in DER. */
  readonly subject: Uint8Array;
  readonly issuer: Uint8Array;
  readonly publicKey: KeyObject;
  readonly validity: Validity;
  readonly extensions: readonly Uint8Array[];
}

const newKey = (): { publicKey: KeyObject; privateKey: KeyObject } =>
  generateKeyPairSync("ec", { namedCurve: "P-256" });

const pkcs8 = (key: KeyObject): string => String(key.export({ type: "pkcs8", format: "pem" }));

/** Long enough that no two certificates ever have the same. */
const serialBytes = 16;

/** In PEM. */
function certify({ subject, issuer, publicKey, validity, extensions }: Contents, signer: KeyObject): string {
  const { algorithm, hash } = signatureOf(signer);
  const serial = randomBytes(serialBytes);
  // Neither negative nor zero.
  serial[0] = ((serial[0] ?? 0) & 0x7f) | 0x40;
  const toSign = der(
    0x30,
    der(0xa0, integer([2])),
    integer(serial),
    algorithm,
    issuer,
    der(0x30, time(validity.from), time(validity.until)),
    subject,
    publicKey.export({ type: "spki", format: "der" }),
    der(0xa3, der(0x30, ...extensions)),
  );
  return pem("CERTIFICATE", der(0x30, toSign, algorithm, bits(sign(hash, toSign, signer))));
}

/** How a key signs, as X.509 names it. @throws {Error} for a kind that we do not know */
export function signatureOf(key: KeyObject): { readonly algorithm: Uint8Array; readonly hash: string } {
  const { asymmetricKeyType: type, asymmetricKeyDetails: details } = key;
  if (type === "rsa") return { algorithm: der(0x30, oid(signatureIds.rsa256), noValue), hash: "sha256" };
  if (type === "ec" && details?.namedCurve === "secp384r1")
    return { algorithm: der(0x30, oid(signatureIds.ecdsa384)), hash: "sha384" };
  if (type === "ec" && ["prime256v1", "P-256"].includes(details?.namedCurve ?? ""))
    return { algorithm: der(0x30, oid(signatureIds.ecdsa256)), hash: "sha256" };
  throw new Error(`a key of kind ${type} ${details?.namedCurve ?? ""} does not sign here, wanted RSA, P-256 or P-384`);
}

export const signatureIds = {
  rsa256: "1.2.840.113549.1.1.11",
  ecdsa256: "1.2.840.10045.4.3.2",
  ecdsa384: "1.2.840.10045.4.3.3",
} as const;

/** RFC 7093: of the key's own bits. */
const keyId = (key: KeyObject): Uint8Array =>
  createHash("sha256")
    .update(key.export({ type: "spki", format: "der" }))
    .digest()
    .subarray(0, 20);

export function generalName(name: string): Uint8Array {
  const ip = parseIp(name);
  if (ip === undefined) return der(0x82, new TextEncoder().encode(name));
  const digits = ip.value.toString(16).padStart(bitsOf(ip.family) / 4, "0");
  return der(0x87, Uint8Array.fromHex(digits));
}
