import { expect, test } from "vitest";
import { formatEncryption, parseEncryption } from "./node-encryption.ts";

const key = `${"x".repeat(42)}4=`;

test.each(["ipsec", `wireguard:${key}`])("reads what it writes: %s", (text) => {
  const read = parseEncryption(text);
  expect(read && formatEncryption(read)).toBe(text);
});

test.each([
  "",
  "none",
  "IPSEC",
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
