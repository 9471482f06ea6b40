import { describe, expect, test } from "vitest";
import type { ApiObject } from "../kubernetes/mod.ts";
import { formatCidr, formatIp } from "../net/ip.ts";
import { namespaces, networkPolicies, pods, readPod, readPolicy, readSelector, selects } from "./mod.ts";

describe("a label selector", () => {
  test.each([
    { matchLabels: { "-a": "b" } },
    { matchLabels: { "a/b/c": "d" } },
    { matchLabels: { "/a": "d" } },
    { matchLabels: { "Upper.case/a": "d" } },
    { matchLabels: { a: "b!" } },
    { matchLabels: { a: "x".repeat(64) } },
    { matchLabels: { ["x".repeat(64)]: "a" } },
    { matchLabels: { [`${"x".repeat(254)}/a`]: "a" } },
    { matchLabels: { a: 1 } },
    { matchExpressions: [{ key: "a", operator: "In" }] },
    { matchExpressions: [{ key: "a", operator: "NotIn", values: [] }] },
    { matchExpressions: [{ key: "a", operator: "In", values: ["b", "!"] }] },
    { matchExpressions: [{ key: "a", operator: "In", values: ["b", 1] }] },
    { matchExpressions: [{ key: "a", operator: "Exists", values: ["b"] }] },
    { matchExpressions: [{ key: "a", operator: "DoesNotExist", values: ["b"] }] },
    { matchExpressions: [{ key: "a", operator: "exists" }] },
    { matchExpressions: [{ operator: "Exists" }] },
    { matchExpressions: ["a"] },
  ])("that the API server would refuse is none: %j", (object: ApiObject) => {
    expect(readSelector(object)).toBeUndefined();
  });

  test("asks for all its conditions, also of labels that objects have by nature", () => {
    const both = readSelector({
      matchLabels: { "example.com/app": "web" },
      matchExpressions: [{ key: "toString", operator: "Exists" }],
    });
    expect(readSelector({ matchLabels: { ["x".repeat(63)]: "y".repeat(63) } })?.requirements).toHaveLength(1);
    expect(both?.text).toBe("example.com/app=web,toString");
    expect(both && selects(both, { "example.com/app": "web" })).toBe(false);
    expect(both && selects(both, { "example.com/app": "web", toString: "" })).toBe(true);
  });
});

describe("reading", () => {
  const policyOf = (spec: ApiObject): ReturnType<typeof readPolicy> =>
    readPolicy({ metadata: { namespace: "x", name: "p" }, spec: { podSelector: {}, ...spec } });

  test("says by its path what was not understood", () => {
    const block = (cidr: string, ...except: string[]): ApiObject => ({ ipBlock: { cidr, except } });
    const policy = policyOf({
      policyTypes: ["Ingress", "Sideways"],
      ingress: [
        {
          from: [
            { podSelector: {} },
            {},
            block("10.0.0.0/33"),
            block("10.0.0.0/8", "10.0.0.1"),
            { ...block("1.2.3.4/32"), podSelector: {} },
          ],
        },
        {
          ports: [
            { port: 80 },
            { port: 0 },
            { port: 65_536 },
            { port: 1.5 },
            { protocol: "tcp" },
            { port: "", endPort: 1 },
          ],
        },
        { ports: [{ port: 80, endPort: 65_536 }, { port: true }] },
      ],
    });
    expect(policy?.problems).toEqual([
      "spec.policyTypes[1]",
      ...[1, 2, 3, 4].map((i) => `spec.ingress[0].from[${i}]`),
      ...[1, 2, 3, 4, 5].map((i) => `spec.ingress[1].ports[${i}]`),
      ...[0, 1].map((i) => `spec.ingress[2].ports[${i}]`),
    ]);
    expect(policy?.ingress).toEqual([
      { peers: [{ t: "pods", pods: { requirements: [], text: "" } }] },
      { ports: [{ protocol: "TCP", port: 80 }] },
      { ports: [] },
    ]);
    expect(policy?.egress).toBeUndefined();
    expect(policyOf({ podSelector: { matchLabels: { "!": "" } } })?.problems).toEqual(["spec.podSelector"]);
    expect(policyOf({})?.problems).toEqual([]);
  });

  test.each([
    [{ cidr: "10.1.2.3/8" }, "10.0.0.0/8"],
    [{ cidr: "fd00::1/64", except: ["fd00::8/125"] }, "fd00::/64 - fd00::8/125"],
    // A block of mapped addresses is the block of the addresses that they stand for.
    [{ cidr: "::ffff:10.0.0.0/104" }, "10.0.0.0/8"],
    [{ cidr: "::ffff:10.0.0.1/128" }, "10.0.0.1/32"],
    [{ cidr: "::ffff:0.0.0.0/96" }, "0.0.0.0/0"],
    [{ cidr: "::ffff:10.0.0.0/95" }, undefined],
    [{ cidr: "10.0.0.0/104" }, undefined],
    [{ cidr: 10 }, undefined],
    [{}, undefined],
    [{ cidr: "10.0.0.0/8", except: [10] }, undefined],
  ])("takes %j for the block %s", (ipBlock, wanted) => {
    const [peer] = policyOf({ ingress: [{ from: [{ ipBlock }] }] })?.ingress?.[0]?.peers ?? [];
    const text = peer?.t === "block" ? [peer.cidr, ...peer.except].map(formatCidr).join(" - ") : undefined;
    expect(text).toBe(wanted);
  });

  test("takes a policy for changed when its generation is another", () => {
    const at = (generation?: number): NonNullable<ReturnType<typeof readPolicy>> => {
      const policy = readPolicy({ metadata: { namespace: "x", name: "p", generation } });
      if (policy === undefined) throw new Error("no policy");
      return policy;
    };
    const same = networkPolicies.same ?? (() => false);
    expect([same(at(1), at(1)), same(at(1), at(2)), same(at(), at())]).toEqual([true, false, false]);
  });

  const object = {
    metadata: {
      namespace: "x",
      name: "p",
      labels: { app: "a" },
      annotations: { "k8s.v1.cni.cncf.io/network-status": "[]" },
    },
    spec: { nodeName: "n1", containers: [{ ports: [{ containerPort: 80, name: "web" }, { containerPort: 81 }] }] },
    status: { phase: "Running", podIPs: [{ ip: "10.0.0.1" }, { ip: "fd00::1" }, { ip: "no address" }, {}] },
  };
  const podOf = (changes: ApiObject): NonNullable<ReturnType<typeof readPod>> => {
    const pod = readPod({ ...object, ...changes });
    if (pod === undefined) throw new Error("no pod");
    return pod;
  };

  test("takes of a pod its primary addresses and the ports that have names", () => {
    const { ips, ports } = podOf({});
    expect(ips.map(formatIp)).toEqual(["10.0.0.1", "fd00::1"]);
    expect(ports).toEqual([{ name: "web", protocol: "TCP", port: 80 }]);
    expect([readPod({ metadata: { name: "p" } }), readPolicy({}), namespaces.project({})]).toEqual(
      Array(3).fill(undefined),
    );
  });

  test.each([
    ["nothing", { metadata: { ...object.metadata, resourceVersion: "9", annotations: {} } }, true],
    ["a label", { metadata: { ...object.metadata, labels: { app: "b" } } }, false],
    ["a label more", { metadata: { ...object.metadata, labels: { app: "a", b: "" } } }, false],
    ["another label", { metadata: { ...object.metadata, labels: { other: "a" } } }, false],
    ["the node", { spec: { ...object.spec, nodeName: "n2" } }, false],
    ["the host's network", { spec: { ...object.spec, hostNetwork: true } }, false],
    ["a port", { spec: { nodeName: "n1", containers: [] } }, false],
    [
      "a port's name",
      { spec: { nodeName: "n1", containers: [{ ports: [{ containerPort: 80, name: "other" }] }] } },
      false,
    ],
    [
      "a port's protocol",
      { spec: { nodeName: "n1", containers: [{ ports: [{ containerPort: 80, name: "web", protocol: "UDP" }] }] } },
      false,
    ],
    ["the end", { status: { ...object.status, phase: "Succeeded" } }, false],
    ["the second address", { status: { phase: "Running", podIPs: [{ ip: "10.0.0.1" }] } }, false],
  ])("sees of a pod's changes those that matter: %s", (_, changes, same) => {
    expect(pods.same?.(podOf({}), podOf(changes))).toBe(same);
  });
});
