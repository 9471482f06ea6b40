import { readFileSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer, connect as dial } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { nodes } from "../../../agent/cluster/kubernetes/node-resource.ts";
import {
  ApiClient,
  type ApiObject,
  type Change,
  Connection,
  type FieldTable,
  Informer,
  kubeconfigAccess,
  listPages,
  mapIn,
  objectKey,
  objectMeta,
  type Resource,
  serviceAccountAccess,
} from "../../../shared/kubernetes/mod.ts";
import { createLogger } from "../../../shared/log.ts";
import { namespaces, networkPolicies, pods } from "../../../shared/policy/mod.ts";
import { HoldingProxy } from "../../registry/holding-proxy.ts";
import { eventually } from "../../support/agent-process.ts";
import { describeWith } from "../../support/requires.ts";
import { scratchDir } from "../../support/scratch-dir.ts";
import { ApiServer } from "../api-server.ts";

const logger = createLogger("error", () => undefined);
const times = { watchMs: 60_000, answerMs: 10_000, silenceMs: 60_000, retryFirstMs: 10, retryMostMs: 200 };
const never = new AbortController().signal;

const named = (plural: string, fields?: FieldTable): Resource<ApiObject> => ({
  version: "v1",
  plural,
  ...(fields === undefined ? {} : { fields }),
  project: (object) => object,
});
const configMaps = named("configmaps", { 1: ["metadata", "message", objectMeta] });

/** What a decoder of the table would make of it. */
function picked(value: unknown, table: FieldTable): ApiObject {
  const found: Record<string, unknown> = {};
  for (const [name, kind, inner] of Object.values(table)) {
    const field = (value as ApiObject)[name];
    if (field === undefined || field === null || field === "") continue;
    if (kind === "message") found[name] = picked(field, inner);
    else if (kind === "messages") found[name] = (field as unknown[]).map((each) => picked(each, inner));
    else found[name] = field;
  }
  return found;
}

/** Protobuf says `false`, 0 and empty messages where JSON says nothing. */
function withoutNothing(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNothing);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, inner]) => inner !== undefined && inner !== false && inner !== 0)
      .map(([key, inner]) => [key, withoutNothing(inner)]),
  );
}

/** TCP connections of this process to the port. */
function connectionsTo(port: number): number {
  const remote = `0100007F:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const lines = readFileSync("/proc/self/net/tcp", "utf8").split("\n");
  return lines.filter((line) => line.trim().split(/\s+/)[2] === remote && line.trim().split(/\s+/)[3] === "01").length;
}

describeWith("the client of the API server, with a real one", ["linux", "kube-apiserver", "etcd", "openssl"], () => {
  const scratch = scratchDir();
  const at = (name: string): string => join(scratch.path, name);
  let server: ApiServer;
  let client: ApiClient;

  const accessTo = (url: string, token = at("token")) =>
    serviceAccountAccess({ server: url, ca: server.ca, token }, {}, "server");

  beforeAll(async () => {
    server = await ApiServer.start();
    writeFileSync(at("token"), "administrator");
    client = new ApiClient(accessTo(server.url));
    for (const name of ["a", "b"]) {
      await server.ask("POST", "/api/v1/namespaces", { metadata: { name, labels: { team: name } } });
      await server.ask("POST", `/api/v1/namespaces/${name}/serviceaccounts`, { metadata: { name: "default" } });
    }
  });
  afterAll(async () => {
    await client?.[Symbol.asyncDispose]();
    await server?.[Symbol.asyncDispose]();
    scratch[Symbol.dispose]();
  });

  const putMap = (name: string, labels: object = {}, namespace = "a", data: object = {}) =>
    server.create(`/api/v1/namespaces/${namespace}/configmaps`, { metadata: { name, labels }, data });
  const deleteMap = (name: string) => server.ask("DELETE", `/api/v1/namespaces/a/configmaps/${name}`);

  test("what is decoded of protobuf is what JSON says of it, for every kind that has a table", async () => {
    const probe = { httpGet: { path: "/", port: "http" } };
    await server.create("/api/v1/namespaces/a/pods", {
      metadata: { name: "p", labels: { app: "x", empty: "" }, annotations: { "a/b": "ü" } },
      spec: {
        nodeName: "n1",
        hostNetwork: true,
        initContainers: [
          {
            name: "s",
            image: "i",
            restartPolicy: "Always",
            ports: [{ name: "proxy", containerPort: 81, protocol: "UDP" }],
          },
        ],
        containers: [{ name: "c", image: "i", livenessProbe: probe, ports: [{ name: "http", containerPort: 80 }] }],
      },
    });
    const status = { phase: "Running", podIP: "10.0.0.1", podIPs: [{ ip: "10.0.0.1" }, { ip: "fd00::1" }] };
    await server.ask("PATCH", "/api/v1/namespaces/a/pods/p/status", { status });
    await server.create("/apis/networking.k8s.io/v1/namespaces/a/networkpolicies", {
      metadata: { name: "np" },
      spec: {
        podSelector: { matchExpressions: [{ key: "app", operator: "In", values: ["x", "y"] }] },
        policyTypes: ["Ingress", "Egress"],
        ingress: [
          { from: [{ podSelector: {} }, { namespaceSelector: { matchLabels: { team: "b" } } }] },
          { ports: [{ protocol: "TCP", port: "http" }, { port: 8000, endPort: 9000 }, { protocol: "UDP" }] },
          {},
        ],
        egress: [{ to: [{ ipBlock: { cidr: "10.0.0.0/8", except: ["10.1.0.0/16"] } }] }],
      },
    });
    await server.create("/api/v1/nodes", {
      metadata: { name: "n1" },
      spec: { podCIDRs: ["10.9.0.0/24"], podCIDR: "10.9.0.0/24" },
    });
    const addresses = [{ type: "InternalIP", address: "192.0.2.1" }];
    const conditions = [{ type: "Ready", status: "True", reason: "x", message: "y" }];
    await server.ask("PATCH", "/api/v1/nodes/n1/status", {
      status: { addresses, conditions, images: [{ names: ["i"] }] },
    });
    const kinds: readonly (readonly [Resource<ApiObject>, FieldTable])[] = [
      [named("pods", pods.fields), pods.fields ?? {}],
      [named("nodes", nodes.fields), nodes.fields ?? {}],
      [named("namespaces", namespaces.fields), namespaces.fields ?? {}],
      [
        { ...named("networkpolicies", networkPolicies.fields), group: "networking.k8s.io" },
        networkPolicies.fields ?? {},
      ],
    ];
    for (const [kind, table] of kinds) {
      const { fields: _, ...json } = kind;
      const lists = await Promise.all([
        Array.fromAsync(listPages(client, kind, {}, never)),
        Array.fromAsync(listPages(client, json, {}, never)),
      ]);
      const [proto, plain] = lists.map((pages) => pages.flatMap(({ items }) => items));
      expect(plain?.length).toBeGreaterThan(0);
      expect(withoutNothing(proto), kind.plural).toEqual(withoutNothing(plain?.map((object) => picked(object, table))));
    }
  });

  test("metadata alone of a kind that the server has no protobuf table here for", async () => {
    const metadataOnly = { ...named("namespaces", { 1: ["metadata", "message", objectMeta] }), metadataOnly: true };
    await using informer = new Informer(client, metadataOnly, { logger, times });
    await informer.synced;
    expect(informer.objects.get(objectKey("a"))).toMatchObject({ metadata: { labels: { team: "a" } } });
    await server.ask("PATCH", "/api/v1/namespaces/b", { metadata: { labels: { team: "c" } } });
    const team = () => mapIn(mapIn(informer.objects.get(objectKey("b")), "metadata"), "labels")["team"];
    await eventually(() => team() === "c", "the new label");
  });

  test("follows what comes, changes and goes, by labels, fields and namespace", async () => {
    await putMap("first", { app: "x" });
    const selection = { namespace: "a", labels: "app=x", fields: "metadata.name!=hidden" };
    await using informer = new Informer(client, configMaps, { logger, times, selection });
    const heard: string[] = [];
    informer.subscribe({
      changed: (changes: readonly Change<ApiObject>[]) =>
        void heard.push(...changes.map(({ t, key }) => `${t} ${key}`)),
    });
    await informer.synced;
    await eventually(() => informer.state.t === "watching", "a watch");
    for (const name of ["hidden", "second"]) await putMap(name, { app: "x" });
    await putMap("other", { app: "y" });
    await putMap("elsewhere", { app: "x" }, "b");
    await server.ask("PATCH", "/api/v1/namespaces/a/configmaps/second", { data: { k: "v" } });
    // What a selector no longer selects is gone.
    await server.ask("PATCH", "/api/v1/namespaces/a/configmaps/first", { metadata: { labels: { app: "z" } } });
    await deleteMap("second");
    await eventually(() => heard.length === 5, "five changes");
    expect(heard).toEqual([
      "added a/first",
      "added a/second",
      "updated a/second",
      "deleted a/first",
      "deleted a/second",
    ]);
  });

  test("thirty watches and what is asked beside them share one connection", async () => {
    await using proxy = await HoldingProxy.to(server.url);
    const url = proxy.endpoint.replace("http:", "https:");
    await using own = new ApiClient(accessTo(url));
    const informers = Array.from({ length: 30 }, (_, i) => {
      const selection = { labels: `number notin (${i})` };
      return new Informer(own, configMaps, { logger, times, selection });
    });
    await Promise.all(informers.map((informer) => informer.synced));
    await eventually(() => informers.every(({ state }) => state.t === "watching"), "all watches");
    await putMap("heard");
    await eventually(() => informers.every(({ objects }) => objects.get(objectKey("heard", "a")) !== undefined), "all");
    expect(connectionsTo(Number(new URL(url).port))).toBe(1);
    await Promise.all(informers.map((informer) => informer[Symbol.asyncDispose]()));
  });

  test("more requests at a time than the server lets one connection have", async () => {
    const answers = await Promise.all(
      Array.from({ length: 250 }, () => client.get({ path: "/api/v1/namespaces/a", action: "get" })),
    );
    expect(answers.every((answer) => mapIn(answer, "metadata")["name"] === "a")).toBe(true);
  });

  test("an answer many times as long as the windows of the connection comes through", async () => {
    const data = { x: "x".repeat(900_000) };
    for (let i = 0; i < 16; i++) await putMap(`large-${i}`, { large: "yes" }, "b", data);
    const asked = { path: "/api/v1/namespaces/b/configmaps?labelSelector=large", action: "list" };
    const { items } = await client.get(asked);
    expect((items as unknown[]).length).toBe(16);
    const both = await Promise.all([client.get(asked), client.get(asked)]);
    expect(both.map((answer) => (answer["items"] as unknown[]).length)).toEqual([16, 16]);
    for (let i = 0; i < 16; i++) await server.ask("DELETE", `/api/v1/namespaces/b/configmaps/large-${i}`);
  });

  test("a connection that is cut is made again, and nothing is listed again", async () => {
    await using proxy = await HoldingProxy.to(server.url);
    await using own = new ApiClient(accessTo(proxy.endpoint.replace("http:", "https:")));
    await using informer = new Informer(own, configMaps, { logger, times });
    const states: string[] = [];
    informer.subscribe({ changed: () => undefined, stateChanged: ({ t }) => void states.push(t) });
    await informer.synced;
    await eventually(() => informer.state.t === "watching", "a watch");
    for (const name of ["cut-1", "cut-2"]) {
      proxy.cut();
      await putMap(name);
      await eventually(() => informer.objects.get(objectKey(name, "a")) !== undefined, name);
    }
    expect(new Set(states)).toEqual(new Set(["watching", "failing"]));
  });

  test("a peer that has fallen silent is found by PING, long before its watch would be given up", async () => {
    await using proxy = await HoldingProxy.to(server.url);
    const access = accessTo(proxy.endpoint.replace("http:", "https:"));
    const transport = new Connection(access, {}, { pingMs: 200, pongMs: 500 });
    await using own = new ApiClient(access, { transport });
    await using informer = new Informer(own, configMaps, { logger, times });
    const errors: string[] = [];
    informer.subscribe({
      changed: () => undefined,
      stateChanged: (state) => void (state.t === "failing" && errors.push(state.error.message)),
    });
    await eventually(() => informer.state.t === "watching", "a watch");
    await Bun.sleep(1000);
    expect(errors).toEqual([]);
    proxy.holdMs = 20_000;
    await eventually(() => errors.length > 0, "the silence to be found");
    expect(errors[0]).toContain("answered no PING within 500 ms");
    proxy.holdMs = 0;
    await putMap("after-silence");
    await eventually(() => informer.objects.get(objectKey("after-silence", "a")) !== undefined, "what came since");
  });

  test("a right that is missing is named, and a token that is none", async () => {
    const asked = { path: "/api/v1/nodes", action: "list nodes" };
    const account = "/api/v1/namespaces/a/serviceaccounts/default/token";
    const { status } = await server.create(account, {
      apiVersion: "authentication.k8s.io/v1",
      kind: "TokenRequest",
      spec: {},
    });
    writeFileSync(at("powerless"), (status as { token: string }).token);
    await using powerless = new ApiClient(accessTo(server.url, at("powerless")));
    await expect(powerless.get(asked)).rejects.toThrow(
      /^Cannot list nodes: the API server answers 403: nodes is forbidden: User "system:serviceaccount:a:default" cannot list resource "nodes".*, wanted the right to list nodes$/,
    );
    writeFileSync(at("foreign"), "foreign-token");
    await using foreign = new ApiClient(accessTo(server.url, at("foreign")));
    await expect(foreign.get(asked)).rejects.toThrow(
      /^Cannot list nodes: the API server answers 401: Unauthorized, wanted a token or a certificate that it accepts$/,
    );
  });

  test("a token that is rotated is used from then on, also by an informer that was refused", async () => {
    writeFileSync(at("rotated"), "not-yet");
    await using own = new ApiClient(accessTo(server.url, at("rotated")));
    await using informer = new Informer(own, configMaps, { logger, times });
    await eventually(() => informer.state.t === "failing", "a refusal");
    expect(informer.state).toMatchObject({ error: { status: 401 } });
    expect(JSON.stringify(informer.state)).not.toContain("not-yet");
    writeFileSync(at("rotated"), "administrator");
    await informer.synced;
  });

  test("a kubeconfig with an exec plugin, and a proxy on the way", async () => {
    const connects: string[] = [];
    const proxy = createServer((near) => {
      near.on("error", () => undefined);
      near.once("data", (head) => {
        connects.push(head.toString("latin1"));
        const far = dial(Number(new URL(server.url).port), "127.0.0.1", () => near.write("HTTP/1.1 200 OK\r\n\r\n"));
        far.on("error", () => undefined);
        near.pipe(far).pipe(near);
      });
    });
    await new Promise<void>((resolve) => void proxy.listen(0, "127.0.0.1", resolve));
    const { port } = proxy.address() as AddressInfo;
    const credential = {
      apiVersion: "client.authentication.k8s.io/v1",
      kind: "ExecCredential",
      status: { token: "administrator" },
    };
    const config = {
      "current-context": "x",
      contexts: [{ name: "x", context: { cluster: "c", user: "u" } }],
      clusters: [
        {
          name: "c",
          cluster: {
            server: server.url,
            "certificate-authority": server.ca,
            "proxy-url": `http://me:secret@127.0.0.1:${port}`,
          },
        },
      ],
      users: [
        {
          name: "u",
          user: { exec: { apiVersion: credential.apiVersion, command: "echo", args: [JSON.stringify(credential)] } },
        },
      ],
    };
    writeFileSync(at("config"), JSON.stringify(config));
    const access = await kubeconfigAccess({ env: { ...process.env, KUBECONFIG: at("config") } });
    const own = new ApiClient(access, { env: {} });
    expect(await own.get({ path: "/version", action: "get the version" })).toMatchObject({ major: "1" });
    expect(connects).toEqual([
      `CONNECT ${new URL(server.url).host} HTTP/1.1\r\nHost: ${new URL(server.url).host}\r\nProxy-Authorization: Basic ${btoa("me:secret")}\r\n\r\n`,
    ]);
    await own[Symbol.asyncDispose]();
    await new Promise<void>((resolve) => void proxy.close(() => resolve()));
    const refused = new ApiClient(access, { env: {} });
    await expect(refused.get({ path: "/version", action: "get the version" })).rejects.toThrow("nobody listens");
    await expect(refused.get({ path: "/version", action: "get the version" })).rejects.not.toThrow("secret");
    await refused[Symbol.asyncDispose]();
  });
});
