import { afterEach, beforeEach, expect, test } from "vitest";
import { type NetworkPolicy, type Pod, readPod, readPolicy } from "../../shared/policy/mod.ts";
import {
  decodeObject,
  encodeObject,
  NetworkPolicyMessage,
  NetworkPolicyStatus,
  ObjectMeta,
} from "../../shared/proto/control-plane-messages.ts";
import { listOf, NodeStatsSummary } from "../../shared/proto/control-plane-reports.ts";
import { orderedPath, WatchingNode } from "../fakes/watching-node.ts";
import { eventually } from "../support/eventually.ts";
import { describeWith } from "../support/requires.ts";
import { ServedPolicies } from "./served-policies.ts";

const antrea = "/apis/controlplane.antrea.io/v1beta2";
const own = "/apis/controlplane.pipette.io/v1";
const protobuf = "application/vnd.kubernetes.protobuf";

const podOf = (name: string, node: string, app: string, ip: string): Pod =>
  readPod({
    metadata: { namespace: "x", name, uid: `uid-${name}`, labels: { app } },
    spec: { nodeName: node },
    status: { phase: "Running", podIPs: [{ ip }] },
  }) as Pod;

const policy = readPolicy({
  metadata: { namespace: "x", name: "db", uid: "uid-1", generation: 3 },
  spec: {
    podSelector: { matchLabels: { app: "db" } },
    policyTypes: ["Ingress"],
    ingress: [{ from: [{ podSelector: { matchLabels: { app: "web" } } }], ports: [{ port: 5432 }] }],
  },
}) as NetworkPolicy;

describeWith("the API of the controller", ["openssl"], () => {
  let served: ServedPolicies;

  beforeEach(async () => {
    served = await ServedPolicies.start([policy]);
    const { computation } = served;
    computation.putPod(podOf("db", "n1", "db", "10.0.0.1"));
    computation.putPod(podOf("web", "n2", "web", "10.0.0.2"));
    computation.putPod(podOf("other", "n2", "other", "10.0.0.3"));
    computation.putPolicy(policy);
    served.state?.watches.publish();
  });
  afterEach(() => served[Symbol.asyncDispose]());

  interface Asking {
    readonly as?: string;
    readonly method?: string;
    readonly body?: object | string | Uint8Array;
    readonly headers?: Readonly<Record<string, string>>;
  }

  async function ask(path: string, { as = "admin", method = "GET", body, headers }: Asking = {}): Promise<Response> {
    const sent = body === undefined ? {} : { body: isPlain(body) ? JSON.stringify(body) : body };
    return await fetch(`${served.url}${path}`, {
      method,
      ...sent,
      headers: { authorization: `Bearer ${as}`, ...headers },
      tls: { ca: served.ca },
    });
  }
  const isPlain = (body: object | string | Uint8Array): body is object =>
    typeof body === "object" && !(body instanceof Uint8Array);

  async function status(path: string, asking: Asking = {}): Promise<number> {
    const answer = await ask(path, asking);
    await answer.body?.cancel();
    return answer.status;
  }

  const watch = (plural: string, node: string, more = ""): string =>
    `${antrea}/${plural}?watch=true&fieldSelector=nodeName%3D${node}${more}`;

  test.each<[number, string, string, Asking?]>([
    [404, "a path that there is not", "/nothing"],
    [404, "a group that there is not", "/apis/apps/v1/deployments"],
    [404, "a resource that there is not", `${antrea}/ipgroupassociations`],
    [404, "another version", "/apis/controlplane.antrea.io/v1/networkpolicies"],
    [404, "a name with a slash in it", `${antrea}/networkpolicies/a%2Fb`],
    [404, "an object that there is not", `${antrea}/networkpolicies/uid-2`],
    [405, "what nothing can be done with", `${antrea}/networkpolicies`, { method: "DELETE" }],
    [405, "the ordered watch as a list", `${own}/nodepolicies`],
    [400, "a watch of no node", `${antrea}/networkpolicies?watch=true`],
    [400, "a watch of a node that cannot be", watch("networkpolicies", "../x")],
    [400, "another field", `${antrea}/networkpolicies?watch=true&fieldSelector=metadata.name%3Da`],
    [400, "labels to select by", `${watch("networkpolicies", "n1")}&labelSelector=a%3Db`],
    [400, "a time that is none", `${watch("networkpolicies", "n1")}&timeoutSeconds=soon`],
    [406, "an encoding that there is not", watch("networkpolicies", "n1"), { headers: { accept: "text/html" } }],
    [401, "nobody", watch("networkpolicies", "n1"), { as: "nobody" }],
    [403, "another node's watch", watch("addressgroups", "n1"), { as: "node-n2" }],
    [403, "another node's ordered watch", orderedPath("n1"), { as: "node-n2" }],
    [415, "a body of another type", `${antrea}/nodestatssummaries`, post("x", "text/plain")],
    [400, "a body that is no JSON", `${antrea}/nodestatssummaries`, post("{")],
    [400, "a body that is a list", `${antrea}/nodestatssummaries`, post("[]")],
    [400, "a body of another kind", `${antrea}/nodestatssummaries`, post({ kind: "Pod" })],
    [400, "bytes that are no protobuf", `${antrea}/nodestatssummaries`, post("k8s\0\u00ff\u00ff", protobuf)],
    [413, "a body without end", `${antrea}/nodestatssummaries`, post("x".repeat(3 * 1024 * 1024))],
    [
      400,
      "the status of another policy",
      `${antrea}/networkpolicies/uid-1/status`,
      post({ metadata: { name: "uid-2" } }),
    ],
    [
      404,
      "the status of a policy that there is not",
      `${antrea}/networkpolicies/uid-2/status`,
      post({ metadata: { name: "uid-2" } }),
    ],
    [404, "a question about a pod that there is not", `${antrea}/networkpolicyevaluation`, post({})],
  ])("answers %s to %s", async (expected, _, path, asking) => {
    expect(await status(path, asking)).toBe(expected);
    expect(await status(`${antrea}/networkpolicies`)).toBe(200);
  });

  function post(body: NonNullable<Asking["body"]>, type = "application/json"): Asking {
    return { method: "POST", body, headers: { "content-type": type } };
  }

  test("nothing is told of policies before they are computed: not even who would be refused", async () => {
    const { state } = served;
    served.state = undefined;
    for (const as of ["node-n1", "nobody"]) {
      const answer = await ask(orderedPath("n1"), { as });
      expect([answer.status, answer.headers.get("retry-after")]).toEqual([503, "1"]);
      expect(await answer.json()).toMatchObject({ kind: "Status", reason: "ServiceUnavailable", code: 503 });
    }
    expect([await status("/readyz"), await status("/livez")]).toEqual([503, 200]);
    served.state = state;
    expect([await status("/readyz", { as: "nobody" }), await status(orderedPath("n1"), { as: "node-n1" })]).toEqual([
      200, 200,
    ]);
  });

  test("lists are whole for an operator and of its own part for a node, in both encodings", async () => {
    const list = async (as: string): Promise<unknown> => (await ask(`${antrea}/networkpolicies`, { as })).json();
    const rule = {
      direction: "In",
      from: { addressGroups: [expect.any(String)] },
      to: {},
      services: [{ protocol: "TCP", port: 5432 }],
      priority: -1,
      action: "Allow",
      enableLogging: false,
    };
    const [item] = [{ metadata: { name: "uid-1", generation: 3 }, rules: [rule], sourceRef: { name: "db" } }];
    expect(await list("admin")).toMatchObject({ kind: "NetworkPolicyList", items: [item] });
    expect(await list("node-n1")).toMatchObject({ items: [item] });
    expect(await list("node-n2")).toMatchObject({ items: [] });
    const answer = await ask(`${antrea}/networkpolicies`, { headers: { accept: `${protobuf}, */*` } });
    expect(answer.headers.get("content-type")).toBe(protobuf);
    const { kind, raw } = decodeObject(await answer.bytes());
    expect(kind).toBe("NetworkPolicyList");
    expect(listOf(NetworkPolicyMessage).decode(raw).items).toMatchObject([{ sourceRef: { uid: "uid-1" } }]);
    const groups = (await (await ask(`${antrea}/addressgroups`)).json()) as { items: { metadata: { name: string } }[] };
    expect(groups.items).toMatchObject([
      { groupMembers: [{ pod: { namespace: "x", name: "web" }, ips: ["AAAAAAAAAAAAAP//CgAAAg=="] }] },
    ]);
    const name = groups.items[0]?.metadata.name ?? "";
    expect(await (await ask(`${antrea}/addressgroups/${name}`, { as: "node-n1" })).json()).toMatchObject({
      kind: "AddressGroup",
    });
    expect(await status(`${antrea}/addressgroups/${name}`, { as: "node-n2" })).toBe(404);
  });

  test("each of Antrea's watches has its own kind, one bookmark, and patches of groups", async () => {
    const following = (plural: string, more = "") =>
      new WatchingNode(served.url, served.ca, "n1", watch(plural, "n1", more));
    await using policies = following("networkpolicies");
    await using targets = following("appliedtogroups");
    await using peers = following("addressgroups", "&sendInitialEvents=true&allowWatchBookmarks=true");
    // Of the watch of policies alone nobody has heard of groups before.
    policies.view.isOrdered = false;
    for (const { view } of [policies, targets, peers]) await eventually(() => view.bookmark, "the bookmark");
    expect([policies, targets, peers].map(({ view }) => view.events)).toEqual([2, 2, 2]);
    expect(peers.view.bookmark).toEqual({ "k8s.io/initial-events-end": "true" });
    served.computation.putPod(podOf("web-2", "n3", "web", "10.0.0.4"));
    served.changed();
    await eventually(() => peers.view.events === 3, "the patch");
    expect([...peers.view.addressGroups.values()][0]?.size).toBe(2);
    expect([policies.view.events, targets.view.events]).toEqual([2, 2]);
  });

  test("JSON has the same events, one on each line", async () => {
    const answer = await ask(orderedPath("n1"), { headers: { accept: "application/json" } });
    expect(answer.headers.get("content-type")).toBe("application/json");
    const lines: { type: string; object: { kind: string; apiVersion: string } }[] = [];
    for await (const chunk of answer.body ?? []) {
      const text = new TextDecoder().decode(chunk);
      expect(text.endsWith("\n")).toBe(true);
      for (const line of text.trimEnd().split("\n")) lines.push(JSON.parse(line));
      if (lines.at(-1)?.type === "BOOKMARK") break;
    }
    expect(lines.map(({ type, object }) => `${type} ${object.kind}`)).toEqual([
      ...["ADDED AddressGroup", "ADDED AppliedToGroup", "ADDED NetworkPolicy", "ADDED ComputedPod"],
      "BOOKMARK NetworkPolicy",
    ]);
    expect(lines[3]?.object).toMatchObject({
      apiVersion: "controlplane.pipette.io/v1",
      metadata: { namespace: "x", name: "db", uid: "uid-db" },
    });
  });

  test("a watch ends when its client's time is over", async () => {
    await using node = new WatchingNode(served.url, served.ca, "n1", `${orderedPath("n1")}&timeoutSeconds=1`);
    await eventually(() => node.isOver, "the end");
    expect([node.failure, node.view.bookmark]).toEqual([undefined, {}]);
  });

  test("a node says how far it enforces a policy, in either encoding, and for no other node", async () => {
    const path = `${antrea}/networkpolicies/uid-1/status`;
    served.computation.putPod(podOf("db-2", "n2", "db", "10.0.0.4"));
    served.state?.watches.publish();
    const bytes = NetworkPolicyStatus.encode({
      metadata: { ...ObjectMeta.absent(), name: "uid-1" },
      nodes: [{ nodeName: "n1", generation: 3, realizationFailure: true, message: "too many rules" }],
    });
    const encoded = encodeObject("NetworkPolicyStatus", bytes);
    expect(await status(path, { as: "node-n1", ...post(encoded, protobuf) })).toBe(201);
    const json = { metadata: { name: "uid-1" }, nodes: [{ nodeName: "n2", generation: 2 }] };
    expect(await status(path, { as: "node-n2", ...post(json) })).toBe(201);
    expect(await status(path, { as: "node-n1", ...post(json) })).toBe(403);
    // Of a node without any of its pods nothing is kept.
    const elsewhere = { metadata: { name: "uid-1" }, nodes: [{ nodeName: "n3", generation: 2 }] };
    expect(await status(path, { as: "node-n3", ...post(elsewhere) })).toBe(201);
    expect(await (await ask(path)).json()).toMatchObject({
      nodes: [
        { nodeName: "n1", generation: 3, realizationFailure: true, message: "too many rules" },
        { nodeName: "n2", generation: 2, realizationFailure: false },
      ],
    });
    expect(await status(path, { as: "node-n1" })).toBe(403);
    // With the policy it is forgotten.
    served.computation.deletePolicy("x/db");
    served.state?.watches.publish();
    expect(await status(path)).toBe(404);
  });

  test("what nodes have counted is summed up by policy", async () => {
    const summary = {
      metadata: { ...ObjectMeta.absent(), name: "n1" },
      networkPolicies: [
        {
          networkPolicy: { type: "", namespace: "", name: "", uid: "uid-1" },
          trafficStats: { packets: 3, bytes: 300, sessions: 1 },
        },
      ],
    };
    const encoded = encodeObject("NodeStatsSummary", NodeStatsSummary.encode(summary));
    const path = `${antrea}/nodestatssummaries`;
    expect(await status(path, { as: "node-n1", ...post(encoded, protobuf) })).toBe(201);
    const json = { ...summary, metadata: { name: "n2" } };
    expect(await status(path, { as: "node-n2", ...post(json) })).toBe(201);
    expect(await status(path, { as: "node-n1", ...post(json) })).toBe(403);
    const taken = [{ networkPolicy: { uid: "uid-1" }, trafficStats: { packets: -3, bytes: -300, sessions: -1 } }];
    expect(await status(path, { as: "node-n2", ...post({ ...json, networkPolicies: taken }) })).toBe(201);
    expect(await (await ask(`${own}/policystats`)).json()).toMatchObject({
      items: [{ networkPolicy: { namespace: "x", name: "db" }, packets: 6, bytes: 600, sessions: 2 }],
    });
  });

  test.each([
    ["web", "?protocol=TCP&port=5432", { ruleIndex: 0, rule: { direction: "In", action: "Allow" } }],
    ["web", "?protocol=TCP&port=80", { ruleIndex: 2 ** 31 - 1, rule: { direction: "In", action: "Drop" } }],
    ["other", "", { ruleIndex: 2 ** 31 - 1, rule: { action: "Drop" } }],
  ])("asked whether %s reaches the database (%s), it names the policy that decides", async (from, query, expected) => {
    const request = {
      source: { pod: { namespace: "x", name: from } },
      destination: { pod: { namespace: "x", name: "db" } },
    };
    const answer = await ask(`${antrea}/networkpolicyevaluation${query}`, post({ request }));
    expect(answer.status).toBe(201);
    expect(await answer.json()).toMatchObject({
      response: { networkPolicy: { name: "db", uid: "uid-1" }, ...expected },
    });
  });

  test("discovery names what there is, and OpenAPI has the same", async () => {
    const document = async (path: string) => (await ask(path)).json() as Promise<unknown>;
    expect(await document("/apis")).toMatchObject({
      groups: [{ name: "controlplane.antrea.io" }, { name: "controlplane.pipette.io" }],
    });
    const { resources } = (await document(antrea)) as { resources: { name: string }[] };
    expect(resources.map(({ name }) => name)).toContain("networkpolicies");
    for (const { name } of resources.filter(({ name }) => !name.includes("/")))
      expect([200, 405]).toContain(await status(`${antrea}/${name}`));
    const { paths } = (await document("/openapi/v3")) as { paths: Record<string, { serverRelativeURL: string }> };
    for (const { serverRelativeURL } of Object.values(paths))
      expect(await document(serverRelativeURL)).toMatchObject({ openapi: "3.0.0" });
    expect(await document("/openapi/v2")).toMatchObject({ swagger: "2.0" });
    expect(await status("/apis", { as: "nobody" })).toBe(401);
  });
});
