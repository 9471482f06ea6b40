import { describe, expect, test } from "vitest";
import type { ApiObject } from "../../shared/kubernetes/mod.ts";
import { formatIp } from "../../shared/net/ip.ts";
import { type NetworkPolicy, type Pod, readPod, readPolicy } from "../../shared/policy/mod.ts";
import { type Changes, PolicyComputation } from "./mod.ts";

const labelled = (app: string): ApiObject => ({ podSelector: { matchLabels: { app } } });
const fromClients = { from: [labelled("client")] };

interface Shape {
  readonly uid?: string;
  readonly node?: string;
  readonly ip?: string;
  readonly phase?: string;
  readonly hostNetwork?: boolean;
  readonly port?: number;
}

function pod(key: string, app: string, { uid = key, node, ip, phase = "Running", hostNetwork, port }: Shape): Pod {
  const [namespace = "", name = ""] = key.split("/");
  const ports = port === undefined ? [] : [{ name: "web", containerPort: port }];
  const read = readPod({
    metadata: { namespace, name, uid, labels: { app } },
    spec: { nodeName: node, hostNetwork, containers: [{ ports }] },
    status: { phase, podIPs: ip === undefined ? [] : [{ ip }] },
  });
  if (read === undefined) throw new Error("no pod");
  return read;
}

function policy(name: string, spec: ApiObject, { uid = name, generation = 1 } = {}): NetworkPolicy {
  const full = { ...labelled("server"), policyTypes: ["Ingress"], ...spec };
  const read = readPolicy({ metadata: { namespace: "x", name, uid, generation }, spec: full });
  if (read === undefined) throw new Error("no policy");
  return read;
}

const ref = ({ name, ips }: Pod): string => [name, ...ips.map(formatIp)].join(" ");
const moves = ({ entered, left }: { entered: readonly string[]; left: readonly string[] }): string =>
  [...entered.map((node) => `+${node}`), ...left.map((node) => `-${node}`)].join(" ");
const patch = ({ added, removed }: { added: readonly Pod[]; removed: readonly Pod[] }): string =>
  [...added.map((each) => `+${ref(each)}`), ...removed.map((each) => `-${ref(each)}`)].join(" ");

/** What happened, in short: what it is, its nodes, and its members for those that had it. */
const short = ({ policies, appliedToGroups, addressGroups }: Changes): unknown => ({
  policies: policies.map(({ t, policy, isRewritten, nodes }) => [
    `${t} ${policy.uid}${isRewritten ? " rewritten" : ""}`,
    moves(nodes),
  ]),
  targets: appliedToGroups.map(({ t, nodes, members }) => [
    t,
    moves(nodes),
    ...[...members].map(([node, change]) => `${node}: ${patch(change)}`),
  ]),
  peers: addressGroups.map(({ t, nodes, members }) => [t, moves(nodes), patch(members)]),
});

const nothing = { policies: [], targets: [], peers: [] };

/** Servers on n1 and n2, which let clients on n3 in. */
function started(): PolicyComputation {
  const computation = new PolicyComputation();
  computation.putPod(pod("x/s1", "server", { node: "n1", ip: "10.0.0.1", port: 80 }));
  computation.putPod(pod("x/s2", "server", { node: "n2", ip: "10.0.0.2" }));
  computation.putPod(pod("x/c1", "client", { node: "n3", ip: "10.0.0.3", port: 80 }));
  computation.putPolicy(policy("p", { ingress: [fromClients] }));
  expect(short(computation.take())).toEqual({
    policies: [["added p", "+n1 +n2"]],
    targets: [["added", "+n1 +n2"]],
    peers: [["added", "+n1 +n2", ""]],
  });
  return computation;
}

const changesBy = (event: (computation: PolicyComputation) => void): unknown => {
  const computation = started();
  event(computation);
  const changes = short(computation.take());
  expect(short(computation.take())).toEqual(nothing);
  return changes;
};

describe("one change of a pod", () => {
  test("a peer comes: nodes with its group hear of that one", () => {
    expect(changesBy((to) => to.putPod(pod("x/c2", "client", { node: "n1", ip: "10.0.0.4" })))).toEqual({
      ...nothing,
      peers: [["updated", "", "+c2 10.0.0.4"]],
    });
  });

  test("a target is known before it has an address, at its own node only", () => {
    expect(changesBy((to) => to.putPod(pod("x/s3", "server", { node: "n1", phase: "Pending" })))).toEqual({
      ...nothing,
      targets: [["updated", "", "n1: +s3"]],
    });
  });

  test("the first target of a node brings everything there, and the last one takes it away", () => {
    const computation = started();
    computation.putPod(pod("x/s3", "server", { node: "n3" }));
    computation.deletePod("x/s1");
    expect(short(computation.take())).toEqual({
      policies: [["updated p", "+n3 -n1"]],
      targets: [["updated", "+n3 -n1"]],
      peers: [["updated", "+n3 -n1", ""]],
    });
    expect(computation.onNode("n1")).toEqual({ policies: [], appliedToGroups: [], addressGroups: [], pods: [] });
    const { policies, appliedToGroups, addressGroups } = computation.onNode("n3");
    expect(policies.map(({ uid }) => uid)).toEqual(["p"]);
    expect(appliedToGroups.flatMap(({ members }) => members.map(ref))).toEqual(["s3"]);
    expect(addressGroups.flatMap((group) => [...group.members()].map(ref))).toEqual(["c1 10.0.0.3"]);
  });

  test("a pod that is made anew with another address replaces its predecessor", () => {
    const anew = pod("x/c1", "client", { uid: "other", node: "n3", ip: "10.0.0.9" });
    expect(changesBy((to) => to.putPod(anew))).toEqual({
      ...nothing,
      peers: [["updated", "", "+c1 10.0.0.9 -c1 10.0.0.3"]],
    });
  });

  test("a pod that is made anew with the same address and other ports is added once more, never removed", () => {
    const anew = pod("x/c1", "client", { uid: "other", node: "n3", ip: "10.0.0.3", port: 8080 });
    expect(changesBy((to) => to.putPod(anew))).toEqual({ ...nothing, peers: [["updated", "", "+c1 10.0.0.3"]] });
  });

  test("what comes and goes between two looks is no change", () => {
    expect(
      changesBy((to) => {
        to.deletePod("x/c1");
        to.putPod(pod("x/c9", "client", { node: "n1", ip: "10.0.0.9" }));
        to.putPod(pod("x/s9", "server", { node: "n9" }));
        to.putPod(pod("x/c1", "client", { node: "n3", ip: "10.0.0.3", port: 80 }));
        to.deletePod("x/s9");
        to.deletePod("x/c9");
      }),
    ).toEqual(nothing);
  });

  test("pods that finish, or are on the host's network, belong to no group", () => {
    expect(
      changesBy((to) => to.putPod(pod("x/c1", "client", { node: "n3", ip: "10.0.0.3", phase: "Failed" }))),
    ).toEqual({
      ...nothing,
      peers: [["updated", "", "-c1 10.0.0.3"]],
    });
    const host = pod("x/c1", "client", { node: "n3", ip: "10.0.0.3", hostNetwork: true });
    expect(changesBy((to) => to.putPod(host))).toEqual({ ...nothing, peers: [["updated", "", "-c1 10.0.0.3"]] });
  });
});

describe("one change of a policy", () => {
  test("other rules for the same pods", () => {
    expect(changesBy((to) => to.putPolicy(policy("p", { ingress: [{}] }, { generation: 2 })))).toEqual({
      policies: [["updated p rewritten", ""]],
      targets: [],
      peers: [["deleted", "-n1 -n2", ""]],
    });
  });

  test("other pods: nodes that lose it, and nodes that get it", () => {
    const moved = policy("p", { ...labelled("client"), ingress: [fromClients] }, { generation: 2 });
    expect(changesBy((to) => to.putPolicy(moved))).toEqual({
      policies: [["updated p rewritten", "+n3 -n1 -n2"]],
      targets: [
        ["added", "+n3"],
        ["deleted", "-n1 -n2"],
      ],
      peers: [["updated", "+n3 -n1 -n2", ""]],
    });
  });

  test("made anew under its name it is another one, and its groups stay", () => {
    expect(changesBy((to) => to.putPolicy(policy("p", { ingress: [fromClients] }, { uid: "other" })))).toEqual({
      policies: [
        ["deleted p", "-n1 -n2"],
        ["added other", "+n1 +n2"],
      ],
      targets: [],
      peers: [],
    });
  });

  test("one that comes and goes between two looks is no change, nor are its groups", () => {
    expect(
      changesBy((to) => {
        to.putPolicy(policy("q", { ...labelled("other"), ingress: [{ from: [labelled("server")] }] }));
        to.deletePolicy("x/q");
        to.putPolicy(policy("p", { ingress: [{}] }));
        to.putPolicy(policy("p", { ingress: [fromClients] }));
      }),
    ).toEqual(nothing);
  });

  test("a second one with the same selectors shares their groups, until both are gone", () => {
    const computation = started();
    computation.putPolicy(policy("q", { ingress: [fromClients] }));
    expect(short(computation.take())).toEqual({ ...nothing, policies: [["added q", "+n1 +n2"]] });
    computation.deletePolicy("x/p");
    expect(short(computation.take())).toEqual({ ...nothing, policies: [["deleted p", "-n1 -n2"]] });
    computation.deletePolicy("x/q");
    expect(short(computation.take())).toEqual({
      policies: [["deleted q", "-n1 -n2"]],
      targets: [["deleted", "-n1 -n2"]],
      peers: [["deleted", "-n1 -n2", ""]],
    });
  });
});

describe("one change of a namespace", () => {
  const namespaceSelector = { matchLabels: { team: "a" } };

  test("its pods are peers as long as its labels match, also after it was made anew", () => {
    const computation = started();
    computation.putPod(pod("y/c1", "client", { node: "n3", ip: "10.0.1.1" }));
    computation.putPolicy(policy("q", { ingress: [{ from: [{ namespaceSelector }] }] }));
    computation.take();
    computation.putNamespace({ name: "y", labels: { team: "a" } });
    const joined = { ...nothing, peers: [["updated", "", "+c1 10.0.1.1"]] };
    const gone = { ...nothing, peers: [["updated", "", "-c1 10.0.1.1"]] };
    expect(short(computation.take())).toEqual(joined);
    computation.putNamespace({ name: "y", labels: { team: "b" } });
    expect(short(computation.take())).toEqual(gone);
    computation.putNamespace({ name: "y", labels: { team: "a", more: "" } });
    expect(short(computation.take())).toEqual(joined);
    computation.deleteNamespace("y");
    expect(short(computation.take())).toEqual(gone);
  });

  test("its labels are remembered while it has no pods", () => {
    const computation = started();
    computation.putNamespace({ name: "y", labels: { team: "a" } });
    computation.putPolicy(policy("q", { ingress: [{ from: [{ namespaceSelector }] }] }));
    computation.putPod(pod("y/c1", "client", { node: "n3", ip: "10.0.1.1" }));
    computation.deletePod("y/c1");
    computation.take();
    computation.putPod(pod("y/c2", "client", { node: "n3", ip: "10.0.1.2" }));
    expect(short(computation.take())).toEqual({ ...nothing, peers: [["updated", "", "+c2 10.0.1.2"]] });
  });

  test("groups of the same namespaces do not depend on each other", () => {
    const computation = started();
    computation.putPod(pod("y/c1", "client", { node: "n3", ip: "10.0.1.1" }));
    computation.putNamespace({ name: "y", labels: { team: "a" } });
    computation.putPolicy(policy("q", { ingress: [{ from: [{ namespaceSelector }] }] }));
    computation.putPolicy(policy("r", { ingress: [{ from: [{ namespaceSelector, ...labelled("client") }] }] }));
    computation.take();
    // One of them goes, and the other still follows the namespace.
    computation.deletePolicy("x/q");
    computation.take();
    computation.putNamespace({ name: "y", labels: { team: "b" } });
    expect(short(computation.take())).toMatchObject({ peers: [["updated", "", "-c1 10.0.1.1"]] });
    // A third one has nothing of what the namespace was.
    computation.putPolicy(policy("s", { ingress: [{ from: [{ namespaceSelector, podSelector: {} }] }] }));
    const [group] = computation.take().addressGroups;
    expect([...(group?.group.members() ?? [])]).toEqual([]);
  });
});
