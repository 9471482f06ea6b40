import { describe, expect, test } from "vitest";
import { parseIp } from "../../shared/net/ip.ts";
import { allows } from "../../test/fakes/policy-enforcement.ts";
import { addresses, computed, gone, patched, policy, type Told, targets } from "../../test/fakes/policy-events.ts";
import type { NodePolicies, PodRule } from "../datapath/policies.ts";
import { readEvent } from "./events.ts";
import { PolicySet } from "./policy-set.ts";
import { type PodOf, RuleStore } from "./rule-store.ts";

const owner = (sandboxId: string) => ({ network: "pods", sandboxId, ifname: "eth0" });
const pod = (name: string, uid = `x/${name}`) => ({ namespace: "x", name, uid });

class Node {
  readonly store = new RuleStore();

  constructor(told: readonly Told[], attached: Readonly<Record<string, PodOf>> = { a: pod("a"), b: pod("b") }) {
    for (const [sandbox, of] of Object.entries(attached)) this.store.attach(owner(sandbox), of);
    const set = new PolicySet();
    for (const { type, kind, raw } of told) set.apply(readEvent(type, kind, raw));
    this.store.replace(set, true);
  }

  tell(...told: readonly Told[]): NodePolicies {
    for (const { type, kind, raw } of told) this.store.apply(readEvent(type, kind, raw));
    return this.store.take();
  }

  /** "in a" and "out a": the closed directions of sandboxes. */
  get closed(): string[] {
    const { isolated } = this.store.take();
    return [...isolated.values()].flatMap(({ owner: { sandboxId }, directions }) =>
      directions.map((each) => `${each === "ingress" ? "in" : "out"} ${sandboxId}`),
    );
  }
}

const both = [computed("x/a"), computed("x/b")];
const clients = addresses("clients", "y/c 10.0.0.1", "y/d 10.0.0.2");
const servers = targets("servers", "x/a");
const web = policy("p1", "servers", [{ groups: ["clients"], ports: ["TCP/80"] }]);

const rulesIn = ({ rules }: NodePolicies): PodRule[] => [...rules.values()];
const ipsOf = (rule: PodRule | undefined): number => rule?.peers?.sets.flatMap(({ ips }) => ips).length ?? 0;
const asked = (direction: "ingress" | "egress", ip: string, protocol: string, port: number) => {
  const other = parseIp(ip);
  if (other === undefined) throw new Error(`"${ip}" is no address`);
  return { direction, other, protocol, port };
};

describe("what a node enforces", () => {
  test("of pods of which not all is known is nothing that lets anybody in or out", () => {
    const node = new Node([clients, servers, web], { a: pod("a"), n: "none", u: "unknown" });
    expect(node.closed).toEqual(["in a", "out a", "in u", "out u"]);
    expect(rulesIn(node.store.take())).toEqual([]);
    node.tell(computed("x/a"));
    expect(node.closed).toEqual(["in a", "in u", "out u"]);
    expect(rulesIn(node.store.take())).toHaveLength(1);
  });

  test("before anything was told, too; and what a pod was told by the name of its predecessor is not for it", () => {
    const node = new RuleStore();
    node.attach(owner("a"), pod("a"));
    expect([...node.take().isolated.values()]).toMatchObject([{ directions: ["ingress", "egress"], by: [] }]);
    const successor = new Node([clients, servers, web, ...both], { a: pod("a", "new"), old: pod("a") });
    expect(successor.closed).toEqual(["in a", "out a", "in old"]);
    successor.tell(computed("x/a", "new"));
    expect(successor.closed).toEqual(["in a", "in old", "out old"]);
    // The end of the predecessor is told late.
    successor.tell(gone(computed("x/a")));
    expect(successor.closed).toEqual(["in a", "in old", "out old"]);
    // Older runtimes do not say the uid.
    expect(new Node([...both], { a: pod("a", "") }).closed).toEqual([]);
    // The kubelet's own uid of a static pod, which the API server's object does not have.
    expect(new Node([...both], { a: pod("a", "0123456789abcdef0123456789abcdef") }).closed).toEqual([]);
  });

  test("isolates also where the peers have not come, and lets nobody else in then", () => {
    const node = new Node([servers, web, ...both]);
    expect(node.closed).toEqual(["in a"]);
    expect(rulesIn(node.store.take()).map(ipsOf)).toEqual([0]);
    expect(ipsOf(rulesIn(node.tell(clients))[0])).toBe(2);
    expect(ipsOf(rulesIn(node.tell(gone(clients)))[0])).toBe(0);
    expect(node.closed).toEqual(["in a"]);
  });

  test("closes every pod of a namespace for a policy of which nobody knows yet whom it applies to", () => {
    const node = new Node([clients, web, ...both]);
    expect(node.closed).toEqual(["in a", "in b"]);
    node.tell(servers);
    expect(node.closed).toEqual(["in a"]);
    // It applies to no pod here any more.
    node.tell(gone(servers));
    expect(node.closed).toEqual([]);
    node.tell(gone(web), policy("p2", "servers", [{ groups: ["clients"] }]));
    expect(node.closed).toEqual(["in a", "in b"]);
  });

  test("changes only what a change concerns: all other rules are the same objects", () => {
    const other = policy("p2", "servers", [{ groups: ["others"] }, { groups: ["clients"], ports: ["UDP/53"] }]);
    const node = new Node([clients, addresses("others", "z/e 10.0.0.9"), servers, web, other, ...both]);
    const [http, others, dns] = rulesIn(node.store.take());
    const [httpLater, othersLater, dnsLater] = rulesIn(node.tell(patched("AddressGroup", "clients", ["y/f 10.0.0.3"])));
    expect(othersLater).toBe(others);
    expect([httpLater?.id, dnsLater?.id]).toEqual([http?.id, dns?.id]);
    expect([http, httpLater, dns, dnsLater].map(ipsOf)).toEqual([2, 3, 2, 3]);
    // The rules of one group share one set.
    expect(httpLater?.peers?.sets[0]).toBe(dnsLater?.peers?.sets[0]);
    const isolation = node.store.take().isolated.get("pods\na\neth0");
    node.tell(policy("p1", "servers", [{ groups: ["clients"], ports: ["TCP/80"] }, { blocks: ["10.9.0.0/16"] }]));
    const after = node.store.take();
    expect([...after.rules.values()].filter((rule) => [httpLater, othersLater, dnsLater].includes(rule))).toHaveLength(
      3,
    );
    expect(after.rules.size).toBe(4);
    expect(after.isolated.get("pods\na\neth0")).toBe(isolation);
  });

  test("resolves names of ports at each destination: its own pods', or each of the others'", () => {
    const named = policy("p1", "both", [
      { groups: ["clients"], ports: ["TCP/web", "UDP/53"] },
      { direction: "Out", groups: ["clients"], ports: ["TCP/web"] },
    ]);
    const node = new Node([
      addresses("clients", "y/c 10.0.0.1 web:TCP/80", "y/d 10.0.0.2 web:TCP/8080", "y/e 10.0.0.3 web:UDP/80"),
      targets("both", "x/a web:TCP/80", "x/b web:TCP/8080"),
      ...[named, ...both],
    ]);
    const state = node.store.take();
    const may = (
      sandbox: string,
      direction: "ingress" | "egress",
      ip: string,
      port: number,
      protocol = "TCP",
    ): boolean => allows(state, owner(sandbox), asked(direction, ip, protocol, port));
    const ports = [80, 8080];
    expect(ports.map((port) => [may("a", "ingress", "10.0.0.1", port), may("b", "ingress", "10.0.0.1", port)])).toEqual(
      [
        [true, false],
        [false, true],
      ],
    );
    const ips = ["10.0.0.1", "10.0.0.2", "10.0.0.3"];
    expect(ports.map((port) => ips.map((ip) => may("a", "egress", ip, port)))).toEqual([
      [true, false, false],
      [false, true, false],
    ]);
    expect(may("a", "ingress", "10.0.0.3", 53, "UDP")).toBe(true);
    expect(may("a", "ingress", "10.0.0.3", 53)).toBe(false);
  });

  test("is anybody where blocks are all addresses, and nobody where there are no peers", () => {
    const node = new Node([
      targets("servers", "x/a"),
      policy("p1", "servers", [{ blocks: ["0.0.0.0/0", "::/0"], ports: ["TCP/80-90"] }, { direction: "Out" }]),
      ...both,
    ]);
    const rules = rulesIn(node.store.take());
    expect(rules).toMatchObject([{ direction: "ingress", ports: [{ protocol: "TCP", first: 80, last: 90 }] }]);
    expect(rules[0]).not.toHaveProperty("peers");
    expect(node.closed).toEqual(["in a", "out a"]);
  });

  test("is closed for all of a policy that is not of Kubernetes' kind", () => {
    const allow = { groups: ["clients"] };
    const strange: readonly (readonly [string, Told])[] = [
      [
        "kind",
        policy("p", "servers", [allow], {
          sourceRef: { type: "AntreaNetworkPolicy", namespace: "x", name: "p", uid: "p" },
        }),
      ],
      ["action", policy("p", "servers", [allow, { ...allow, more: { action: "Drop" } }])],
      ["pods of its own", policy("p", "servers", [{ ...allow, more: { appliedToGroups: ["servers"] } }])],
      ["protocol", policy("p", "servers", [{ ...allow, ports: ["ICMP"] }])],
      ["port", policy("p", "servers", [{ ...allow, ports: ["TCP/90-80"] }])],
      ["port", policy("p", "servers", [{ ...allow, ports: ["TCP/0"] }])],
    ];
    for (const [reason, told] of strange) {
      const node = new Node([clients, servers, web, told, ...both]);
      expect([...node.store.set.policies.values()].map(({ refused }) => refused)).toEqual([
        undefined,
        expect.stringContaining(reason),
      ]);
      expect(rulesIn(node.store.take())).toHaveLength(1);
      expect(node.closed).toEqual(["in a"]);
    }
  });
});

describe("what does not fit to what came before", () => {
  test.each<[string, Told]>([
    ["has not come", patched("AddressGroup", "others", ["y/c 10.0.0.1"])],
    ["in which it is not", patched("AddressGroup", "clients", [], ["y/c 10.0.0.7"])],
    ["in which it is not", patched("AppliedToGroup", "servers", [], ["x/b"])],
  ])("%s: is refused, and changes nothing", (is, told) => {
    const node = new Node([clients, servers, web, ...both]);
    const before = node.store.take();
    expect(() => node.tell(told)).toThrow(is);
    expect(node.store.take()).toEqual(before);
  });

  test.each<[string, Told]>([
    ["SOMETHING", { ...clients, type: "SOMETHING" as "ADDED" }],
    ["of a Pod", { ...clients, kind: "Pod" }],
    ["direction", policy("p", "servers", [{ direction: "Up" as "In" }])],
    ["no name", addresses("")],
    ["no name", policy("", "servers", [])],
    [
      "bytes",
      policy("p", "servers", [
        {
          more: {
            from: { addressGroups: [], ipBlocks: [{ cidr: { ip: new Uint8Array(5), prefixLength: 1 }, except: [] }] },
            action: "Allow",
          },
        },
      ]),
    ],
  ])("%s: is no event", (is, { type, kind, raw }) => {
    expect(() => readEvent(type, kind, raw)).toThrow(is);
  });
});
