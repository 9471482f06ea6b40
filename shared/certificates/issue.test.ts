import { createPrivateKey, X509Certificate } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { execa } from "execa";
import { expect, test } from "vitest";
import { scratchDir } from "../../test/support/scratch-dir.ts";
import { issueAuthority, issueServer } from "./issue.ts";

const from = new Date("2026-01-01T00:00:00Z");
const until = new Date("2026-12-31T23:59:59Z");
const far = new Date("2051-02-03T04:05:06Z");

test("an authority and a server's certificate are what OpenSSL takes them for", async () => {
  using directory = scratchDir();
  const ca = issueAuthority("pipette-controller-ca", { from, until: far });
  const authority = { name: "pipette-controller-ca", key: createPrivateKey(ca.key) };
  const server = issueServer(["c.kube-system.svc", "127.0.0.1", "::1"], authority, { from, until });
  for (const [name, text] of Object.entries({ ca: ca.cert, server: server.cert }))
    writeFileSync(join(directory.path, name), text);
  const openssl = async (...words: string[]): Promise<string> =>
    (await execa("openssl", words, { cwd: directory.path })).stdout;
  const asked = ["-purpose", "sslserver", "-x509_strict", "-attime", String(until.getTime() / 1000 - 1)];
  expect(await openssl("verify", ...asked, "-verify_hostname", "c.kube-system.svc", "-CAfile", "ca", "server")).toBe(
    "server: OK",
  );
  expect(await openssl("verify", ...asked, "-verify_ip", "::1", "-CAfile", "ca", "server")).toBe("server: OK");
  const text = await openssl("x509", "-in", "server", "-noout", "-text");
  expect(text).toContain("DNS:c.kube-system.svc, IP Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:1");
  expect(text).toContain("Not After : Dec 31 23:59:59 2026 GMT");
  expect(await openssl("x509", "-in", "ca", "-noout", "-enddate")).toBe("notAfter=Feb  3 04:05:06 2051 GMT");
});

test("two certificates of one authority have serials and keys of their own, and the authority is known as one", () => {
  const ca = issueAuthority("a", { from, until });
  const authority = { name: "a", key: createPrivateKey(ca.key) };
  const [one, other] = [1, 2].map(() => new X509Certificate(issueServer(["x"], authority, { from, until }).cert));
  expect(one?.serialNumber).not.toBe(other?.serialNumber);
  expect(one?.publicKey.equals(other?.publicKey as never)).toBe(false);
  const known = new X509Certificate(ca.cert);
  expect([known.ca, one?.ca, one?.checkIssued(known), one?.verify(known.publicKey)]).toEqual([true, false, true, true]);
});
