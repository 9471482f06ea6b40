import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Pod } from "../../shared/cni/types.ts";
import { type NodeKind, nodeKinds, readNodeDocument } from "../../shared/documents/mod.ts";
import { formatIp } from "../../shared/net/ip.ts";
import { ownerOf, partsInMemory } from "../../test/fakes/parts-in-memory.ts";
import { eventually } from "../../test/support/eventually.ts";
import type { NodeRegistry } from "../cluster/node-registry.ts";
import type { ViewSources } from "./view-sources.ts";
import { Views } from "./views.ts";

type Parts = Awaited<ReturnType<typeof partsInMemory>>;

let parts: Parts;
let ended: AbortController;
let sources: ViewSources;
let examined = 0;
const never = new AbortController().signal;

beforeEach(async () => {
  parts = await partsInMemory("bridge");
  ended = new AbortController();
  examined = 0;
  const info = {
    ...{ version: "1.2.3", dataPath: "bridge", startedAtMs: 7 },
    ...{ callsInFlight: () => 2, notReady: () => undefined, refused: () => undefined, cluster: () => "" },
    ...{ policies: () => "", policyDifferences: async () => [], services: () => undefined, state: () => "ready" },
    ...{
      troubles: () => [],
      probes: () => undefined,
      refusals: () => [],
      configuration: async () => ["agent.yaml is\u001b[2J wrong"],
    },
  };
  sources = {
    ...{ context: parts, info, node: "a", registry: undefined },
    janitor: { pendingDetaches: () => 0 },
    probes: () => undefined,
    policies: () => undefined,
    services: () => undefined,
    logLevel: () => "info",
    examine: async () => {
      examined++;
      return { findings: [], leases: 0, interfaces: 0 };
    },
  };
});
afterEach(() => parts[Symbol.dispose]());

async function add(sandboxId: string, pod: Pod): Promise<void> {
  const owner = ownerOf(sandboxId);
  const { leases } = parts.allocator.allocate(owner, parts.ipam, pod);
  const ips = leases.map(({ address }) => ({ address }));
  const container = { id: sandboxId, netns: "/n", kind: { t: "sandbox" } } as const;
  await parts.dataPath.attach({
    owner,
    container,
    pod,
    ownLease: true,
    ipam: { ips, routes: [], interfaces: [], dns: {} },
  });
}

const ask = (kind: string, more: { name?: string; ifNotRevision?: string; waitMs?: number } = {}, views = open()) =>
  views.get({ kind, name: "", ifNotRevision: "", waitMs: 0, ...more }, never);
const open = (): Views => new Views(sources, ended.signal);
const read = async <K extends NodeKind>(kind: K, name = "") =>
  readNodeDocument(kind, "a", (await ask(kind, { name }))?.json ?? new Uint8Array(), "here");

test.each(nodeKinds.filter((kind) => kind !== "flows"))("%s is a document that its reader takes", async (kind) => {
  expect(await read(kind)).toMatchObject({ kind, version: 1, node: "a" });
});

test("a node says what its status says", async () => {
  expect(await read("node")).toMatchObject({
    ...{ agentVersion: "1.2.3", startedAtMs: 7, state: "ready", logLevel: "info", callsInFlight: 2 },
    configuration: ["agent.yaml is\u001b[2J wrong"],
  });
});

test.each([
  ["leases of nobody", { kind: "lease" }, 'there is no kind "lease", wanted one of node, pods'],
  ["a name without end", { kind: "pods", name: "x".repeat(600) }, "the name has 600 characters, wanted at most"],
  ["flows of a kernel bridge", { kind: "flows" }, 'the data path "bridge" of node "a" has no flows'],
])("%s: a sentence", async (_, { kind, ...more }, wanted) => {
  await expect(ask(kind, more)).rejects.toThrow(wanted);
});

describe("pods and their leases", () => {
  beforeEach(async () => {
    await add("s1", { namespace: "shop", name: "web", uid: "u1" });
    await add("s2", { namespace: "shop", name: "db", uid: "u2" });
    await add("s3", { namespace: "other", name: "web", uid: "u3" });
  });

  test("are in the order of their names, with what belongs to each", async () => {
    const { pods, omitted } = await read("pods");
    expect(omitted).toBe(0);
    expect(pods.map(({ podNamespace, podName }) => `${podNamespace}/${podName}`)).toEqual([
      "other/web",
      "shop/db",
      "shop/web",
    ]);
    expect(pods[2]).toEqual({
      ...{ podNamespace: "shop", podName: "web", podUid: "u1", network: "pods", containerId: "s1" },
      ...{ ifname: "eth0", hostIfname: "ve-s1", ownLease: true, addresses: [expect.stringMatching(/\/\d+$/)] },
      gateway: expect.any(String),
    });
  });

  test.each([
    ["shop/web", ["s1"]],
    ["shop/", ["s2", "s1"]],
    ["shop", []],
    ["web", []],
  ])("named %j", async (name, wanted) => {
    expect((await read("pods", name)).pods.map(({ containerId }) => containerId)).toEqual(wanted);
    expect((await read("leases", name)).leases.map(({ containerId }) => containerId).sort()).toEqual(wanted.toSorted());
  });

  test("are cells of their pool", async () => {
    const { pools } = await read("addresses");
    const [pool] = pools;
    expect(pool).toMatchObject({ network: "pods", allocated: 3, releasing: 0, cooling: 0 });
    const cells = pool?.strips[0]?.cells ?? "";
    expect([...cells].filter((cell) => cell === "a")).toHaveLength(3);
    expect([...cells].filter((cell) => cell === "g")).toHaveLength(1);
  });

  test("are holders of their addresses, by address and by pod, until they leave", async () => {
    const [lease] = parts.allocator.find(ownerOf("s1"));
    const address = formatIp(lease?.address.ip ?? { family: 4, value: 0n });
    parts.allocator.release(ownerOf("s1"), "releasing");
    expect((await read("history")).history.map(({ podName }) => podName).sort()).toEqual(["db", "web", "web"]);
    expect((await read("history", address)).history).toEqual([
      {
        ...{ network: "pods", address, containerId: "s1", ifname: "eth0" },
        ...{ podNamespace: "shop", podName: "web", podUid: "u1" },
        ...{ fromMs: lease?.allocatedAtMs, untilMs: expect.any(Number), generation: lease?.generation },
      },
    ]);
    const [db, ...more] = (await read("history", "shop/db")).history;
    expect(more).toEqual([]);
    expect(db).not.toHaveProperty("untilMs");
    expect((await read("history", "10.255.0.1")).history).toEqual([]);
  });
});

test("peers are shown with what is known of the way to their pods", async () => {
  const peer = { name: "b", uid: "b", addresses: [], subnets: [], state: "ready" } as const;
  const registry = { name: "a file", list: async () => [peer, { ...peer, name: "a" }] } as unknown as NodeRegistry;
  const probe = { address: "10.2.0.1", state: "lost", failures: 3, reason: "nothing comes back" } as const;
  const probes = { about: "each every 60 s", of: (node: string) => (node === "b" ? [probe] : []) };
  sources = { ...sources, registry, probes: () => probes };
  const { probing, peers } = await read("peers");
  expect(probing).toBe("each every 60 s");
  expect(peers.map(({ name, probes: of }) => [name, of])).toEqual([
    ["a", undefined],
    ["b", [probe]],
  ]);
});

describe("who waits", () => {
  test("hears at once of another document, and in the end that there is none", async () => {
    const views = open();
    const first = await ask("pods", {}, views);
    expect(await ask("pods", { ifNotRevision: first?.revision ?? "", waitMs: 20 }, views)).toBeUndefined();
    expect((await ask("pods", { ifNotRevision: "old" }, views))?.revision).toBe(first?.revision);
    const waiting = ask("pods", { ifNotRevision: first?.revision ?? "", waitMs: 30_000 }, views);
    await add("s1", { namespace: "shop", name: "web", uid: "u1" });
    const next = await waiting;
    expect(new TextDecoder().decode(next?.json)).toContain('"podName":"web"');
  });

  test("is let go when the agent ends, and when the caller has gone", async () => {
    const views = open();
    const { revision = "" } = (await ask("pods", {}, views)) ?? {};
    const gone = new AbortController();
    const question = { kind: "pods", name: "", ifNotRevision: revision, waitMs: 30_000 };
    const waiting = [views.call(question, never), views.call(question, gone.signal)];
    expect(views.calls).toBe(2);
    gone.abort();
    expect(await waiting[1]).toBeUndefined();
    ended.abort();
    expect(await waiting[0]).toBeUndefined();
    expect(views.calls).toBe(0);
  });

  test("is one of many for whom a document is made once", async () => {
    const views = open();
    await Promise.all(Array.from({ length: 20 }, () => ask("findings", {}, views)));
    await ask("findings", {}, views);
    expect(examined).toBe(1);
  });

  test("does not hear of a failure longer than of a document", async () => {
    let fails = true;
    sources = {
      ...sources,
      services: () => {
        if (fails) throw new Error("no services");
        return undefined;
      },
    };
    const views = open();
    await expect(ask("services", {}, views)).rejects.toThrow("no services");
    fails = false;
    await eventually(async () => ask("services", {}, views).catch(() => undefined), "the document");
  });
});

describe("whoever asks for many", () => {
  test("gets one document of a kind that no name narrows down", async () => {
    const views = open();
    const asked = Array.from({ length: 40 }, (_, i) => ask("findings", { name: `x/p${i}` }, views));
    expect(new Set((await Promise.all(asked)).map((made) => made?.revision)).size).toBe(1);
    expect(examined).toBe(1);
  });

  test("is told to come later while as many as people can look at are being made", async () => {
    const differences = Promise.withResolvers<readonly string[]>();
    sources = { ...sources, policies: () => ({ isolated: [], summary: "", differences: () => differences.promise }) };
    const views = open();
    const asked = Array.from({ length: 16 }, (_, i) => ask("policies", { name: `x/p${i}` }, views));
    await expect(ask("policies", { name: "x/one-more" }, views)).rejects.toThrow("16 other documents are being made");
    differences.resolve([]);
    expect((await Promise.all(asked)).every((made) => made !== undefined)).toBe(true);
    expect(await ask("pods", {}, views)).toBeDefined();
  });
});
