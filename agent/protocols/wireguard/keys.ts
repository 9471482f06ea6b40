import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from "node:crypto";

/** Bytes of every key of WireGuard. */
export const keyBytes = 32;

/** A new private key, 32 bytes (Curve25519). */
export function newPrivateKey(): Uint8Array {
  const { privateKey } = generateKeyPairSync("x25519");
  return fieldOf(privateKey, "d");
}

/** The public key that belongs to it, in base64 as `wg` shows it. */
export function publicKeyOf(privateKey: Uint8Array): string {
  // RFC 8410: the frame of a private key of this curve, which is always the same.
  const frame = Uint8Array.from([0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x6e, 4, 0x22, 4, 0x20]);
  const key = createPrivateKey({ key: Buffer.concat([frame, privateKey]), format: "der", type: "pkcs8" });
  return Buffer.from(fieldOf(createPublicKey(key), "x")).toString("base64");
}

function fieldOf(key: KeyObject, field: "d" | "x"): Uint8Array {
  return Uint8Array.from(Buffer.from(key.export({ format: "jwk" })[field] ?? "", "base64url"));
}
