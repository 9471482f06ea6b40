import { expect, test } from "vitest";
import { formatIp, parseIp } from "../../shared/net/ip.ts";
import { distance, ipOfKey, ipOfNumber, keyBefore, keyBehind, keyOf, numberOf, numberOfKey } from "./address-key.ts";

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
  const behind = ipOfNumber(4, numberOf(last) + 1n);
  expect(numberOfKey(keyOf(behind))).toBe(numberOf(behind));
});

test("distances are exact across the places where the lower bytes begin anew", () => {
  const from = (text: string, to: string) => distance(keyOf(parseIp(text)!), keyOf(parseIp(to)!));
  expect(from("10.0.0.1", "10.0.0.1")).toBe(0);
  expect(from("10.0.255.255", "10.1.0.0")).toBe(1);
  expect(from("0.0.0.0", "255.255.255.255")).toBe(2 ** 32 - 1);
  expect(from("fd00::ffff:ffff:fffe", "fd00::1:0:0:3")).toBe(5);
  expect(from("fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "fe00::")).toBe(1);
});

test.each(["::", "10.0.0.1", "10.0.0.255", "10.255.255.255", "255.255.255.255", "fd00::ffff:ffff:ffff:ffff"])(
  "the key behind that of %s is of the next number, and before it comes its own",
  (text) => {
    const key = keyOf(parseIp(text)!);
    expect(numberOfKey(keyBehind(key))).toBe(numberOfKey(key) + 1n);
    expect(keyBefore(keyBehind(key))).toEqual(key);
  },
);

test("no key lies behind the last one or before the first", () => {
  const last = new Uint8Array(16).fill(255);
  expect(keyBehind(last)).toEqual(last);
  expect(keyBefore(new Uint8Array(16))).toEqual(new Uint8Array(16));
});
