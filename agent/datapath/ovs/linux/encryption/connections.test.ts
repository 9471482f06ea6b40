import { expect, test } from "vitest";
import { readAgreements } from "./connections.ts";
import { childrenOf } from "./userspace-connections.ts";

/** As ovs-monitor-ipsec 3.1.0 answers. */
const established =
  "{'p-n2-fa5b4f-in': {'p-n2-fa5b4f-in-1[1]': 'p-n2-fa5b4f-in-1[1]: ESTABLISHED 1 second ago, 172.30.0.1[172.30.0.1]...172.30.0.2[172.30.0.2]'," +
  " 'p-n2-fa5b4f-in-1{1}': 'p-n2-fa5b4f-in-1{1}:   172.30.0.1/32[udp/6081] === 172.30.0.2/32[udp]'}," +
  " 'p-n2-fa5b4f-out': {'p-n2-fa5b4f-out-1{2}': 'p-n2-fa5b4f-out-1{2}:   172.30.0.1/32[udp] === 172.30.0.2/32[udp/6081]'}}";
const port = "p-n2-fa5b4f";
const children = (...names: readonly string[]): string =>
  `{'x': {${names.map((name) => `'${name}': '${name}:   10.0.0.1/32 === 10.0.0.2/32'`).join(", ")}}}`;

test("where nothing waits for a first packet, what is there are keys", () => {
  expect([...readAgreements(established, false)]).toEqual([[port, { isInstalled: true, isAsking: false }]]);
});

test("where something does, keys are those beside it", () => {
  expect(readAgreements(established, true).get(port)?.isInstalled).toBe(false);
  const trapped = children(`${port}-in-1{1}`, `${port}-out-1{2}`, `${port}-out-1{3}`);
  expect(readAgreements(trapped, true).get(port)?.isInstalled).toBe(true);
});

test("keys for what comes are none for what goes", () => {
  expect(readAgreements(children(`${port}-in-1{1}`, `${port}-in-1{2}`), false).get(port)).toBeUndefined();
});

test("GRE has one connection for both, whatever digits its name ends with", () => {
  expect(readAgreements(children("p-w-123456-1{1}"), false).get("p-w-123456")?.isInstalled).toBe(true);
});

test("those of an earlier version do not count", () => {
  const both = children(`${port}-out-1{2}`, `${port}-out-1{3}`, `${port}-out-2{4}`);
  expect(readAgreements(both, true).get(port)?.isInstalled).toBe(false);
  expect(readAgreements(both, false).get(port)?.isInstalled).toBe(true);
});

test("a node that is being asked", () => {
  const line = "'p-a-000000-in-3[7]': 'p-a-000000-in-3[7]: CONNECTING, 10.0.0.1[%any]...10.0.0.2[%any]'";
  const asked = `{'p-a-000000-in': {${line}}}`;
  expect([...readAgreements(asked, true)]).toEqual([["p-a-000000", { isInstalled: false, isAsking: true }]]);
});

test.each(["", "{}", "None", "''''''", `'${"x".repeat(10_000)}[1]: CONNECTING`])(
  "of anything else nothing is read: %j",
  (text) => {
    expect([...readAgreements(text, false)]).toEqual([]);
  },
);

test("names to begin with, of the ports that are asked for alone", () => {
  const status = `Connections:
p-n2-fa5b4f-in-1:  %any...172.30.0.2  IKEv2, dpddelay=10s
p-n2-fa5b4f-in-1:   local:  uses pre-shared key authentication
p-n2-fa5b4f-in-1:   child:  dynamic[udp/6081] === dynamic[udp] TUNNEL, dpdaction=none
p-n2-fa5b4f-out-1:   child:  dynamic[udp] === dynamic[udp/6081] TUNNEL, dpdaction=none
p-n3-00aa11-4:   child:  dynamic[gre] === dynamic[gre] TUNNEL, dpdaction=none
`;
  expect(childrenOf(status, new Set([port]))).toEqual([`${port}-in-1`, `${port}-out-1`]);
  expect(childrenOf(status, new Set(["p-n3-00aa11"]))).toEqual(["p-n3-00aa11-4"]);
});
