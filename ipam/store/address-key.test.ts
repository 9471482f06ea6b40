import { expect, test } from "vitest";
import { formatIp, parseIp } from "../../shared/ip.ts";
import { ipOfKey, ipOfNumber, keyOf, numberOf, numberOfKey } from "./address-key.ts";

const ordered = [
  "::",
  "::1",
  "0.0.0.0",
  "9.255.255.255",
  "10.0.0.2",
  "10.0.0.10",
  "255.255.255.255",
  "fd00::1",
  "fd00::a",
  "fd00::10",
  "ff00::",
];

test("keys sort by value, of either family, and lead back to their addresses", () => {
  const keys = ordered.map((text) => keyOf(parseIp(text)!));
  expect(keys.every((key) => key.length === 16)).toBe(true);
  expect([...keys].sort(Buffer.compare)).toEqual(keys);
  expect(keys.map((key) => formatIp(ipOfKey(key)))).toEqual(ordered);
});

test("numbers count on from an address in its own family", () => {
  const last = parseIp("255.255.255.255")!;
  expect(ipOfNumber(4, numberOf(last) + 1n)).toEqual({ family: 4, value: 1n << 32n });
  expect(numberOfKey(keyOf(last))).toBe(numberOf(last));
});
