import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ownerKey } from "../../../../shared/cni/owner-key.ts";
import { PacketFilter } from "../../../../test/fakes/hns/acls.ts";
import {
  type HnsNode,
  hnsNode,
  ip,
  namespaceA,
  namespaceB,
  ownerOf,
  requestFor,
} from "../../../../test/fakes/hns/hns-node.ts";
import type { DataPath } from "../../datapath.ts";
import type { Isolation, NodePolicies, PodRule } from "../../policies.ts";
import { endpointId } from "../endpoint-records.ts";

const [a, b] = ["10.9.0.7", "10.9.0.8"];
const node = "10.9.0.1";
const outside = "1.2.3.4";

const isolation = (name: string, ...directions: Isolation["directions"]): Isolation => ({
  owner: ownerOf(name),
  directions: directions.length === 0 ? ["ingress"] : directions,
  by: [],
});

/** Lets an address in to a port of a pod. */
const allowing = (id: string, from: string, port: number, to = "a"): PodRule => ({
  id,
  policy: { namespace: "shop", name: id, uid: id },
  direction: "ingress",
  targets: [ownerOf(to)],
  peers: { sets: [{ name: from, ips: [ip(from)] }], blocks: [] },
  ports: [{ protocol: "TCP", first: port }],
});

const wanting = (isolated: readonly Isolation[], ...rules: readonly PodRule[]): NodePolicies => ({
  rules: new Map(rules.map((rule) => [rule.id, rule])),
  isolated: new Map(isolated.map((each) => [ownerKey(each.owner), each])),
});

const nothing = wanting([]);
const closed = wanting([isolation("a", "ingress", "egress")]);
const fromB = wanting([isolation("a")], allowing("fromB", b, 80));

let hns: HnsNode;
beforeEach(() => {
  hns = hnsNode({ outboundNat: { exceptions: ["10.0.0.0/8"] } });
});
afterEach(() => hns[Symbol.asyncDispose]());

const enforce = (wanted: NodePolicies, dataPath: DataPath = hns.dataPath) => dataPath.policies?.enforce(wanted);
const differences = () => hns.dataPath.policies?.differences();
const attachA = () => hns.dataPath.attach(requestFor("a", namespaceA, 7));
const attachB = () => hns.dataPath.attach(requestFor("b", namespaceB, 8));
const opens = (source: string, destination: string, port = 80): boolean =>
  new PacketFilter(hns.fake.service.store).opens(source, destination, "TCP", port);
/** Of the pod a: may b reach it at 80, may the world, may it reach the world. */
const verdicts = () => [opens(b, a), opens(outside, a), opens(a, outside)];
const changes = (): number => hns.fake.service.count("HcnModifyEndpoint");
const policiesOf = (name: string) => hns.fake.endpoint(endpointId(ownerOf(name)))?.["Policies"] as { Type: string }[];

describe("policies as ACLs", () => {
  beforeEach(() => hns.dataPath.start());

  test("a pod has none before anything is wanted, and afterwards what is open is said too", async () => {
    await attachA();
    expect(policiesOf("a").map(({ Type }) => Type)).toEqual(["OutBoundNAT"]);
    await enforce(nothing);
    expect(verdicts()).toEqual([true, true, true]);
    expect(policiesOf("a").filter(({ Type }) => Type === "ACL").length).toBeGreaterThan(0);
  });

  test("a pod that stands is isolated, and let in whom a rule lets in, in one request each", async () => {
    await attachA();
    await attachB();
    await enforce(nothing);
    const before = changes();
    expect(await enforce(closed)).toEqual([]);
    expect([verdicts(), changes()]).toEqual([[false, false, false], before + 1]);
    expect(await enforce(fromB)).toEqual([]);
    expect([verdicts(), changes()]).toEqual([[true, false, true], before + 2]);
    expect([opens(b, a, 81), opens(a, b)]).toEqual([false, true]);
    expect(policiesOf("a")[0]).toMatchObject({ Type: "OutBoundNAT" });
    expect(await differences()).toEqual([]);
    await enforce(wanting([isolation("a")], allowing("fromB", b, 80)));
    expect(changes()).toBe(before + 2);
  });

  test("answers pass, and what the pod's node and the pod itself send", async () => {
    await enforce(closed);
    await attachA();
    await enforce(fromB);
    const filter = new PacketFilter(hns.fake.service.store);
    const asked = { protocol: "TCP", source: b, sourcePort: 1234, destination: a, destinationPort: 80 } as const;
    const answer = { protocol: "TCP", source: a, sourcePort: 80, destination: b, destinationPort: 1234 } as const;
    await enforce(wanting([isolation("a", "ingress", "egress")], allowing("fromB", b, 80)));
    expect([filter.send(answer), filter.send(asked), filter.send(answer)]).toEqual([false, true, true]);
    expect([opens(node, a, 8080), opens("192.168.1.5", a, 8080), opens(a, a, 8080)]).toEqual([true, true, true]);
  });

  test("a pod's endpoint is closed when it is made, and has its rules before it enters the sandbox", async () => {
    await enforce(fromB);
    const seen: unknown[] = [];
    using _before = hns.fake.before("attach", () => seen.push(verdicts()));
    using _made = hns.fake.before("modifyEndpoint", () => seen.push(verdicts()));
    await attachA();
    expect(seen).toEqual([
      [false, false, true],
      [true, false, true],
    ]);
  });

  test("one that HNS has lost is closed when it is made again, and has its rules before it is back", async () => {
    await enforce(nothing);
    await attachA();
    hns.fake.service.restart();
    await enforce(closed);
    const seen: unknown[] = [];
    using _before = hns.fake.before("attach", () => seen.push(verdicts()));
    await hns.dataPath.list();
    await hns.dataPath.remake?.({ owner: ownerOf("a"), ownLease: true }, [ip(a)]);
    expect(seen).toEqual([[false, false, false]]);
    await enforce(fromB);
    expect(verdicts()).toEqual([true, false, true]);
  });

  test("what somebody takes away is back after the next look, and what they add stays and is told", async () => {
    await attachA();
    await enforce(closed);
    const document = hns.fake.endpoint(endpointId(ownerOf("a")));
    const theirs = { Type: "ACL", Settings: { Action: "Allow", Direction: "In", Priority: 900 } };
    if (document !== undefined) document["Policies"] = [theirs];
    await expect.poll(() => policiesOf("a").length).toBeGreaterThan(1);
    expect(policiesOf("a")).toContainEqual(theirs);
    expect(await differences()).toEqual([
      expect.stringMatching(/^the endpoint ".*" has an ACL of others that goes first: \{"Action":"Allow"/),
    ]);
  });

  test("an agent that starts changes nothing where all is as it was", async () => {
    await enforce(fromB);
    await attachA();
    const before = changes();
    const next = hns.again();
    await enforce(fromB, next);
    await next.start();
    expect([changes(), verdicts()]).toEqual([before, [true, false, true]]);
    expect(await enforce(closed, next)).toEqual([]);
    expect(verdicts()).toEqual([false, false, false]);
  });

  test("an agent that starts has in force what changed meanwhile before it serves, or takes all of it back", async () => {
    await enforce(fromB);
    await attachA();
    const next = hns.again();
    expect(await enforce(closed, next)).toEqual([]);
    await next.start();
    expect(verdicts()).toEqual([false, false, false]);
    await hns.dataPath[Symbol.asyncDispose]();
    await next[Symbol.asyncDispose]();
    await hns.again().start();
    expect(policiesOf("a").map(({ Type }) => Type)).toEqual(["OutBoundNAT"]);
  });

  test("what is wanted during a change is in force after it, also where it is what was before", async () => {
    await attachA();
    await enforce(closed);
    let again: Promise<unknown> | undefined;
    {
      using _during = hns.fake.before("modifyEndpoint", () => {
        again ??= enforce(closed);
      });
      await enforce(nothing);
    }
    await again;
    expect(verdicts()).toEqual([false, false, false]);
  });
});

/** ACLs of rules at one endpoint. */
const maxAcls = 500;

describe("what cannot be put in force", () => {
  beforeEach(() => hns.dataPath.start());
  const bad = allowing("bad", outside, 80);
  const good = allowing("good", b, 80);

  test("rules with SCTP, and more of a pod's than its endpoint holds, are refused for themselves", async () => {
    const sctp: PodRule = { ...bad, id: "sctp", ports: [{ protocol: "SCTP" }] };
    const many = Array.from({ length: maxAcls + 1 }, (_, i) => allowing(`r${i}`, b, 1_000 + i));
    await attachA();
    expect(await enforce(wanting([isolation("a")], sctp, good, ...many))).toEqual([
      { id: "sctp", reason: "it names SCTP, which pods on Windows do not have" },
      ...[maxAcls - 1, maxAcls].map((i) => ({ id: `r${i}`, reason: expect.stringMatching(/holds 500 ACLs/) })),
    ]);
    expect([opens(b, a), opens(b, a, 1_000), opens(b, a, 1_000 + maxAcls)]).toEqual([true, true, false]);
  });

  test("a rule that HNS refuses is told, and closed; the others are in force, and it is not tried again", async () => {
    await attachA();
    await enforce(wanting([isolation("a")], good));
    hns.fake.service.fault({ call: "HcnModifyEndpoint", match: "pipette-shop-bad", hresult: 0x803b000d });
    const both = wanting([isolation("a", "ingress", "egress")], bad, good);
    const refused = [{ id: "bad", reason: expect.stringMatching(/HCN_E_INVALID_POLICY/) }];
    expect(await enforce(both)).toEqual(refused);
    expect(verdicts()).toEqual([true, false, false]);
    const before = changes();
    expect(await enforce(both)).toEqual(refused);
    expect([changes(), await differences()]).toEqual([before, []]);
    expect(await enforce(wanting([isolation("a")], good))).toEqual([]);
  });

  test("a pod whose rules HNS refuses when it is made starts closed", async () => {
    hns.fake.service.fault({ call: "HcnModifyEndpoint", match: "pipette-shop-bad", hresult: 0x803b000d });
    await enforce(wanting([isolation("a")], bad, good));
    await attachA();
    expect(verdicts()).toEqual([true, false, true]);
  });

  test("while HNS refuses everything, or is away, it is said, the ADD is refused, and other pods are not concerned", async () => {
    await attachA();
    await attachB();
    const id = endpointId(ownerOf("a"));
    const both = wanting([isolation("a"), isolation("b")]);
    const refusal = hns.fake.service.fault({ call: "HcnOpenEndpoint", match: id, hresult: 0x80004005 });
    await expect(enforce(both)).rejects.toMatchObject({ code: 102 });
    expect([opens(outside, a), opens(outside, b)]).toEqual([true, false]);
    refusal[Symbol.dispose]();
    hns.fake.service.isAway = true;
    await expect(enforce(closed)).rejects.toMatchObject({ code: 11 });
    await expect(differences()).rejects.toMatchObject({ code: 11 });
    hns.fake.service.isAway = false;
    expect(await enforce(both)).toEqual([]);
    expect([opens(outside, a), opens(outside, b)]).toEqual([false, false]);
  });

  test("that HNS says it has done it and has not is said", async () => {
    await attachA();
    await attachB();
    const liar = hns.fake.service.fault({ call: "HcnModifyEndpoint", pretends: true });
    await expect(enforce(fromB)).rejects.toMatchObject({ code: 102, message: expect.stringContaining("shows other") });
    const differs = expect.stringMatching(/^the endpoint ".*" differs in \d+ of its ACLs$/);
    expect(await differences()).toEqual([differs, differs]);
    await expect(hns.dataPath.attach(requestFor("c", namespaceA, 9))).resolves.toBeDefined();
    await hns.dataPath.detach(ownerOf("a"));
    await expect(attachA()).rejects.toMatchObject({ code: 102 });
    expect([opens(b, a), hns.fake.endpointsIn(namespaceA)]).toEqual([false, [endpointId(ownerOf("c"))]]);
    liar[Symbol.dispose]();
    await attachA();
    expect(verdicts()).toEqual([true, false, true]);
  });

  test.each([
    ["is refused", { hresult: 0x80004005 }],
    ["is done, and its answer lost", { afterwards: 0x800706be }],
    ["is given up", { holdMs: "until released" as const }],
    ["is given up, and done", { holdMs: "until released" as const, effectFirst: true }],
  ])(
    "whichever call of a change %s: nothing is more open than before and after, and the next try ends it",
    async (_, fault) => {
      await attachA();
      await attachB();
      for (let skip = 0, isOver = false; !isOver; skip++) {
        const only = wanting([isolation("a"), isolation("b", "egress")], good);
        await enforce(only);
        using mishap = hns.fake.service.fault({ ...fault, call: "*", skip, times: 1 });
        const after = wanting([isolation("a"), isolation("b", "egress")], allowing("other", b, 81));
        const error = await enforce(after)?.then(
          () => undefined,
          (caught: unknown) => caught,
        );
        isOver = mishap.hits === 0;
        expect([skip, opens(outside, a), opens(b, outside)]).toEqual([skip, false, false]);
        if (error === undefined) expect([skip, opens(b, a, 81), opens(b, a, 80)]).toEqual([skip, false, false]);
        mishap[Symbol.dispose]();
        expect(await enforce(after)).toEqual([]);
        expect(await differences()).toEqual([]);
        expect(skip).toBeLessThan(40);
      }
    },
  );
});
