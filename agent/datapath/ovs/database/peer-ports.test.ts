import { expect, test } from "vitest";
import { parseIp } from "../../../../shared/net/ip.ts";
import type { IpsecOptions } from "../options.ts";
import { type PeerPortOptions, peerPortNames, peerPortOptions } from "./peer-ports.ts";

const tunnel = { type: "geneve", name: "tun0", checksum: false } as const;
const kernel: IpsecOptions = { esp: "kernel", forceUdp: false, charon: "" };
const port = { node: "worker-2.example.org", remote: parseIp("192.0.2.2")! };
const options = (how: Partial<PeerPortOptions>) =>
  peerPortOptions(port, { tunnel, ipsec: kernel, psk: "secret", ...how });

test("the monitor is told the other end and the secret, and the switch that any project's packets belong to it", () => {
  expect(options({})).toEqual({
    remote_ip: "192.0.2.2",
    key: "flow",
    psk: "secret",
    ipsec_dpddelay: "10s",
    ipsec_dpdaction: "hold",
  });
});

test("with certificates the other node's name", () => {
  const { psk: _, ...how } = { tunnel, ipsec: kernel, psk: "" };
  const given = peerPortOptions(port, how);
  expect(given["remote_name"]).toBe("worker-2.example.org");
  expect(given).not.toHaveProperty("psk");
});

test("what strongSwan needs where addresses are translated, and where it encrypts itself", () => {
  expect(options({ ipsec: { ...kernel, forceUdp: true } })["ipsec_forceencaps"]).toBe("yes");
  expect(options({ ipsec: { ...kernel, esp: "userspace" } })).toMatchObject({
    ipsec_type: "tunnel",
    ipsec_auto: "add",
    ipsec_dpdaction: "clear",
  });
  expect(options({ tunnel: { ...tunnel, checksum: true } })["csum"]).toBe("true");
});

const free = (): boolean => false;
const nameOf = (node: string): string => peerPortNames([node], new Map(), free).get(node)!;

test.each(["n", "worker-2.example.org", "a".repeat(253), "node-in", "10-0-0-7", "x-out"])(
  "%s has a name that the switch takes, and that is no part of a connection's own endings",
  (node) => {
    expect(nameOf(node)).toMatch(/^p-[a-z0-9]{1,6}-[0-9a-f]{6}$/);
    expect(nameOf(node).length).toBeLessThanOrEqual(15);
    expect(nameOf(node)).toBe(nameOf(node));
  },
);

test("nodes with the same end have different names", () => {
  const names = ["a-worker", "b-worker", "c-worker"].map(nameOf);
  expect(new Set(names).size).toBe(3);
});

test("a name that something has is not taken, and a port keeps its own", () => {
  const first = nameOf("n2");
  const second = peerPortNames(["n2"], new Map(), (name) => name === first).get("n2")!;
  expect(second).not.toBe(first);
  // What another node's port has is taken too, whoever came first.
  expect(peerPortNames(["n2", "n9"], new Map([["n9", first]]), free)).toEqual(
    new Map([
      ["n2", second],
      ["n9", first],
    ]),
  );
  expect(peerPortNames(["n2"], new Map([["n2", second]]), free).get("n2")).toBe(second);
});

test("a node for which every name is taken gets none", () => {
  expect(peerPortNames(["n2"], new Map(), () => true).size).toBe(0);
});
