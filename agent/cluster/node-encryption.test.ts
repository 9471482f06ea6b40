import { expect, test } from "vitest";
import { formatEncryption, otherwiseEncrypted, parseEncryption } from "./node-encryption.ts";

const key = `${"x".repeat(42)}4=`;

test.each([`wireguard:${key}`, "ipsec"])("reads what it writes: %s", (text) => {
  const read = parseEncryption(text);
  expect(read && formatEncryption(read)).toBe(text);
});

test("who encrypts in another way is told what is wanted", () => {
  expect(otherwiseEncrypted({ type: "ipsec" }, "ipsec")).toBeUndefined();
  expect(otherwiseEncrypted(undefined, "ipsec")).toBe('it does not encrypt, wanted "ovs.encryption: ipsec" there');
  expect(otherwiseEncrypted({ type: "wireguard", key }, "ipsec")).toBe(
    'it encrypts by "wireguard", wanted "ovs.encryption: ipsec" there',
  );
});

test.each([
  "",
  "none",
  "ipsec:",
  "IPsec",
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
