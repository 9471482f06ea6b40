import { createPublicKey, generateKeyPairSync } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { execa } from "execa";
import { describe, expect, test } from "vitest";
import { authority, nodeKeys, nodePair } from "../../test/fakes/node-pairs.ts";
import { scratchDir } from "../../test/support/scratch-dir.ts";
import { type Pair, wrongPair } from "./pair-check.ts";

const good = nodePair();
const wrong = (pair: Partial<Pair>, now = new Date()): string | undefined =>
  wrongPair({ ...good, ...pair }, "node-a", now);
const ended = (): Pair => nodePair({ ca: old, from: -40, until: 30 });
const old = authority("old");
const elliptic = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey;
const hoursFromNow = (hours: number): Date => new Date(Date.now() + hours * 60 * 60_000);

describe("a pair", () => {
  test("that is in order is used, also among several authorities and their notes", () => {
    expect(wrong({})).toBeUndefined();
    expect(wrong({ ca: `the old one\n${old.cert}and the new one\n${good.ca}` })).toBeUndefined();
  });

  test.each<[string, Partial<Pair>, RegExp]>([
    ["no certificate", { certificate: "x" }, /certificate cannot be read/],
    ["no key", { privateKey: "x" }, /private key cannot be read/],
    ["another key", { privateKey: nodeKeys[1] ?? "" }, /private key is not the certificate's/],
    [
      "a key that the monitor does not know",
      { privateKey: String(elliptic.export({ type: "pkcs8", format: "pem" })) },
      /of kind "ec", wanted RSA/,
    ],
    ["another node's name", nodePair({ node: "node-b" }), /subject is "O=pipette.io, CN=node-b", wanted "CN=node-a"/],
    ["one that holds later", nodePair({ from: 1 }), /holds from .*: one of two clocks is wrong/],
    ["one that has ended", nodePair({ from: -2, until: -1 }), /has ended at .*, and this node's clock says/],
    ["no authority", { ca: "" }, /no certificate of an authority/],
    [
      "another authority",
      { ca: old.cert },
      /signed by none of the authorities that hold now, which it says is "CN=ca"/,
    ],
    ["another authority of the same name", { ca: authority().cert }, /signed by none/],
    [
      "an authority that cannot be read",
      { ca: `${good.ca}${good.ca.replace("MII", "AAA")}` },
      /of 2 authorities 1 cannot/,
    ],
    ["an authority that is none", { ca: `${good.ca}${good.certificate}` }, /"O=pipette.io, CN=node-a" is among/],
    ["too many authorities", { ca: good.ca.repeat(17) }, /there are 17 authorities/],
  ])("with %s is refused", (_, pair, is) => {
    expect(wrong(pair)).toMatch(is);
  });

  test("is refused once its authority has ended, before it ends itself", () => {
    expect(wrong(ended())).toBeUndefined();
    const longer = nodePair({ until: 3000 });
    expect(wrong(longer, hoursFromNow(999))).toBeUndefined();
    expect(wrong(longer, hoursFromNow(1001))).toMatch(/signed by none of the authorities that hold now/);
  });
});

/** By OpenSSL: a root, one below it, and a node's certificate of that. */
async function chain(): Promise<{ root: string; below: string; own: string }> {
  using directory = scratchDir();
  const at = (name: string): string => join(directory.path, name);
  writeFileSync(at("node.key"), nodeKeys[0] ?? "");
  const make = (name: string, ...words: readonly string[]) =>
    execa("openssl", ["req", "-x509", "-out", at(name), "-days", "2", ...words], { cwd: directory.path });
  const newKey = (name: string): readonly string[] => ["-newkey", "rsa:2048", "-nodes", "-keyout", at(name)];
  const isCa = ["-addext", "basicConstraints=critical,CA:TRUE"];
  await make("root", ...newKey("root.key"), "-subj", "/CN=root", ...isCa);
  await make(
    "below",
    ...newKey("below.key"),
    "-subj",
    "/CN=below",
    "-CA",
    at("root"),
    "-CAkey",
    at("root.key"),
    ...isCa,
  );
  const own = ["-subj", "/OU=nodes/CN=node-a", "-addext", "subjectAltName=DNS:other,DNS:node-a"];
  const leaf = ["-addext", "basicConstraints=CA:FALSE", "-key", at("node.key")];
  await make("own", ...leaf, ...own, "-CA", at("below"), "-CAkey", at("below.key"));
  const text = (name: string): string => readFileSync(at(name), "utf8");
  return { root: text("root"), below: text("below"), own: text("own") };
}

test("a chain is followed up to who has signed himself", async () => {
  const { root, below, own } = await chain();
  expect(wrong({ certificate: own, ca: `${below}${root}` })).toBeUndefined();
  expect(wrong({ certificate: own, ca: below })).toMatch(/"CN=below" is signed by none .* "CN=root"/);
  expect(wrong({ certificate: own, ca: root })).toMatch(/"OU=nodes, CN=node-a" is signed by none/);
});

test.each([
  ["a name alone", "/CN=node-a", "DNS:node-a", /"CN=node-a" after another part/],
  ["a name before another part", "/CN=node-a/O=x", "DNS:node-a", /wanted "CN=node-a" after another part/],
  ["no DNS name", "/O=x/CN=node-a", "IP:192.0.2.1", /names are "IP Address:192.0.2.1", wanted "DNS:node-a"/],
  ["a DNS name for all", "/O=x/CN=node-a", "DNS:*", /wanted "DNS:node-a" among them/],
])("a certificate with %s is refused", async (_, subject, names, is) => {
  using directory = scratchDir();
  const file = join(directory.path, "own");
  writeFileSync(join(directory.path, "key"), nodeKeys[0] ?? "");
  await execa(
    "openssl",
    [
      ...["req", "-x509", "-key", "key", "-out", file, "-days", "2", "-subj", subject],
      ...["-addext", `subjectAltName=${names}`],
    ],
    { cwd: directory.path },
  );
  const certificate = readFileSync(file, "utf8");
  expect(createPublicKey(nodeKeys[0] ?? "").equals(createPublicKey(certificate))).toBe(true);
  expect(wrong({ certificate, ca: certificate })).toMatch(is);
});
