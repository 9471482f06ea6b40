import { generateKeyPairSync, type KeyObject, X509Certificate } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { execa } from "execa";
import { describe, expect, test } from "vitest";
import { scratchDir } from "../../test/support/scratch-dir.ts";
import { issueAuthority, issueMember } from "./issue.ts";
import { makeRequest, readRequest } from "./request.ts";

const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const own = makeRequest("pipette.io", "node-a", privateKey);

/** What openssl makes of these words, in a directory of its own. */
async function openssl(files: Readonly<Record<string, string>>, ...words: readonly string[]): Promise<string> {
  using directory = scratchDir();
  for (const [name, text] of Object.entries(files)) writeFileSync(join(directory.path, name), text);
  return (await execa("openssl", words, { cwd: directory.path })).stdout;
}

/** A request that openssl makes. */
async function requestBy(...words: readonly string[]): Promise<string> {
  using directory = scratchDir();
  const file = join(directory.path, "request");
  const key = words.includes("-newkey") ? [] : ["-newkey", "rsa:2048"];
  await execa("openssl", ["req", "-new", ...key, "-nodes", "-keyout", "key", "-out", file, ...words], {
    cwd: directory.path,
  });
  return readFileSync(file, "utf8");
}

describe("a request", () => {
  test("of ours is what OpenSSL takes it for, and is signed", async () => {
    const text = await openssl({ own }, "req", "-in", "own", "-noout", "-text", "-verify", "-nameopt", "RFC2253");
    expect(text).toContain("Subject: CN=node-a,O=pipette.io");
    expect(text).toContain("DNS:node-a");
    expect(text).toContain("Signature Algorithm: sha256WithRSAEncryption");
    expect(readRequest(own)).toMatchObject({
      subject: [
        { id: "2.5.4.10", value: "pipette.io" },
        { id: "2.5.4.3", value: "node-a" },
      ],
      ...{ dnsNames: ["node-a"], otherNames: [], otherExtensions: [] },
    });
  });

  test.each<[string, readonly string[], object]>([
    [
      "of an elliptic curve",
      ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-subj", "/O=x/CN=y"],
      { dnsNames: [], subject: [{ value: "x" }, { value: "y" }] },
    ],
    [
      "with names of all kinds",
      ["-subj", "/CN=y", "-addext", "subjectAltName=DNS:a,DNS:b,IP:192.0.2.1,URI:x:y,email:a@b"],
      { dnsNames: ["a", "b"], otherNames: [0x87, 0x86, 0x81], otherExtensions: [] },
    ],
    [
      "for an authority",
      ["-subj", "/CN=y", "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=keyCertSign"],
      { otherExtensions: ["2.5.29.19", "2.5.29.15"] },
    ],
    ["with SHA-512", ["-sha512", "-subj", "/CN=\u00e4", "-utf8"], { subject: [{ value: "\u00e4" }] }],
  ])("of OpenSSL's, %s, is read as it is", async (_, words, is) => {
    expect(readRequest(await requestBy(...words))).toMatchObject(is);
  });

  test.each<[string, readonly string[], RegExp]>([
    ["with SHA-1", ["-sha1", "-subj", "/CN=y"], /signed in a way that is not known here/],
    ["with two names in one part", ["-subj", "/O=x+CN=y", "-multivalue-rdn"], /[0-9]+ bytes follow/],
  ])("of OpenSSL's, %s, is refused", async (_, words, is) => {
    const text = await requestBy(...words);
    expect(() => readRequest(text)).toThrow(is);
  });

  const bytes = Uint8Array.fromBase64(own.replaceAll(/-----.*-----|\n/g, ""));
  const asPem = (changed: Uint8Array): string =>
    `-----BEGIN CERTIFICATE REQUEST-----\n${changed.toBase64()}\n-----END CERTIFICATE REQUEST-----\n`;
  const changedAt = (at: number, to: number): string => asPem(bytes.map((byte, index) => (index === at ? to : byte)));

  test.each<[string, string, RegExp]>([
    ["nothing", "", /no PEM of one CERTIFICATE REQUEST/],
    ["two", `${own}${own}`, /no PEM/],
    ["another block", own.replaceAll("CERTIFICATE REQUEST", "CERTIFICATE"), /no PEM/],
    ["text before it", `Request:\n${own}`, /no PEM/],
    ["headers", own.replace("-----\n", "-----\nProc-Type: 4\n\n"), /no PEM/],
    ["no base64", own.replace("MII", "M=I"), /no PEM/],
    ["one without an end", asPem(bytes.subarray(0, -1)), /longer than what holds it/],
    ["bytes behind it", asPem(new Uint8Array([...bytes, 0])), /1 bytes follow/],
    ["another signature", changedAt(bytes.length - 1, (bytes.at(-1) ?? 0) ^ 1), /not signed with the key/],
    ["a length of BER", changedAt(1, 0x80), /none of DER's/],
    ["another version", asPem(withVersion(bytes, 1)), /no version that there is/],
    ["one that is too long", asPem(new Uint8Array(64 * 1024)), /characters, wanted/],
  ])("that is %s is refused", (_, text, is) => {
    expect(() => readRequest(text)).toThrow(is);
  });

  test("cut off anywhere is refused in a sentence", () => {
    for (let length = 0; length < bytes.length; length++)
      expect(() => readRequest(asPem(bytes.subarray(0, length)))).toThrow(/^(it|a|an) /);
  });
});

/** The first integer of it is the version. */
function withVersion(bytes: Uint8Array, version: number): Uint8Array {
  const at = bytes.findIndex((byte, index) => byte === 0x02 && bytes[index + 1] === 1 && bytes[index + 2] === 0);
  return bytes.map((byte, index) => (index === at + 2 ? version : byte));
}

const validity = { from: new Date("2026-01-01T00:00:00Z"), until: new Date("2026-12-31T00:00:00Z") };
const attime = String(Date.parse("2026-06-01T00:00:00Z") / 1000);

/** An authority that OpenSSL makes. */
async function authorityBy(...words: readonly string[]): Promise<{ cert: string; key: string }> {
  using directory = scratchDir();
  const [cert, key] = ["cert", "key"].map((name) => join(directory.path, name));
  await execa("openssl", [
    ...[
      "req",
      "-x509",
      "-nodes",
      "-keyout",
      key ?? "",
      "-out",
      cert ?? "",
      "-days",
      "9",
      "-subj",
      "/C=XX/O=\u00e4/CN=A",
    ],
    ...["-utf8", ...words],
  ]);
  return { cert: readFileSync(cert ?? "", "utf8"), key: readFileSync(key ?? "", "utf8") };
}

describe("a certificate for a node", () => {
  const issued = (authority: { cert: string; key: string }, publicKey: KeyObject): X509Certificate =>
    new X509Certificate(issueMember({ organization: "pipette.io", name: "node-a", publicKey }, authority, validity));

  test("is what OpenSSL takes it for: the node's name, its key, and tunnels of IPsec alone", async () => {
    const ca = issueAuthority("a", validity);
    const { publicKey } = readRequest(own);
    const cert = issueMember({ organization: "pipette.io", name: "node-a", publicKey }, ca, validity);
    const files = { ca: ca.cert, cert };
    const asked = ["-x509_strict", "-attime", attime, "-verify_hostname", "node-a", "-CAfile", "ca", "cert"];
    expect(await openssl(files, "verify", ...asked)).toBe("cert: OK");
    await expect(openssl(files, "verify", "-purpose", "sslserver", ...asked)).rejects.toThrow(
      /unsuitable certificate purpose/,
    );
    const text = await openssl(files, "x509", "-in", "cert", "-noout", "-text", "-nameopt", "RFC2253");
    expect(text).toContain("Subject: CN=node-a,O=pipette.io");
    expect(text).toMatch(/Extended Key Usage: *\n *IPSec Tunnel\n/);
    expect(text).toMatch(/Subject Alternative Name: *\n *DNS:node-a\n/);
    expect(new X509Certificate(cert).checkPrivateKey(privateKey)).toBe(true);
  });

  test.each<[string, readonly string[]]>([
    ["RSA", ["-newkey", "rsa:2048"]],
    ["P-256", ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]],
    [
      "P-384, and says nothing of its key",
      ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-384", "-addext", "subjectKeyIdentifier=none"],
    ],
  ])("by an authority of somebody else's, of %s, names it as that names itself", async (_, words) => {
    const ca = await authorityBy(...words);
    const certificate = issued(ca, readRequest(own).publicKey);
    const known = new X509Certificate(ca.cert);
    expect([certificate.checkIssued(known), certificate.verify(known.publicKey)]).toEqual([true, true]);
    const files = { ca: ca.cert, cert: certificate.toString() };
    expect(await openssl(files, "verify", "-no_check_time", "-CAfile", "ca", "cert")).toBe("cert: OK");
  });

  test("is refused by an authority whose key does not sign here", async () => {
    const ca = await authorityBy("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-521");
    expect(() => issued(ca, readRequest(own).publicKey)).toThrow(/wanted RSA, P-256 or P-384/);
  });
});
