import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { execa } from "execa";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ApiClient, type ServiceAccountOptions, serviceAccountAccess } from "../../../shared/kubernetes/mod.ts";
import { createLogger } from "../../../shared/log.ts";
import { formatCidr, formatIp, parseIp } from "../../../shared/net/ip.ts";
import { ScriptedApiServer } from "../../../test/fakes/kubernetes/scripted-api-server.ts";
import { eventually } from "../../../test/support/eventually.ts";
import { scratchDir } from "../../../test/support/scratch-dir.ts";
import type { ClusterNode } from "../node-registry.ts";
import { KubernetesRegistry } from "./kubernetes-registry.ts";
import { nodeOf } from "./node-resource.ts";

const times = { watchMs: 60_000, answerMs: 10_000, silenceMs: 10_000, retryFirstMs: 5, retryMostMs: 20 };
const log: string[] = [];
const logger = createLogger("info", (line) => void log.push(line));
const clientOf = (options: ServiceAccountOptions, env = {}) =>
  new ApiClient(serviceAccountAccess(options, env, "nodes.registry.server"));
let server: ScriptedApiServer;
let registry: KubernetesRegistry;

beforeEach(async () => {
  log.length = 0;
  server = await ScriptedApiServer.start();
  registry = new KubernetesRegistry({ api: clientOf({ server: server.url }), logger, times });
});
/** Gives up what never comes. */
const impatientRegistry = () =>
  new KubernetesRegistry({ api: clientOf({ server: server.url }), logger, times, patienceMs: 400 });
afterEach(() => server[Symbol.asyncDispose]());

const self = (name: string) => ({ name, uid: "u", addresses: [parseIp("192.0.2.1")!], mac: "52:54:00:00:00:01" });
const texts = (nodes: ReadonlyMap<string, ClusterNode> | undefined): string[] =>
  [...(nodes ?? [])].map(([name, { addresses, subnets }]) =>
    [name, addresses.map(formatIp), subnets.map(formatCidr)].join(" "),
  );
const watched = () => eventually(() => server.watches === 1, "a watch");

test("sentences about it have one for their subject: it gives, it has", () => {
  expect(registry.name).toBe(`Kubernetes at ${server.url}`);
});

describe("a Node is read", () => {
  test("with one address and one block of each family, and what is strange left out", () => {
    const status = {
      addresses: [
        { type: "InternalIP", address: "0.0.0.0" },
        { type: "InternalIP", address: "::1" },
        { type: "InternalIP", address: "192.0.2.1" },
        { type: "InternalIP", address: "192.0.2.7" },
        { type: "InternalIP", address: "fd00::1" },
        { type: "ExternalIP", address: "203.0.113.1" },
        { type: "InternalIP", address: "nonsense" },
        null,
      ],
      conditions: [{ type: "Ready", status: "Unknown" }],
    };
    const metadata = { name: "a", annotations: { "node.pipette.io/mac-address": "52-54-00-00-00-0A" } };
    const spec = { podCIDRs: ["10.1.0.0/24", "10.1.1.1/24", "fd00:1::/64", 7] };
    const node = nodeOf({ metadata, spec, status });
    expect(texts(new Map([["a", node!]]))).toEqual(["a 192.0.2.1,fd00::1 10.1.0.0/24,fd00:1::/64"]);
    expect(node).toMatchObject({ uid: "", mac: "52:54:00:00:00:0a", state: "lost" });
    expect(nodeOf({ metadata: { name: "a" }, spec: { podCIDR: "10.1.0.0/24" } })?.subnets).toHaveLength(1);
    for (const wrong of [undefined, [], {}, { metadata: { name: "../x" } }, { metadata: "a" }])
      expect(nodeOf(wrong)).toBeUndefined();
  });
});

test("a node's key is an annotation, which is set, changed and taken away with what the node says of itself", async () => {
  const key = (byte: number) => Buffer.alloc(32, byte).toString("base64");
  const annotationsOf = async (encryption?: { readonly type: "wireguard"; readonly key: string }) => {
    await registry.register({ ...self("a"), ...(encryption === undefined ? {} : { encryption }) });
    return (await registry.list()).find(({ name }) => name === "a")?.encryption;
  };
  server.put("a", ["10.1.0.0/24"], "192.0.2.1", {});
  for (const byte of [1, 2])
    expect(await annotationsOf({ type: "wireguard", key: key(byte) })).toEqual({ type: "wireguard", key: key(byte) });
  expect(await annotationsOf()).toBeUndefined();
  const strange = { metadata: { name: "a", annotations: { "node.pipette.io/encryption": "wireguard:x" } } };
  expect(nodeOf(strange)).not.toHaveProperty("encryption");
});

test("registering sets the MAC once, and waits for the pod CIDRs", async () => {
  server.put("a", [], "192.0.2.1");
  const registering = registry.register(self("a"));
  await eventually(() => server.asked.some((line) => line.startsWith("PATCH")), "the MAC");
  server.put("a", ["10.1.0.0/24"], "192.0.2.1", {});
  expect(texts(new Map([["a", await registering]]))).toEqual(["a 192.0.2.1 10.1.0.0/24"]);
  await registry.register(self("a"));
  await registry.register(self("a"));
  // Set before the pod CIDRs came, which the second `put` took away again, and set anew by the second registration.
  expect(server.asked.filter((line) => line.startsWith("PATCH"))).toHaveLength(2);
  server.put("b", [], "192.0.2.2");
  await expect(impatientRegistry().register(self("b"))).rejects.toMatchObject({
    code: 11,
    message: expect.stringContaining('its Node has no "spec.podCIDRs" yet'),
  });
  server.put("d", ["10.1.3.0/24"], "192.0.2.4", { status: { addresses: [] } });
  await expect(registry.register(self("d"))).rejects.toMatchObject({
    code: 11,
    message: expect.stringContaining('its Node has no "InternalIP" yet'),
  });
  await expect(registry.register(self("c"))).rejects.toMatchObject({
    code: 101,
    message: expect.stringContaining('nodes "c" not found'),
  });
  server.refusals.push({ status: 403, message: "nodes is forbidden" });
  await expect(registry.register(self("a"))).rejects.toMatchObject({
    code: 11,
    message: expect.stringContaining("403"),
  });
});

test("lists page by page, begins again where a page is too old, and releases nothing", async () => {
  server.pageSize = 2;
  for (const [i, name] of ["a", "b", "c"].entries()) server.put(name, [`10.1.${i}.0/24`], `192.0.2.${i}`);
  expect((await registry.list()).map(({ name, state }) => `${name} ${state}`)).toEqual([
    "a ready",
    "b ready",
    "c ready",
  ]);
  expect(server.asked).toEqual(["GET /api/v1/nodes?limit=100", "GET /api/v1/nodes?limit=100&continue=2"]);
  server.refusals.push({ status: 410, message: "The provided continue parameter is too old" });
  expect(await registry.list()).toHaveLength(3);
  await expect(registry.release("a")).rejects.toThrow('wanted "kubectl delete node a"');
  expect(await registry.release("x")).toBe(false);
});

test("follows what comes, changes and goes, and is not woken by what no peer asks for", async () => {
  server.put("a", ["10.1.0.0/24"], "192.0.2.1");
  await using nodes = registry.follow();
  let changes = 0;
  nodes.subscribe(() => void changes++);
  await watched();
  server.put("b", ["10.1.1.0/24"], "192.0.2.2");
  await eventually(() => nodes.current?.size === 2, "the second node");
  const before = changes;
  server.put("b", ["10.1.1.0/24"], "192.0.2.2");
  server.put("b", ["10.1.1.0/24"], "192.0.2.9");
  await eventually(() => texts(nodes.current)[1] === "b 192.0.2.9 10.1.1.0/24", "its new address");
  expect(changes).toBe(before + 1);
  server.delete("a");
  await eventually(() => nodes.current?.size === 1, "the first one to go");
});

test("a watch that ends goes on from the last version that was told, a bookmark's too", async () => {
  server.put("a", ["10.1.0.0/24"], "192.0.2.1");
  await using nodes = registry.follow();
  await watched();
  server.version = 500;
  server.bookmark();
  server.put("b", ["10.1.1.0/24"], "192.0.2.2");
  await eventually(() => nodes.current?.size === 2, "the second node");
  server.version = 700;
  server.bookmark();
  // The bookmark has to be read before the end is.
  await Bun.sleep(50);
  server.endWatches();
  await watched();
  expect(server.asked.filter((line) => !line.includes("watch"))).toHaveLength(1);
  expect(server.asked.at(-1)).toContain("resourceVersion=700&");
  server.put("c", ["10.1.2.0/24"], "192.0.2.3");
  await eventually(() => nodes.current?.size === 3, "the third node");
});

test("a version that is too old leads to a new list, which shows what went unheard", async () => {
  server.put("a", ["10.1.0.0/24"], "192.0.2.1");
  server.put("b", ["10.1.1.0/24"], "192.0.2.2");
  await using nodes = registry.follow();
  await watched();
  server.endWatches();
  server.compactedBelow = server.version + 2;
  server.nodes.delete("a");
  server.version += 10;
  await watched();
  await eventually(() => nodes.current?.size === 1, "the node that went unheard");
  expect(log.join()).toContain("too old resource version");
});

test("a watch of a quiet server is not cut: its headers come at once, and its first word a minute later", async () => {
  server.put("a", ["10.1.0.0/24"], "192.0.2.1");
  const answerMs = 500;
  server.bookmarkMs = 2 * answerMs;
  const api = clientOf({ server: server.url });
  const patient = new KubernetesRegistry({ api, logger, times: { ...times, answerMs, silenceMs: 60_000 } });
  await using nodes = patient.follow();
  await watched();
  // Of something that no watch tells.
  server.version++;
  await eventually(() => server.bookmarks === 2, "two bookmarks");
  expect(server.asked.filter((line) => line.includes("watch=true"))).toHaveLength(1);
  server.put("b", ["10.1.1.0/24"], "192.0.2.2");
  await eventually(() => nodes.current?.size === 2, "the second node");
  expect(server.asked).toHaveLength(2);
  expect(log).toEqual([]);
});

test("a server that does not even answer is given up, by the time that an answer may take", async () => {
  server.put("a", ["10.1.0.0/24"], "192.0.2.1");
  const api = clientOf({ server: server.url });
  const impatient = new KubernetesRegistry({ api, logger, times: { ...times, answerMs: 100, silenceMs: 60_000 } });
  server.mute = true;
  await using nodes = impatient.follow();
  await eventually(() => log.join().includes("gave no answer within 100 ms"), "the end of its patience");
  server.mute = false;
  server.put("b", ["10.1.1.0/24"], "192.0.2.2");
  await eventually(() => nodes.current?.size === 2, "the second node");
});

test("what changes between a list and its watch is heard", async () => {
  server.put("a", ["10.1.0.0/24"], "192.0.2.1");
  server.mute = true;
  await using nodes = registry.follow();
  await eventually(() => server.asked.some((line) => line.includes("watch=true")), "a watch that is not answered yet");
  server.put("b", ["10.1.1.0/24"], "192.0.2.2");
  server.endWatches();
  server.mute = false;
  await eventually(() => nodes.current?.size === 2, "the second node");
  expect(server.asked.filter((line) => !line.includes("watch=true"))).toHaveLength(1);
});

test("garbage on the wire, refusals and silence are told of once each, and survived", async () => {
  server.put("a", ["10.1.0.0/24"], "192.0.2.1");
  server.refusals.push(...Array.from({ length: 3 }, () => ({ status: 503, message: "etcd is not ready" })));
  await using nodes = registry.follow();
  await watched();
  expect(log.filter((line) => line.includes("503: etcd is not ready"))).toHaveLength(1);
  for (const garbage of ["{\n", "[]\n", '{"type":"ADDED","object":{}}\n', '{"type":"ADDED"}\n', `${"x".repeat(5e6)}`]) {
    const before = server.asked.length;
    server.send(garbage);
    await eventually(() => server.asked.length > before && server.watches > 0, "the next watch");
  }
  server.put("b", ["10.1.1.0/24"], "192.0.2.2");
  await eventually(() => nodes.current?.size === 2, "the second node");
  const api = clientOf({ server: server.url });
  const deaf = new KubernetesRegistry({ api, logger, times: { ...times, silenceMs: 50 } });
  const before = server.asked.length;
  await using second = deaf.follow();
  await eventually(() => server.asked.length > before + 3, "another watch after the silence");
  expect(second.current?.size).toBe(2);
  expect(log.join()).toContain("was silent for 50 ms");
});

test("the token goes over TLS only, and only to the server that the authority signed", async () => {
  using scratch = scratchDir();
  const file = (name: string): string => join(scratch.path, name);
  for (const name of ["own", "other"])
    await execa("openssl", [
      ...["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"],
      ...["-subj", "/CN=api", "-addext", "subjectAltName=IP:127.0.0.1"],
      ...["-keyout", file(`${name}.key`), "-out", file(`${name}.crt`)],
    ]);
  await using secure = await ScriptedApiServer.start({
    cert: readFileSync(file("own.crt"), "utf8"),
    key: readFileSync(file("own.key"), "utf8"),
  });
  secure.put("a", ["10.1.0.0/24"], "192.0.2.1");
  const list = (server: string, ca: string) =>
    new KubernetesRegistry({ api: clientOf({ server, token: file("token"), ca: file(ca) }), logger }).list();
  writeFileSync(file("token"), "first\n");
  expect(await list(secure.url, "own.crt")).toHaveLength(1);
  writeFileSync(file("token"), "second\n");
  expect(await list(secure.url, "own.crt")).toHaveLength(1);
  expect([...secure.authorizations]).toEqual(["Bearer first", "Bearer second"]);
  await expect(list(secure.url, "other.crt")).rejects.toMatchObject({ code: 11 });
  writeFileSync(file("token"), "a\nb");
  await expect(list(secure.url, "own.crt")).rejects.toThrow("holds no token");
  await list(server.url, "own.crt");
  expect([...server.authorizations]).toEqual([null]);
});

test("a pod finds its cluster; nobody else does without being told", () => {
  const env = { KUBERNETES_SERVICE_HOST: "fd00::1", KUBERNETES_SERVICE_PORT: "6443" };
  expect(clientOf({}, env).server).toBe("https://[fd00::1]:6443");
  expect(() => clientOf({})).toThrow('wanted "nodes.registry.server", or a pod of the cluster');
});

test("the end of a watch does not wait for a server that never answers", async () => {
  using silent = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    fetch: () => new Promise(() => undefined),
  });
  const api = clientOf({ server: `http://127.0.0.1:${silent.port}` });
  const followed = new KubernetesRegistry({ api, logger, times }).follow();
  await Bun.sleep(50);
  const ended = followed[Symbol.asyncDispose]().then(() => "ended");
  expect(await Promise.race([ended, Bun.sleep(4000).then(() => "late")])).toBe("ended");
  await silent.stop(true);
});

test("the oldest Node comes first, whatever it is called: where two claim the same, it has it", async () => {
  const made = (name: string, creationTimestamp: string): void => {
    const metadata = { name, resourceVersion: String(++server.version), creationTimestamp };
    server.put(name, ["10.1.0.0/24"], "192.0.2.1", { metadata });
  };
  made("b", "2026-03-01T10:00:00Z");
  made("a", "2026-03-02T09:00:00Z");
  made("c", "2025-12-31T23:59:59Z");
  server.pageSize = 2;
  await using followed = registry.follow();
  await eventually(() => followed.current?.size === 3, "the nodes");
  expect([...(followed.current?.keys() ?? [])]).toEqual(["c", "b", "a"]);
  await watched();
  made("0", "2020-01-01T00:00:00Z");
  made("b", "2026-03-01T10:00:00Z");
  await eventually(() => followed.current?.size === 4, "one that comes later");
  expect([...(followed.current?.keys() ?? [])]).toEqual(["c", "b", "a", "0"]);
});
