import { describe, expect, test } from "vitest";
import type { CniResult } from "../../../shared/cni/types.ts";
import { parseCidr, parseIp } from "../../../shared/net/ip.ts";
import type { Link, LinkAddress, Route } from "../../protocols/netlink/mod.ts";
import { comparePodEnd } from "./compare.ts";
import type { PodEnd } from "./pod-end.ts";

const cidr = (text: string) => parseCidr(text)!;
const link = { index: 7, name: "eth0", up: true, mac: "02:00:00:00:00:07", mtu: 1400 } as Link;
const host = { index: 3, peerIndex: 7 } as Link;
const address = (text: string, ready = true): LinkAddress => ({ index: 7, address: cidr(text), ready }) as LinkAddress;
const route = (dst: string, gateway?: string, table = 254): Route =>
  ({
    dst: cidr(dst),
    table,
    hops: [{ index: 7, ...(gateway === undefined ? {} : { gateway: parseIp(gateway)! }) }],
  }) as unknown as Route;

interface Standing {
  readonly link?: Partial<Link> | undefined;
  readonly addresses?: readonly LinkAddress[];
  readonly routes?: readonly Route[];
  readonly host?: Link;
}
const podEnd = (standing: Standing): PodEnd =>
  ({
    link: () => ("link" in standing && standing.link === undefined ? undefined : { ...link, ...standing.link }),
    addresses: () => standing.addresses ?? [address("10.1.0.2/24"), address("10.9.9.9/24")],
    routes: () => standing.routes ?? [route("10.1.0.0/24"), route("0.0.0.0/0", "10.1.0.1")],
  }) as unknown as PodEnd;

const prevResult = (changes: object = {}): CniResult =>
  ({
    interfaces: [
      { name: "br0" },
      { name: "eth0" },
      { name: "eth0", sandbox: "/run/netns/a", mac: "02:00:00:00:00:07", mtu: 1400 },
    ],
    ips: [{ address: cidr("10.1.0.2/24"), gateway: parseIp("10.1.0.1"), interface: 2 }],
    routes: [{ dst: cidr("0.0.0.0/0") }],
    ...changes,
  }) as unknown as CniResult;

/** What CHECK says of it; nothing where all is as it should be. */
function told(standing: Standing = {}, result = prevResult()): string {
  try {
    comparePodEnd(podEnd(standing), "eth0", standing.host ?? host, result);
    return "";
  } catch (caught) {
    expect(caught).toMatchObject({ code: 103 });
    return (caught as Error).message;
  }
}
const eth0 = (changes: object) =>
  prevResult({ interfaces: [{}, {}, { name: "eth0", sandbox: "/run/netns/a", ...changes }] });
const ips = (...list: readonly object[]) => prevResult({ ips: list, routes: [] });
const routes = (...list: readonly object[]) => prevResult({ routes: list });
const its = `Cannot confirm the sandbox's interface "eth0": it is`;

describe("a sandbox's side", () => {
  test.each<readonly [string, Standing, CniResult]>([
    ["as it was made, with more beside it", {}, prevResult()],
    ["without a word of its MAC and MTU", {}, eth0({})],
    ["with neither MAC nor MTU", {}, eth0({ mac: "", mtu: 0 })],
    ["with its MAC in capitals", { link: { mac: "02:00:00:00:00:0a" } }, eth0({ mac: "02:00:00:00:00:0A" })],
    ["with an address that is of no interface", {}, ips({ address: cidr("10.1.0.2/24") })],
    ["with an address that is of another interface", {}, ips({ address: cidr("192.0.2.1/24"), interface: 0 })],
    ["with a route of its own gateway", {}, routes({ dst: cidr("0.0.0.0/0"), gw: parseIp("10.1.0.1") })],
    [
      "with a route in a table of its own",
      { routes: [route("0.0.0.0/0", "10.1.0.1", 7)] },
      routes({ dst: cidr("0.0.0.0/0"), table: 7 }),
    ],
  ])("is right: %s", (_name, standing, result) => {
    expect(told(standing, result)).toBe("");
  });

  test.each<readonly [Standing, CniResult, string]>([
    [{ link: undefined }, prevResult(), `${its} missing, wanted the other end of our pair`],
    [
      { host: { ...host, peerIndex: 8 } as Link },
      prevResult(),
      `${its} another interface, wanted the other end of our pair`,
    ],
    [{ link: { up: false } }, prevResult(), `${its} down, wanted up`],
    [{}, prevResult({ interfaces: [] }), `${its} not in prevResult, wanted an interface of it with a sandbox`],
    [{}, prevResult({ interfaces: [{ name: "eth0", sandbox: "" }] }), `${its} not in prevResult`],
    [{}, prevResult({ interfaces: [{ name: "eth1", sandbox: "/x" }] }), `${its} not in prevResult`],
    [
      {},
      eth0({ mac: "02:00:00:00:00:08" }),
      'Cannot confirm the hardware address of "eth0": it is "02:00:00:00:00:07", wanted "02:00:00:00:00:08"',
    ],
    [{}, eth0({ mtu: 1500 }), 'Cannot confirm the MTU of "eth0": it is 1400, wanted 1500'],
    [{ addresses: [] }, prevResult(), 'the address "10.1.0.2/24" of "eth0": it is missing, wanted on the interface'],
    [{ addresses: [address("10.1.0.2/16")] }, prevResult(), '"10.1.0.2/24" of "eth0": it is /16, wanted /24'],
    [{ addresses: [address("10.1.0.2/24", false)] }, prevResult(), "it is not usable yet, wanted usable"],
    [{ addresses: [] }, ips({ address: cidr("10.1.0.2/24") }), "missing, wanted on the interface"],
    [
      { routes: [] },
      prevResult(),
      'the route to "0.0.0.0/0" by way of "10.1.0.1": it is missing, wanted in the sandbox',
    ],
    [{ routes: [route("0.0.0.0/0", "10.1.0.9")] }, prevResult(), "missing, wanted in the sandbox"],
    [{ routes: [route("0.0.0.0/0")] }, prevResult(), "missing, wanted in the sandbox"],
    [{ routes: [route("0.0.0.0/1", "10.1.0.1")] }, prevResult(), "missing, wanted in the sandbox"],
    [
      { routes: [route("128.0.0.0/1", "10.1.0.1")] },
      routes({ dst: cidr("0.0.0.0/1") }),
      "missing, wanted in the sandbox",
    ],
    [{}, routes({ dst: cidr("0.0.0.0/0"), table: 7 }), "missing, wanted in the sandbox"],
    [
      {},
      routes({ dst: cidr("0.0.0.0/0") }, { dst: cidr("10.7.0.0/16"), gw: parseIp("10.1.0.1") }),
      'the route to "10.7.0.0/16"',
    ],
    [{}, prevResult({ ips: [], routes: [{ dst: cidr("10.7.0.0/16") }] }), 'the route to "10.7.0.0/16": it is missing'],
  ])("is told by its first difference: %#", (standing, result, wanted) => {
    expect(told(standing, result)).toContain(wanted);
  });

  test("needs no gateway where it has none", () => {
    expect(told({}, prevResult({ ips: [], routes: [{ dst: cidr("10.1.0.0/24") }] }))).toBe("");
  });
});
