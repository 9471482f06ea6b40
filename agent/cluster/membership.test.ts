import { expect, test, vi } from "vitest";
import { LiveValue } from "../../shared/async/live-value.ts";
import { createLogger } from "../../shared/log.ts";
import { eventually } from "../../test/support/eventually.ts";
import { scratchDir } from "../../test/support/scratch-dir.ts";
import { parseAgentConfig } from "../config/parse-agent-config.ts";
import { Membership, type RegistrationState } from "./membership.ts";
import type { ClusterNode, NodeRegistry } from "./node-registry.ts";
import { nodeOfText } from "./node-text.ts";
import { RegistryCache } from "./registry-cache.ts";
import { RegistryHealth } from "./registry-health.ts";

const node = (i: number, subnet = `10.0.${i}.0/24`): ClusterNode =>
  nodeOfText({ name: `n${i}`, uid: `u${i}`, addresses: [`192.0.2.${i}`], subnets: [subnet] });
const mapOf = (...nodes: ClusterNode[]) => new Map(nodes.map((each) => [each.name, each]));

const parsed = parseAgentConfig(
  "networks: [{ name: pods, bridge: b }]\nnodes: { name: n0, registry: { type: static, file: /f } }\n",
  "agent.yaml",
);
if (parsed.t !== "ok") throw new Error(parsed.problems.join());
const { config } = parsed;

/** A member named n0, of a registry that says what the test says. */
function member(state: RegistrationState = { t: "registered" }, cached: ReadonlyMap<string, ClusterNode> = mapOf()) {
  const scratch = scratchDir();
  const logger = createLogger("error", () => undefined);
  const live = new LiveValue<ReadonlyMap<string, ClusterNode>>();
  const pods = { stand: true };
  let alive = 0;
  const followed = {
    get current() {
      return live.current;
    },
    subscribe: live.subscribe.bind(live),
    [Symbol.asyncDispose]: async () => undefined,
  };
  const registry: NodeRegistry = {
    name: "the test",
    health: new RegistryHealth("the test"),
    register: async () => node(0),
    keepAlive: () => {
      alive++;
      return { [Symbol.asyncDispose]: async () => void alive-- };
    },
    release: async () => false,
    list: async () => [],
    follow: () => followed,
    [Symbol.asyncDispose]: async () => undefined,
  };
  const known = new RegistryCache(scratch.path, "the test", logger);
  known.update({ nodes: cached });
  const options = { config, registry, self: node(0), own: { addresses: [], linkAddresses: [] }, known, logger };
  const membership = new Membership(
    { ...options, podsStand: () => pods.stand, register: () => registry.register(node(0)) },
    state,
  );
  return {
    membership,
    live,
    pods,
    known,
    alive: () => alive,
    async [Symbol.asyncDispose]() {
      await membership[Symbol.asyncDispose]();
      scratch[Symbol.dispose]();
    },
  };
}

test("a burst of changes is one change of the peers, and one that says nothing new is none", async () => {
  await using at = member();
  const seen: number[] = [];
  at.membership.peers.subscribe((peers) => void seen.push(peers.size));
  for (let i = 0; i <= 100; i++) at.live.set(mapOf(...Array.from({ length: i + 1 }, (_, k) => node(k))));
  await eventually(() => seen.length > 0, "the peers");
  expect(seen).toEqual([100]);
  expect(at.membership.peers.current?.has("n0")).toBe(false);
  at.live.set(mapOf(...Array.from({ length: 101 }, (_, k) => node(k))));
  at.live.set(mapOf(...Array.from({ length: 100 }, (_, k) => node(k))));
  await eventually(() => seen.length > 1, "the next peers");
  expect(seen).toEqual([100, 99]);
  at.live.set(mapOf(...Array.from({ length: 100 }, (_, k) => node(k))));
  await Bun.sleep(120);
  expect(seen).toEqual([100, 99]);
});

test("whom a registry forgets together with this node stays a peer, until another has the subnet", async () => {
  await using at = member();
  const { membership, live, known } = at;
  const names = (): string[] => [...(membership.peers.current?.keys() ?? [])].sort();
  live.set(mapOf(node(0), node(1), node(2)));
  await eventually(() => names().length === 2, "the peers");
  live.set(mapOf());
  await eventually(() => membership.refused !== undefined, "the refusal");
  expect([names(), [...known.state.nodes.keys()]]).toEqual([
    ["n1", "n2"],
    ["n1", "n2"],
  ]);
  live.set(mapOf({ ...node(1), name: "n9" }));
  await eventually(() => names().includes("n9"), "the node that came");
  expect(names()).toEqual(["n2", "n9"]);
  live.set(mapOf(node(0), { ...node(1), name: "n9" }));
  await eventually(() => names().length === 1, "the registry that has this node again");
  expect(names()).toEqual(["n9"]);
});

test("a node that is no member any more keeps its peers, remembers that it is none, and goes when its pods have", async () => {
  await using at = member();
  const { membership, live, known, pods } = at;
  live.set(mapOf(node(0), node(1)));
  await eventually(() => membership.peers.current?.size === 1, "the peer");
  expect([membership.refused, known.state.self?.name, at.alive()]).toEqual([undefined, "n0", 1]);
  live.set(mapOf(node(1), node(2)));
  await eventually(() => membership.refused !== undefined, "the refusal");
  expect(membership.refused).toBe('the test has no node "n0" any more');
  expect(known.state.refused).toBe(membership.refused);
  await eventually(() => membership.peers.current?.size === 2, "the peers as they are now");
  live.set(mapOf(node(0, "10.0.9.0/24"), node(1)));
  await eventually(() => membership.refused?.includes("10.0.9.0/24"), "the other subnet");
  live.set(mapOf(node(0), node(1)));
  await eventually(() => membership.refused === undefined, "the recovery");
  expect([known.state.self?.name, known.state.refused]).toEqual(["n0", undefined]);
  live.set(mapOf());
  pods.stand = false;
  expect(await membership.lost).toContain("no pod is left: wanted a new start, to join anew");
});

test("a start waits for the first word of the other nodes, also where there are none", async () => {
  await using it = member();
  let isKnown = false;
  const known = it.membership.firstPeers().then(() => {
    isKnown = true;
  });
  expect(isKnown).toBe(false);
  it.live.set(mapOf(node(0)));
  await known;
  expect(it.membership.peers.current?.size).toBe(0);
  await it.membership.firstPeers();
});

test("what is cached is not enough for a start while the registry answers: it may lack who came last", async () => {
  await using it = member({ t: "registered" }, mapOf(node(1)));
  expect([...(it.membership.peers.current?.keys() ?? [])]).toEqual(["n1"]);
  const starts = it.membership.firstPeers().then(() => [...(it.membership.peers.current?.keys() ?? [])]);
  await Bun.sleep(100);
  it.live.set(mapOf(node(0), node(1), node(2)));
  expect(await starts).toEqual(["n1", "n2"]);
});

test("what is cached is enough where the registry is silent", async () => {
  await using it = member({ t: "known" }, mapOf(node(1)));
  const first = await Promise.race([it.membership.firstPeers().then(() => "cached"), Bun.sleep(1_000)]);
  expect([first, it.membership.peers.current?.size]).toEqual(["cached", 1]);
});

test("a registry that says nothing does not keep a start for ever", async () => {
  await using it = member();
  await it.membership.firstPeers();
  expect(it.membership.peers.current).toBeUndefined();
});

test("nodes that are older than the node's registration do not say that it has been forgotten; later ones do", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  try {
    await using at = member({ t: "known" });
    const { membership, live } = at;
    const pass = (ms: number): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);
    await pass(1);
    live.set(mapOf(node(1)));
    await pass(1_000);
    expect([membership.peers.current?.size, membership.refused]).toEqual([1, undefined]);
    live.set(mapOf(node(0), node(1)));
    await pass(1_000);
    live.set(mapOf(node(1)));
    await pass(1_000);
    expect(membership.refused).toContain('has no node "n0" any more');
  } finally {
    vi.useRealTimers();
  }
});

test("a node whose registration never shows among the nodes gives no addresses in the end", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  try {
    await using at = member({ t: "known" });
    const pass = (ms: number): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);
    await pass(1);
    at.live.set(mapOf(node(1)));
    await pass(4_000);
    expect(at.membership.refused).toBeUndefined();
    await pass(2_000);
    expect(at.membership.refused).toContain('has no node "n0" any more');
  } finally {
    vi.useRealTimers();
  }
});
