import { readFileSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { scratchDir } from "../../test/support/scratch-dir.ts";
import { wireguardKeyFile } from "../config/encryption-config.ts";
import { newPrivateKey, publicKeyOf } from "../protocols/wireguard/mod.ts";
import { keepPrivateKey, privateKeyIn, privateKeyMadeMs, restorePrivateKey } from "./own-key.ts";

test("a node's key is made once, in a file of its own that nobody else reads", () => {
  using directory = scratchDir();
  const key = privateKeyIn(directory.path);
  expect(key).toHaveLength(32);
  expect(privateKeyIn(directory.path)).toEqual(key);
  expect(statSync(wireguardKeyFile(directory.path)).mode & 0o777).toBe(0o600);
  const next = newPrivateKey();
  keepPrivateKey(directory.path, next);
  expect(privateKeyIn(directory.path)).toEqual(next);
  expect(statSync(wireguardKeyFile(directory.path)).mode & 0o777).toBe(0o600);
});

test("a key that comes back is as old as it was, so that another one is still due", () => {
  using directory = scratchDir();
  const key = privateKeyIn(directory.path);
  utimesSync(wireguardKeyFile(directory.path), 1_000, 1_000);
  const madeMs = privateKeyMadeMs(directory.path);
  keepPrivateKey(directory.path, newPrivateKey());
  expect(privateKeyMadeMs(directory.path)).toBeGreaterThan(madeMs);
  restorePrivateKey(directory.path, key, madeMs);
  expect(privateKeyIn(directory.path)).toEqual(key);
  expect(privateKeyMadeMs(directory.path)).toBe(1_000_000);
});

test("what is no key is named without being shown", () => {
  using directory = scratchDir();
  const almost = readFileSync("/proc/sys/kernel/random/uuid", "utf8").trim();
  writeFileSync(wireguardKeyFile(directory.path), almost);
  expect(() => privateKeyIn(directory.path)).toThrow(/holds 36 characters that are no key/);
  expect(() => privateKeyIn(directory.path)).not.toThrow(almost);
});

/** As `wg pubkey` answers it. */
test("the public key is that of the curve", () => {
  const secret = Buffer.from("6PRFI0bdDy+VxfWhVGMCsmiz2CrtkkARaWkitsPpOW4=", "base64");
  expect(publicKeyOf(secret)).toBe("7hYu14IfFkXf/wi26JLh+OuMUl75JD13TYW5n3lsoyk=");
});
