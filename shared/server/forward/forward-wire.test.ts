import { expect, test } from "vitest";
import { decodeAnswers, encodeRequest } from "../../../test/fakes/forward-request.ts";
import { encodeDone, encodePass, encodeTaken, maxAnswerBytes, readHead, readVariables } from "./forward-wire.ts";

const hex = (text: string): Uint8Array => Uint8Array.fromHex(text.replaceAll(/\s/g, ""));
const ascii = (text: string): Uint8Array => new TextEncoder().encode(text);

// The bytes of forward/PROTOCOL.md.
const golden = hex(`
  00 50 46 01  20 00 00 00  02 00 00 00  00 00 00 00
  40 42 0f 00 00 00 00 00   80 84 1e 00 00 00 00 00
  00 01 02 03 04 05 06 07   08 09 0a 0b 0c 0d 0e 0f
  43 4e 49 5f 43 4f 4d 4d 41 4e 44 3d 41 44 44 00
  43 4e 49 5f 49 46 4e 41 4d 45 3d 65 74 68 30 00
  7b 7d`);

test("the protocol's own example is read, and made by the tests' client", () => {
  const buildId = Uint8Array.from({ length: 16 }, (_, i) => i);
  expect(readHead(golden.subarray(0, 48))).toEqual({
    t: "call",
    head: {
      envBytes: 32,
      stdinBytes: 2,
      face: "pipette",
      startedUptimeMs: 1000,
      untilUptimeMs: 2000,
      buildId,
    },
  });
  expect(readVariables(golden.subarray(48, 80))).toEqual({ CNI_COMMAND: "ADD", CNI_IFNAME: "eth0" });
  const env = { CNI_COMMAND: "ADD", CNI_IFNAME: "eth0" };
  expect(encodeRequest({ env, stdin: "{}", startedUs: 1_000_000, buildId })).toEqual(golden);
});

test("answers have the bytes of the protocol's examples", () => {
  expect(encodeDone({ status: 1, stdout: "{}\n", stderr: "x\n" })).toEqual(
    hex("00504101 01000000 01000000 03000000 02000000 00000000 7b7d0a 780a"),
  );
  expect(encodePass()).toEqual(hex("00504101 02000000 00000000 00000000 00000000 00000000"));
  expect(encodeTaken(30_000)).toEqual(hex("00504101 03000000 00000000 00000000 00000000 30750000"));
  expect(decodeAnswers(encodeTaken(30_000))).toMatchObject([{ kind: "taken", moreMs: 30_000 }]);
  expect(encodeDone({ status: 0, stdout: "x".repeat(maxAnswerBytes), stderr: "" })).toHaveLength(maxAnswerBytes + 24);
  expect(encodeDone({ status: 0, stdout: "x".repeat(maxAnswerBytes), stderr: "y" })).toBeUndefined();
});

test.each([
  ["another protocol", { protocol: 2 }, 5],
  ["another face", { face: 2 }, 5],
  ["no variables", { envBytes: 0 }, 2],
  ["too many variables", { envBytes: 65_537 }, 65_539],
  ["a long configuration", { stdinBytes: 65_537 }, 65_540],
  ["lengths without measure", { envBytes: 0xffff_ffff, stdinBytes: 0xffff_ffff }, 0x1_ffff_fffe],
])("a head with %s is none of ours", (_, change, textBytes) => {
  const bytes = encodeRequest({ env: ascii("A=\0"), stdin: "{}", ...change });
  expect(readHead(bytes.subarray(0, 48))).toEqual({ t: "other", textBytes });
});

test("what is no head at all is told apart", () => {
  expect(readHead(new Uint8Array(48)).t).toBe("garbage");
  expect(readHead(new Uint8Array(48).fill(0x50)).t).toBe("garbage");
});

test.each([
  ["no end", ascii("A=1")],
  ["a name twice", ascii("A=1\0A=2\0")],
  ["no name", ascii("=1\0")],
  ["no value", ascii("A\0")],
  ["an empty one", ascii("A=1\0\0")],
  ["bytes that are no text", new Uint8Array([0x41, 0x3d, 0xff, 0])],
])("variables with %s cannot be read", (_, bytes) => {
  expect(readVariables(bytes)).toBeUndefined();
});

test("variables keep what their values are made of", () => {
  expect(readVariables(ascii("A=\0B=x=y;z\n網\0__proto__=p\0"))).toEqual(
    Object.fromEntries([
      ["A", ""],
      ["B", "x=y;z\n網"],
      ["__proto__", "p"],
    ]),
  );
});
