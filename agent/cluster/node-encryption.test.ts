import { expect, test } from "vitest";
import { formatEncryption, parseEncryption } from "./node-encryption.ts";

const key = `${"x".repeat(42)}4=`;

test("reads what it writes", () => {
  const read = parseEncryption(`wireguard:${key}`);
  expect(read && formatEncryption(read)).toBe(`wireguard:${key}`);
});

test.each([
  "",
  "none",
  "ipsec",
  "wireguard",
  "wireguard:",
  `wireguard:${key}x`,
  `wireguard:${"x".repeat(43)}=`,
  `wireguard:${"x".repeat(43)}`,
  `wireguard:${"A".repeat(43)}=`,
  ` wireguard:${key}`,
  `wireguard:${key}\nremove=true`,
])("takes no other text: %j", (text) => {
  expect(parseEncryption(text)).toBeUndefined();
});
