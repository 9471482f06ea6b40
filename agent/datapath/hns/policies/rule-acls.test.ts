import { describe, expect, test } from "vitest";
import { type Cidr, type Ip, parseCidr, parseIp } from "../../../../shared/net/ip.ts";
import type { BlockPeer } from "../../../../shared/policy/mod.ts";
import { ownerOf } from "../../../../test/fakes/hns/hns-node.ts";
import type { PodRule } from "../../policies.ts";
import { aclsOf } from "./rule-acls.ts";

const ip = (text: string): Ip => parseIp(text)!;
const cidr = (text: string): Cidr => parseCidr(text)!;
const block = (text: string, ...except: string[]): BlockPeer => ({
  t: "block",
  cidr: cidr(text),
  except: except.map(cidr),
});

const rule = (more: Partial<PodRule>): PodRule => ({
  id: "r",
  policy: { namespace: "shop", name: "web", uid: "u" },
  direction: "ingress",
  targets: [ownerOf("a")],
  ...more,
});

/** As `Direction Protocols RemoteAddresses LocalPorts RemotePorts`. */
function texts(more: Partial<PodRule>): readonly string[] {
  const acls = aclsOf(rule(more));
  if ("reason" in acls) return [acls.reason];
  for (const acl of acls)
    expect(acl).toMatchObject({ Id: "pipette-shop-web", Action: "Allow", RuleType: "Switch", Priority: 1001 });
  return acls.map(({ Direction, Protocols = "*", RemoteAddresses = "*", LocalPorts = "*", RemotePorts = "*" }) =>
    [Direction, Protocols, RemoteAddresses, LocalPorts, RemotePorts].join(" "),
  );
}

const members = (...ips: string[]) => ({ sets: [{ name: "s", ips: ips.map(ip) }], blocks: [] });

describe("a rule as ACLs", () => {
  test.each<[string, Partial<PodRule>, readonly string[]]>([
    ["anybody, at any port", {}, ["In * * * *"]],
    ["the same outwards", { direction: "egress" }, ["Out * * * *"]],
    [
      "two pods that are neighbours, and one that is not",
      { peers: members("10.0.0.2", "10.0.0.3", "10.0.1.9") },
      ["In * 10.0.0.2/31,10.0.1.9/32 * *"],
    ],
    ["a pod's address of IPv6, which pods here do not have", { peers: members("fd00::1") }, []],
    ["no peer that anybody is", { peers: { sets: [], blocks: [] } }, []],
    ["a block, host bits masked", { peers: { sets: [], blocks: [block("10.1.2.3/4")] } }, ["In * 0.0.0.0/4 * *"]],
    [
      "a block and its exception",
      { peers: { sets: [], blocks: [block("10.0.0.0/29", "10.0.0.2/32")] } },
      ["In * 10.0.0.0/31,10.0.0.3/32,10.0.0.4/30 * *"],
    ],
    [
      "what one block excepts and another has",
      { peers: { sets: [], blocks: [block("10.0.0.0/30", "10.0.0.0/32"), block("10.0.0.0/32")] } },
      ["In * 10.0.0.0/30 * *"],
    ],
    ["an exception of all", { peers: { sets: [], blocks: [block("10.0.0.0/30", "10.0.0.0/8")] } }, []],
    [
      "everywhere in IPv4, and in IPv6",
      { peers: { sets: [], blocks: [block("0.0.0.0/0"), block("::/0")] } },
      ["In * 0.0.0.0/0 * *"],
    ],
    ["a port", { ports: [{ protocol: "TCP", first: 80 }] }, ["In 6 * 80 *"]],
    ["a port of the other end", { direction: "egress", ports: [{ protocol: "UDP", first: 53 }] }, ["Out 17 * * 53"]],
    [
      "ranges that meet, and another",
      {
        ports: [
          { protocol: "TCP", first: 80, last: 85 },
          { protocol: "TCP", first: 84, last: 90 },
          { protocol: "TCP", first: 443 },
        ],
      },
      ["In 6 * 80-90,443 *"],
    ],
    [
      "two protocols",
      {
        ports: [
          { protocol: "UDP", first: 53 },
          { protocol: "TCP", first: 53 },
        ],
      },
      ["In 6 * 53 *", "In 17 * 53 *"],
    ],
    ["all ports of a protocol", { ports: [{ protocol: "TCP" }] }, ["In 6 * * *"]],
    [
      "all ports of a protocol, as a range",
      {
        ports: [
          { protocol: "TCP", first: 1, last: 65_535 },
          { protocol: "TCP", first: 0 },
        ],
      },
      ["In 6 * * *"],
    ],
    ["no port that anybody has", { ports: [] }, []],
    [
      "peers and ports",
      { peers: members("10.0.0.2"), ports: [{ protocol: "TCP", first: 80 }, { protocol: "UDP" }] },
      ["In 6 10.0.0.2/32 80 *", "In 17 10.0.0.2/32 * *"],
    ],
    [
      "SCTP, whatever there is beside",
      {
        ports: [
          { protocol: "TCP", first: 80 },
          { protocol: "SCTP", first: 80 },
        ],
      },
      ["it names SCTP, which pods on Windows do not have"],
    ],
  ])("%s", (_, more, expected) => expect(texts(more)).toEqual(expected));

  test("more addresses than HNS should get in one ACL are several ACLs, with all of them", () => {
    const ips = Array.from({ length: 9_000 }, (_, i) => `10.${i >> 13}.${(i >> 5) & 255}.${(i & 31) * 2}`);
    const acls = aclsOf(rule({ peers: members(...ips) }));
    if ("reason" in acls) throw new Error(acls.reason);
    const lists = acls.map(({ RemoteAddresses = "" }) => RemoteAddresses.split(","));
    expect(lists.map(({ length }) => length)).toEqual([4_000, 4_000, 1_000]);
    expect(new Set(lists.flat())).toEqual(new Set(ips.map((each) => `${each}/32`)));
  });
});
