import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Play, ScriptedTransport } from "../../test/fakes/kubernetes/scripted-transport.ts";
import { Certificates } from "../../test/support/certificates.ts";
import { describeWith } from "../../test/support/requires.ts";
import { scratchDir } from "../../test/support/scratch-dir.ts";
import { ApiClient, type ApiObject } from "../kubernetes/mod.ts";
import { createLogger } from "../log.ts";
import { type Pod, readPod } from "../policy/mod.ts";
import { type Asker, type ClientTrust, clientTrusts, noTrust } from "./client-trust.ts";
import { ClusterAccess } from "./cluster-access.ts";
import type { User, Wish } from "./user.ts";

const wish: Wish = { t: "resource", verb: "watch", group: "g", version: "v", resource: "r" };
const user = (more: Partial<User> = {}): User => ({ name: "u", uid: "", groups: [], extra: {}, ...more });

class Request implements Asker {
  readonly certificate: Uint8Array | undefined;
  readonly #headers: readonly (readonly [string, string])[];

  constructor(headers: readonly (readonly [string, string])[], certificate?: Uint8Array) {
    this.#headers = headers;
    this.certificate = certificate;
  }
  header(name: string): string | undefined {
    return this.#headers.find(([is]) => is === name)?.[1];
  }
  headersFrom(prefix: string): Iterable<readonly [string, string]> {
    return this.#headers.filter(([is]) => is.startsWith(prefix));
  }
}

const bearer = (token: string): Request => new Request([["authorization", `Bearer ${token}`]]);
const answer = (status: object): Play => ({ t: "answer", status: 201, body: { status } });

let play: (body: ApiObject & { spec: ApiObject }, path: string) => Play;
let transport: ScriptedTransport;
let trust: ClientTrust;
const pods = new Map<string, Pod>();

function accessOf(): ClusterAccess {
  transport = new ScriptedTransport(({ path, body }) => play(JSON.parse(body ?? "{}"), path));
  const credentials = { authorization: async () => undefined, renew: async () => false };
  const client = new ApiClient({ server: "https://s", tls: async () => ({}), credentials }, { transport });
  const logger = createLogger("error", () => undefined);
  return new ClusterAccess({ client, logger, trust: () => trust, pod: (key) => pods.get(key) });
}

beforeEach(() => {
  trust = noTrust;
  pods.clear();
});

describe("a token", () => {
  test("is who the API server says it is, and is not asked about again for a while", async () => {
    const said = { username: "system:serviceaccount:a:b", uid: "1", groups: ["g"], extra: { k: ["v", "w"] } };
    play = ({ spec }) => answer({ authenticated: spec["token"] === "good", user: said });
    const access = accessOf();
    const expected = { name: "system:serviceaccount:a:b", uid: "1", groups: ["g"], extra: { k: ["v", "w"] } };
    const all = await Promise.all([1, 2, 3].map(() => access.userOf(bearer("good"))));
    expect(all).toEqual([expected, expected, expected]);
    for (let i = 0; i < 2; i++) await expect(access.userOf(bearer("bad"))).rejects.toMatchObject({ status: 401 });
    expect(transport.asked).toHaveLength(2);
  });

  test("that cannot be asked about opens nothing, and is asked about again", async () => {
    play = () => ({ t: "break", error: new Error("gone") });
    const access = accessOf();
    for (let i = 0; i < 2; i++) await expect(access.userOf(bearer("good"))).rejects.toMatchObject({ status: 503 });
    expect(transport.asked).toHaveLength(2);
    play = () => answer({ authenticated: true, user: { username: "u" } });
    expect(await access.userOf(bearer("good"))).toMatchObject({ name: "u" });
  });

  test.each<[string, object]>([
    ["nothing", {}],
    ["a user, but not that this is one", { user: { username: "u" } }],
    ["that this is somebody, but not who", { authenticated: true }],
    ["an error", { authenticated: false, error: "expired", user: { username: "u" } }],
  ])("of which the API server says %s is nobody's", async (_, status) => {
    play = () => answer(status);
    await expect(accessOf().userOf(bearer("t"))).rejects.toMatchObject({ status: 401 });
  });

  test("is not asked about when too many others are: whoever invents tokens floods nobody", async () => {
    play = () => ({ t: "mute" });
    const access = accessOf();
    for (let i = 0; i < 100; i++) void access.userOf(bearer(`t${i}`)).catch(() => undefined);
    await expect(access.userOf(bearer("more"))).rejects.toMatchObject({ status: 429 });
    expect(transport.asked.length).toBeLessThanOrEqual(100);
  });

  test.each(["", "Basic eDp5", "Bearer", "Bearer a b"])("is not what %j says", async (authorization) => {
    play = () => answer({ authenticated: true, user: { username: "u" } });
    await expect(accessOf().userOf(new Request([["authorization", authorization]]))).rejects.toMatchObject({
      status: 401,
    });
  });
});

describe("a right", () => {
  test("is what the API server says, for this user and this wish alone", async () => {
    play = ({ spec }) => answer({ allowed: spec["user"] === "u" && JSON.stringify(spec).includes('"watch"') });
    const access = accessOf();
    expect(await access.isAllowed(user(), wish)).toBe(true);
    expect(await access.isAllowed(user(), wish)).toBe(true);
    expect(await access.isAllowed(user({ name: "other" }), wish)).toBe(false);
    expect(await access.isAllowed(user(), { t: "path", verb: "get", path: "/apis" })).toBe(false);
    expect(transport.requests.map(({ body }) => JSON.parse(body ?? "{}").spec)).toMatchObject([
      { user: "u", resourceAttributes: { verb: "watch", group: "g", version: "v", resource: "r" } },
      { user: "other" },
      { nonResourceAttributes: { verb: "get", path: "/apis" } },
    ]);
  });

  test.each<[string, Play]>([
    ["cannot be asked for", { t: "break", error: new Error("gone") }],
    ["is refused to us", { t: "answer", status: 403, body: { message: "no" } }],
  ])("that %s is nobody's", async (_, said) => {
    play = () => said;
    await expect(accessOf().isAllowed(user(), wish)).rejects.toMatchObject({ status: 503 });
  });

  test.each([{}, { allowed: "yes" }, { allowed: true, denied: true }])("is not what %j says", async (status) => {
    play = () => answer(status);
    expect(await accessOf().isAllowed(user(), wish)).toBe(false);
  });
});

describe("the reach of a token", () => {
  const podExtra = (more: object = {}) => ({
    "authentication.kubernetes.io/pod-name": ["agent"],
    "authentication.kubernetes.io/pod-uid": ["uid-1"],
    ...more,
  });
  const account = "system:serviceaccount:kube-system:pipette-agent";
  const agent = (uid: string, node?: string): void => {
    const pod = readPod({ metadata: { namespace: "kube-system", name: "agent", uid }, spec: { nodeName: node } });
    if (pod !== undefined) pods.set("kube-system/agent", pod);
  };

  test("is the node that the API server names, whatever we know of its pod", () => {
    agent("uid-1", "other");
    const extra = podExtra({ "authentication.kubernetes.io/node-name": ["n1"] });
    expect(accessOf().reachOf(user({ name: account, extra }))).toEqual({ t: "node", node: "n1" });
  });

  test("is its pod's node where the API server names none, and nothing where that pod is another one by now", () => {
    const asked = user({ name: account, extra: podExtra() });
    expect(accessOf().reachOf(asked)).toEqual({ t: "nothing" });
    agent("uid-1");
    expect(accessOf().reachOf(asked)).toEqual({ t: "nothing" });
    agent("uid-1", "n1");
    expect(accessOf().reachOf(asked)).toEqual({ t: "node", node: "n1" });
    agent("uid-2", "n1");
    expect(accessOf().reachOf(asked)).toEqual({ t: "nothing" });
    agent("uid-1", "n1");
    expect(accessOf().reachOf(user({ name: "somebody", extra: podExtra() }))).toEqual({ t: "nothing" });
  });

  test("is a kubelet's own node, and an operator's every node", () => {
    const access = accessOf();
    expect(access.reachOf(user({ name: "system:node:n1", groups: ["system:nodes"] }))).toEqual({
      t: "node",
      node: "n1",
    });
    expect(access.reachOf(user({ name: "system:node:n1" }))).toEqual({ t: "all nodes" });
    expect(access.reachOf(user({ name: "admin", groups: ["system:masters"] }))).toEqual({ t: "all nodes" });
  });
});

describeWith("a certificate of a client", ["openssl"], () => {
  let certificates: Certificates;
  let resources: DisposableStack;
  beforeAll(async () => {
    resources = new DisposableStack();
    certificates = new Certificates(resources.use(scratchDir()).path);
    for (const authority of ["clients", "proxies"]) await certificates.make(authority);
    await certificates.make("operator", "clients");
    for (const name of ["front-proxy-client", "imposter"]) await certificates.make(name, "proxies");
  });
  afterAll(() => resources.dispose());

  const text = (file: string): string => readFileSync(certificates.file(`${file}.pem`), "utf8");
  const der = (name: string): Uint8Array => new X509Certificate(text(name)).raw;
  const headers = [
    ["x-remote-user", "alice"],
    ["x-remote-group", "devs"],
    ["x-remote-group", "system:authenticated"],
    ["x-remote-group-not", "admins"],
    ["x-remote-extra-authentication.kubernetes.io%2fnode-name", "n1"],
  ] as const;

  beforeEach(() => {
    const data = {
      "client-ca-file": text("clients"),
      "requestheader-client-ca-file": text("proxies"),
      "requestheader-allowed-names": '["front-proxy-client"]',
      "requestheader-username-headers": '["X-Remote-User"]',
      "requestheader-group-headers": '["X-Remote-Group"]',
      "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
    };
    trust = clientTrusts.project({ data }) ?? noTrust;
    play = () => answer({ authenticated: false });
  });

  test.each([
    ["system:kube-aggregator", [], ["system:authenticated"]],
    ["alice", ["devs"], ["devs", "system:authenticated"]],
    ["system:anonymous", ["system:unauthenticated"], ["system:unauthenticated"]],
  ])("of the aggregation layer makes %s, of groups %j, one of %j", async (name, groups, known) => {
    const said = [["x-remote-user", name] as const, ...groups.map((group) => ["x-remote-group", group] as const)];
    const user = await accessOf().userOf(new Request(said, der("front-proxy-client")));
    expect(user).toMatchObject({ name, groups: known });
  });

  test("says who that is, and headers say nothing then", async () => {
    expect(await accessOf().userOf(new Request(headers, der("operator")))).toMatchObject({
      name: "operator",
      groups: ["system:authenticated"],
      extra: {},
    });
  });

  test("of the aggregation layer asks for whom its headers name", async () => {
    expect(await accessOf().userOf(new Request(headers, der("front-proxy-client")))).toEqual({
      name: "alice",
      uid: "",
      groups: ["devs", "system:authenticated"],
      extra: { "authentication.kubernetes.io/node-name": ["n1"] },
    });
  });

  test.each<[string, () => Request]>([
    ["headers without a certificate", () => new Request(headers)],
    ["the aggregation layer under another name", () => new Request(headers, der("imposter"))],
    ["the aggregation layer without a user", () => new Request([], der("front-proxy-client"))],
    ["an authority's own certificate", () => new Request(headers, der("proxies"))],
  ])("counts for nothing: %s", async (_, request) => {
    await expect(accessOf().userOf(request())).rejects.toMatchObject({ status: 401 });
  });

  test("is nobody's once its authority is trusted no more, or where what is trusted cannot be read", async () => {
    trust = noTrust;
    await expect(accessOf().userOf(new Request(headers, der("operator")))).rejects.toMatchObject({ status: 401 });
    const data = { "requestheader-client-ca-file": text("proxies"), "requestheader-allowed-names": "nonsense" };
    trust = clientTrusts.project({ data }) ?? noTrust;
    await expect(accessOf().userOf(new Request(headers, der("front-proxy-client")))).rejects.toMatchObject({
      status: 401,
    });
  });
});
