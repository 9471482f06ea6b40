import { statSync, utimesSync } from "node:fs";
import { CniCode, CniError } from "../../shared/errors.ts";
import { writeAtomically, writeOnce } from "../../shared/os/atomic-file.ts";
import type { AgentConfig } from "../config/agent-config.ts";
import { wireguardKeyFile, wireguardUseFile } from "../config/encryption-config.ts";
import { keyBytes, newPrivateKey, publicKeyOf } from "../protocols/wireguard/mod.ts";
import type { NodeEncryption } from "./node-encryption.ts";

const textOf = (key: Uint8Array): string => `${Buffer.from(key).toString("base64")}\n`;

/**
 * The node's private key for WireGuard: made on the node with the first call, kept in its data directory in a file of
 * mode 0600, as `wg genkey` writes it, and told to nobody but the device.
 * @throws {CniError} code 5
 */
export function privateKeyIn(dataDir: string): Uint8Array {
  const path = wireguardKeyFile(dataDir);
  const text = writeOnce(path, textOf(newPrivateKey())).trim();
  const key = /^[A-Za-z0-9+/]{43}=$/.test(text) ? Uint8Array.from(Buffer.from(text, "base64")) : new Uint8Array(0);
  if (key.length === keyBytes) return key;
  // What stands there may be a key with a slip, so it is not shown.
  const is = `"${path}" holds ${text.length} characters that are no key`;
  throw new CniError(
    CniCode.io,
    `Cannot take the node's key: ${is}, wanted 32 bytes in base64; without the file a new one is made`,
  );
}

/** Keeps another one instead. @throws {CniError} code 5 */
export const keepPrivateKey = (dataDir: string, key: Uint8Array): void => {
  writeAtomically(wireguardKeyFile(dataDir), textOf(key));
};

/** Milliseconds since 1970, by the time stamp of its file. */
export const privateKeyMadeMs = (dataDir: string): number => statSync(wireguardKeyFile(dataDir)).mtimeMs;

/**
 * Keeps the one of before again, as old as it was: a rotation that has failed is still due.
 * @param madeMs what `privateKeyMadeMs` has said of it
 * @throws {CniError} code 5
 */
export function restorePrivateKey(dataDir: string, key: Uint8Array, madeMs: number): void {
  keepPrivateKey(dataDir, key);
  utimesSync(wireguardKeyFile(dataDir), madeMs / 1_000, madeMs / 1_000);
}

/** Milliseconds of the clock until which a key was certainly in use; 0: nobody has noted it. */
export const privateKeyUsedMs = (dataDir: string): number =>
  statSync(wireguardUseFile(dataDir), { throwIfNoEntry: false })?.mtimeMs ?? 0;

/** Notes it, as the time stamp of an empty file. @throws {CniError} code 5 */
export function noteKeyUse(dataDir: string, untilMs: number): void {
  const path = wireguardUseFile(dataDir);
  writeOnce(path, "");
  utimesSync(path, untilMs / 1_000, untilMs / 1_000);
}

/** What this node tells the others of how it encrypts; `undefined`: it does not. @throws {CniError} code 5 */
export function ownEncryption({ ovs, dataPath, dataDir }: AgentConfig): NodeEncryption | undefined {
  if (dataPath === "bridge" || ovs === undefined || ovs.encryption === "none") return undefined;
  if (ovs.encryption === "ipsec") return { type: "ipsec" };
  return { type: "wireguard", key: publicKeyOf(privateKeyIn(dataDir)) };
}
