import { X509Certificate } from "node:crypto";
import { expect, test } from "vitest";
import { type Kept, renewed } from "./renewal.ts";
import { bundleOf } from "./serving.ts";

const dayMs = 24 * 60 * 60_000;
const start = new Date("2026-03-01T00:00:00Z");
const after = (days: number): Date => new Date(start.getTime() + days * dayMs);
const authority = "pipette-controller-ca";
const names = ["pipette-controller.kube-system.svc", "127.0.0.1"];

const verifies = ({ cert, ca }: Kept): boolean =>
  bundleOf(ca).some(({ certificate }) => new X509Certificate(cert).verify(certificate.publicKey));

test("what is made is good for its names, and is left alone until it is time", () => {
  const made = renewed(undefined, { authority, names }, start);
  expect(verifies(made)).toBe(true);
  const server = new X509Certificate(made.cert);
  expect([server.checkHost(names[0] ?? ""), server.checkIP("127.0.0.1")]).toEqual(names);
  expect(renewed(made, { authority, names }, after(1))).toBe(made);
  expect(renewed(made, { authority, names }, after(119))).toBe(made);
});

test("over years a client that trusts what is published always trusts what the server shows, a day behind too", () => {
  let kept = renewed(undefined, { authority, names }, start);
  let yesterday = kept;
  const [servers, authorities] = [new Set<string>(), new Set<string>()];
  for (let day = 1; day < 10 * 365; day++) {
    const now = after(day);
    kept = renewed(kept, { authority, names }, now);
    const server = new X509Certificate(kept.cert);
    expect(server.validToDate.getTime() - now.getTime()).toBeGreaterThan(29 * dayMs);
    // Of the published authorities of a day before, one that holds now has signed it.
    const trusted = bundleOf(yesterday.ca).filter(({ certificate }) => certificate.validToDate > now);
    expect(
      trusted.some(({ certificate }) => server.checkIssued(certificate) && server.verify(certificate.publicKey)),
    ).toBe(true);
    servers.add(kept.cert);
    authorities.add(bundleOf(kept.ca)[0]?.text ?? "");
    expect(bundleOf(kept.ca).length).toBeLessThanOrEqual(2);
    yesterday = kept;
  }
  expect([servers.size, authorities.size]).toEqual([31, 6]);
});

const made = renewed(undefined, { authority, names }, start);
const other = renewed(undefined, { authority, names }, start);

test.each<[string, Partial<Kept>]>([
  ["is missing", { cert: "" }],
  ["is no certificate", { cert: "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n" }],
  ["is of another authority", { cert: other.cert, key: other.key }],
  ["is not of its key", { key: other.key }],
])("a server's certificate that %s is made anew, and its authority stays", (_, wrong) => {
  const again = renewed({ ...made, ...wrong }, { authority, names }, after(1));
  expect([again.ca, verifies(again)]).toEqual([made.ca, true]);
});

test.each<[string, Partial<Kept>]>([
  ["is missing", { ca: "" }],
  ["has no key", { caKey: "" }],
  ["is not of its key", { caKey: other.caKey }],
])("an authority that %s is made anew, beside what is still trusted", (_, wrong) => {
  const again = renewed({ ...made, ...wrong }, { authority, names }, after(1));
  expect(verifies(again)).toBe(true);
  expect(again.caKey).not.toBe(made.caKey);
  if (wrong.ca === undefined) expect(again.ca).toContain(made.ca);
});

test("another name needs another certificate", () => {
  const again = renewed(made, { authority, names: [...names, "antrea.kube-system.svc"] }, after(1));
  expect(new X509Certificate(again.cert).checkHost("antrea.kube-system.svc")).toBe("antrea.kube-system.svc");
});

test("after years in which nobody ran, all is made anew at once", () => {
  const again = renewed(made, { authority, names }, after(5 * 365));
  expect([verifies(again), bundleOf(again.ca).length]).toEqual([true, 1]);
});
