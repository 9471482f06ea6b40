import { describe, expect, test } from "vitest";
import type { AddressesDocument, DocumentPool, NodeDocument } from "../../shared/documents/mod.ts";
import { nodeStatus, wanting } from "./node-status.ts";

const nowMs = 1_000_000_000;

const node = (changes: Partial<NodeDocument> = {}): NodeDocument => ({
  ...({ kind: "node", version: 1, node: "a", agentVersion: "1.0.0", pid: 1, startedAtMs: 1, state: "ready" } as const),
  ...{
    system: "linux",
    dataPath: "bridge",
    networks: ["pods"],
    callsInFlight: 0,
    departing: 0,
    cluster: "",
    policies: "",
  },
  ...{ services: "", problems: [], registryTroubles: [], configuration: [], shortcomings: [], refusals: [] },
  ...{ policyDifferences: [], serviceDifferences: [], servicesFault: "" },
  ...changes,
});
const pool = (free: number, cooling = 0): DocumentPool => ({
  ...{
    network: "pods",
    range: "10.0.0.1-10.0.0.100",
    gateways: [],
    total: "100",
    releasing: 0,
    excluded: "0",
    strips: [],
  },
  ...{ allocated: 100 - free - cooling, cooling, free: String(free) },
});
const addresses = (...pools: readonly DocumentPool[]): AddressesDocument => ({
  ...({ kind: "addresses", version: 1, node: "a", omitted: 0 } as const),
  pools,
});
const conditions = (changes: Partial<NodeDocument>, ...pools: readonly DocumentPool[]): readonly string[] =>
  nodeStatus(node(changes), addresses(...pools), nowMs).conditions.map(
    ({ type, status, reason }) => `${type} ${status} ${reason}`,
  );

test("a node that is well, alone and among others", () => {
  expect(conditions({}, pool(90))).toEqual([
    "Ready True Serving",
    "DataPath True InForce",
    "Ipam True AddressesFree",
    "Configuration True InForce",
  ]);
  const many = conditions({ cluster: "one of 3 nodes", policies: "4 rules" }, pool(90));
  expect(many).toContain("Peers True Accepted");
  expect(many).toContain("Policy True InForce");
});

test.each<[string, Partial<NodeDocument>, string]>([
  ["starts", { state: "starting" }, "Ready False Starting"],
  ["waits", { state: "joining" }, "Ready False WaitsToJoin"],
  ["has an outage", { problems: [{ code: 51, message: "no bridge", advisory: false }] }, "Ready False Outage"],
  [
    "has a broken data path",
    { problems: [{ code: 51, message: "no bridge", advisory: false }] },
    "DataPath False Broken",
  ],
  ["lacks flows", { shortcomings: ["a", "b"] }, "DataPath False Shortcomings"],
  ["gives new pods none", { problems: [{ code: 50, message: "full", advisory: true }] }, "Ipam False NoNewPods"],
  ["stays ready then", { problems: [{ code: 50, message: "full", advisory: true }] }, "Ready True Serving"],
  ["lacks policies", { policies: "4 rules", policyDifferences: ["a"] }, "Policy False NotInForce"],
  ["refuses records", { cluster: "x", refusals: ["a"] }, "Peers False RecordsRefused"],
  [
    "has lost the registry",
    { cluster: "x", registryTroubles: [{ what: "follow the nodes", reason: "403", sinceMs: 1 }] },
    "Peers False RegistryAway",
  ],
  ["goes by an old configuration", { configuration: ["refused"] }, "Configuration False Refused"],
])("a node that %s", (_, changes, wanted) => {
  expect(conditions(changes, pool(90))).toContain(wanted);
});

test.each([
  [21, "AddressesFree"],
  [20, "FillingUp"],
  [6, "FillingUp"],
  [5, "AlmostExhausted"],
])("with %i of 100 addresses free: %s, by the fullest pool; cooling ones will be free", (free, reason) => {
  expect(conditions({}, pool(90), pool(free))).toContain(`Ipam True ${reason}`);
  expect(conditions({}, pool(0, free))).toContain(`Ipam True ${reason}`);
});

test("what somebody has to act on is told in words that stay the same while numbers change", () => {
  const told = (changes: Partial<NodeDocument>, free: number) =>
    wanting(nodeStatus(node(changes), addresses(pool(free)), nowMs));
  expect(told({}, 90)).toEqual([]);
  expect(told({ state: "starting" }, 90)).toEqual([]);
  expect(told({}, 10)).toEqual(told({}, 9));
  expect(told({}, 10)).toMatchObject([{ reason: "IpamFillingUp", message: expect.stringContaining("80 %") }]);
  expect(told({}, 3)).toMatchObject([{ reason: "IpamAlmostExhausted", message: expect.stringContaining("95 %") }]);
  expect(told({ policies: "4", policyDifferences: ["a"] }, 90)).toEqual([{ reason: "PolicyNotInForce", message: "a" }]);
});

test("messages are bounded, and say how many more there are", () => {
  const { conditions: all } = nodeStatus(node({ shortcomings: ["x".repeat(5_000), "y", "z"] }), addresses(), nowMs);
  expect(all.find(({ type }) => type === "DataPath")?.message.length).toBe(1_000);
  const few = nodeStatus(node({ shortcomings: ["x", "y", "z"] }), addresses(), nowMs).conditions;
  expect(few.find(({ type }) => type === "DataPath")?.message).toBe("x (and 2 more)");
});

describe("ways to other nodes' pods", () => {
  type Trouble = NonNullable<NodeDocument["peerTroubles"]>[number];
  const trouble = (name: string, state: Trouble["state"], agoMs: number): Trouble => ({
    ...{ node: name, state, message: `of ${name}`, sinceMs: nowMs - agoMs },
  });
  const counts = { total: 9, reachable: 7, lost: 1, silent: 1, unknown: 0 };
  const status = (...peerTroubles: readonly Trouble[]) =>
    nodeStatus(node({ cluster: "one of 10", peers: counts, peerTroubles }), addresses(pool(90)), nowMs);
  const told = (...all: readonly Trouble[]) => wanting(status(...all));

  test("are counted, where somebody asks", () => {
    expect(status().peers).toEqual({ reachable: 7, total: 9 });
    expect(nodeStatus(node({ cluster: "one of 10" }), addresses(), nowMs)).not.toHaveProperty("peers");
  });

  test("that are lost for a minute are told, by names and in the same words as long as they are the same nodes", () => {
    expect(told(trouble("b", "lost", 59_000))).toEqual([]);
    const [first] = told(trouble("c", "lost", 61_000), trouble("b", "lost", 90_000), trouble("b", "lost", 80_000));
    expect(first).toEqual({
      reason: "PeersNotReached",
      message: 'pods of other nodes are no longer reached: of "b", "c"',
    });
    expect(told(trouble("b", "lost", 900_000), trouble("c", "lost", 610_000))).toEqual([first]);
    const many = Array.from({ length: 20 }, (_, i) => trouble(`n${i}`, "lost", 100_000));
    expect(told(...many)[0]?.message).toMatch(/"n11", "n12" and 15 more$/);
  });

  test("that are too narrow are told, and those of nodes that never answered only shown", () => {
    expect(told(trouble("b", "mtu", 90_000))).toMatchObject([{ reason: "PeersMtuTooLarge" }]);
    expect(told(trouble("b", "silent", 90_000))).toEqual([]);
    const { conditions: all } = status(trouble("b", "silent", 90_000));
    expect(all.find(({ type }) => type === "Peers")).toMatchObject({
      ...{ status: "True", reason: "Accepted" },
      message: 'one of 10; pods of "b" were never reached since the agent\'s start',
    });
  });
});
