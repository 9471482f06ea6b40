import { describe, expect, test } from "vitest";
import { formatCidr, parseCidr } from "../../shared/net/ip.ts";
import { ipBytes } from "../../shared/proto/control-plane-addresses.ts";
import { policy } from "../../test/fakes/policy-events.ts";
import { type KnownPolicy, type KnownRule, readPolicy } from "./known-policy.ts";

type Rule = Parameters<typeof policy>[2][number];
type More = Parameters<typeof policy>[3];

const read = (rules: readonly Rule[], more?: More, uid = "p"): KnownPolicy =>
  readPolicy(policy(uid, "servers", rules, more).raw);
function only(rule: Rule, uid?: string): KnownRule {
  const { rules, refused } = read([rule], undefined, uid);
  expect([rules.length, refused]).toEqual([1, undefined]);
  return rules[0]!;
}

const net = (text: string) => {
  const { ip, prefix } = parseCidr(text)!;
  return { ip: ipBytes(ip), prefixLength: prefix };
};
const block = (cidr: string, ...except: readonly string[]) => ({ cidr: net(cidr), except: except.map(net) });
const from = (...ipBlocks: readonly ReturnType<typeof block>[]): Rule => ({
  more: { from: { addressGroups: [], ipBlocks }, action: "Allow" },
});

/** Fields of a message as they are on the wire, for those that we do not write. */
const field = (number: number, content: string | readonly number[]): readonly number[] => {
  const bytes = typeof content === "string" ? [...new TextEncoder().encode(content)] : content;
  return [(number << 3) | 2, bytes.length, ...bytes];
};
const varint = (number: number): readonly number[] => [number << 3, 1];
const peer = (...more: readonly (readonly number[])[]) => [...field(1, "clients"), ...more.flat()];

describe("a rule", () => {
  test.each<readonly [readonly string[], KnownRule["ports"]]>([
    [[], undefined],
    [["TCP"], [{ protocol: "TCP" }]],
    [
      ["UDP/1", "SCTP/65535"],
      [
        { protocol: "UDP", port: 1 },
        { protocol: "SCTP", port: 65_535 },
      ],
    ],
    [["TCP/80-90"], [{ protocol: "TCP", port: 80, endPort: 90 }]],
    [["TCP/80-80"], [{ protocol: "TCP", port: 80 }]],
    [["TCP/web"], [{ protocol: "TCP", port: "web" }]],
  ])("is for the ports %j", (ports, wanted) => {
    expect(only({ groups: ["clients"], ports }).ports).toEqual(wanted);
  });

  test.each<readonly [boolean, readonly string[]]>([
    [true, ["0.0.0.0/0", "::/0"]],
    [true, ["10.0.0.0/8", "::/0", "0.0.0.0/0"]],
    [false, ["0.0.0.0/0"]],
    [false, ["::/0"]],
    [false, ["0.0.0.0/1", "::/0"]],
    [false, ["0.0.0.0/0", "::/1"]],
  ])("is for anybody: %s, by the blocks %j", (isAnybody, blocks) => {
    expect(only({ blocks }).isAnybody).toBe(isAnybody);
  });

  test("is for blocks without their exceptions, whose other bits say nothing", () => {
    const { blocks, isAnybody } = only(from(block("0.0.0.0/0", "10.1.2.3/8", "10.9.9.9/32"), block("::/0")));
    expect(isAnybody).toBe(false);
    expect(blocks.map(({ cidr, except }) => [cidr, ...except].map(formatCidr))).toEqual([
      ["0.0.0.0/0", "10.0.0.0/8", "10.9.9.9/32"],
      ["::/0"],
    ]);
  });

  test("of which there is nobody, or that only isolates, opens nothing", () => {
    const { rules, directions, refused } = read([{ more: { action: "Allow" } }, { direction: "Out" }, {}]);
    expect([rules, directions, refused]).toEqual([[], ["ingress", "egress"], undefined]);
  });

  test("keeps its id as long as it says the same, and has another for all else", () => {
    const rule: Rule = { groups: ["clients"], blocks: ["10.0.0.0/8"], ports: ["TCP/80"] };
    const others: readonly Rule[] = [
      { ...rule, direction: "Out" },
      { ...rule, groups: ["others"] },
      { ...rule, blocks: ["10.0.0.0/9"] },
      { ...rule, ports: ["TCP/81"] },
      { ...rule, ports: [] },
      from(block("10.0.0.0/8")),
      from(block("10.0.0.0/8", "10.0.0.0/9")),
    ];
    const ids = [only(rule).id, only(rule, "q").id, ...others.map((other) => only(other).id)];
    expect(new Set(ids).size).toBe(ids.length);
    for (const id of ids) expect(id).toMatch(/^[0-9a-f]{16}$/);
    expect(only(rule).id).toBe(ids[0]);
    expect(only({ ...rule, direction: "Out" }).direction).toBe("egress");
  });
});

describe("a policy", () => {
  test("is kept as it came, whatever becomes of the message that it was in", () => {
    const { raw } = policy("p", "servers", [{ groups: ["clients"] }]);
    const copy = raw.slice();
    const known = readPolicy(raw);
    raw.fill(0);
    expect(known).toMatchObject({
      name: { namespace: "x", name: "p", uid: "p" },
      generation: 1,
      appliedTo: ["servers"],
      directions: ["ingress"],
      raw: copy,
    });
    expect(readPolicy(copy)).toEqual(known);
  });

  test.each<readonly [string, Rule, string]>([
    ["an action of its own", { groups: ["clients"], more: { action: "Pass" } }, 'the action of a rule is "Pass"'],
    ["a protocol without ports", { groups: ["clients"], ports: ["ICMP"] }, 'it is about the protocol "ICMP"'],
    ["a port below all", { groups: ["clients"], ports: ["TCP/0"] }, "a port of it is 0 to 0"],
    ["a port beyond all", { groups: ["clients"], ports: ["TCP/65536"] }, "a port of it is 65536 to 65536"],
    ["ports beyond all", { groups: ["clients"], ports: ["TCP/80-65536"] }, "a port of it is 80 to 65536"],
    ["ports that go back", { groups: ["clients"], ports: ["TCP/80-79"] }, "a port of it is 80 to 79"],
    ["a name with an end", { groups: ["clients"], ports: ["TCP/web-90"] }, 'a port of it is called "web"'],
    ["a name of nothing", { groups: ["clients"], ports: ["TCP/-90"] }, 'a port of it is called ""'],
    [
      "an IPv4 block that is too long",
      from({ cidr: { ...net("10.0.0.0/8"), prefixLength: 33 }, except: [] }),
      "33 bits",
    ],
    ["an IPv6 block that is too long", from({ cidr: { ...net("::/0"), prefixLength: 129 }, except: [] }), "129 bits"],
    ["a block before all", from({ cidr: { ...net("10.0.0.0/8"), prefixLength: -1 }, except: [] }), "-1 bits"],
    ["pods of its own", { groups: ["clients"], more: { appliedToGroups: ["some"] } }, "applies to pods of its own"],
  ])("is refused as a whole for %s in a rule, and isolates", (_name, rule, refused) => {
    const { rules, directions, appliedTo, ...known } = read([{ groups: ["clients"] }, rule]);
    expect([rules, directions, known.refused]).toEqual([[], ["ingress"], expect.stringContaining(refused)]);
    expect(appliedTo).toEqual(rule.more?.appliedToGroups === undefined ? ["servers"] : ["servers", "some"]);
  });

  const allow = field(6, "Allow");
  const tcp = field(1, "TCP");
  test.each<readonly [string, readonly (readonly number[])[]]>([
    ["looks into the application's protocol", [field(2, peer()), allow, field(10, "x")]],
    ["names peers by their domain", [field(2, peer(field(3, "a.b"))), allow]],
    ["names Services as peers", [field(2, peer(field(4, "x"))), allow]],
    ["names pods of other clusters as peers", [field(2, peer(varint(5))), allow]],
    ["is about more than a destination's port", [field(2, peer()), allow, field(4, [...tcp, ...field(7, "x")])]],
    ["is about more than a destination's port", [field(2, peer()), allow, field(4, [...tcp, ...varint(8)])]],
    ["is about more than a destination's port", [field(2, peer()), allow, field(4, [...tcp, ...varint(9)])]],
    ["has no beginning", [field(2, peer()), allow, field(4, [...tcp, ...varint(3)])]],
  ])("is refused where a rule of Antrea's own %s", (refused, parts) => {
    const rule = [...field(1, "In"), ...parts.flat()];
    const { raw } = policy("p", "servers", []);
    const known = readPolicy(Uint8Array.of(...raw, ...field(2, rule)));
    expect([known.rules, known.directions, known.refused]).toEqual([[], ["ingress"], expect.stringContaining(refused)]);
  });

  test("is refused for a tier, and for another kind", () => {
    const tiered = readPolicy(Uint8Array.of(...policy("p", "servers", [{ groups: ["clients"] }]).raw, ...varint(5)));
    expect([tiered.rules, tiered.refused]).toEqual([[], "it has a tier"]);
    const sourceRef = { type: "AntreaNetworkPolicy", namespace: "x", name: "n", uid: "p" };
    const another = read([{ groups: ["clients"] }], { sourceRef });
    expect([another.rules, another.name]).toEqual([[], { namespace: "x", name: "n", uid: "p" }]);
    expect(another.refused).toBe('it is of the kind "AntreaNetworkPolicy", wanted a NetworkPolicy of Kubernetes');
  });
});
