import { describe, expect, test } from "vitest";
import type { Lease } from "../../../ipam/mod.ts";
import { type Ip, parseIp } from "../../../shared/net/ip.ts";
import { version } from "../../../shared/version.ts";
import { rulesProblem } from "../../datapath/linux/rule-keeper.ts";
import { addressFindings } from "./address-findings.ts";
import { agentFindings } from "./agent-findings.ts";
import { attachmentFindings } from "./attachment-findings.ts";
import { leftoverFindings } from "./leftover-findings.ts";
import type { NodeSnapshot, SeenInterface, SeenPort } from "./node-snapshot.ts";
import { parseRuntimeList } from "./runtime-list.ts";

const nowMs = 1_000_000_000;
const owner = { network: "pods", sandboxId: "a", ifname: "eth0" };
const ipOf = (text: string): Ip => parseIp(text) ?? { family: 4, value: 0n };
const ip = ipOf("10.0.0.2");

const lease: Lease = {
  owner,
  rangeSet: 0,
  address: { ip, prefix: 24 },
  state: "allocated",
  bootId: "now",
  generation: 7,
  allocatedAtMs: nowMs - 3_600_000,
};
const seen: SeenInterface = { owner, hostIfname: "ve-a", ownLease: true, index: 5, addresses: [ip] };
const unmade: SeenPort = { owner, name: "ve-a", uuid: "u", ips: [ip] };
const port: SeenPort = { ...unmade, ofport: 3 };
const answering = (callsInFlight = 0): NodeSnapshot["agent"] => ({
  t: "answers",
  status: {
    problems: [],
    version: "0",
    pid: 1,
    startedAtMs: 0,
    dataPath: "bridge",
    networks: ["pods"],
    callsInFlight,
    departing: 0,
    cluster: "",
    policies: "",
    policyDifferences: [],
    services: "",
    serviceDifferences: [],
    servicesFault: "",
    shortcomings: [],
    refusals: [],
    state: "ready",
    registryTroubles: [],
    peerTroubles: [],
    configuration: [],
  },
});
const snapshot: NodeSnapshot = {
  nowMs,
  bootId: "now",
  networks: ["pods"],
  janitorIntervalMs: 1_000,
  agent: answering(),
  leases: [lease],
  pendingDetaches: [],
  interfaces: [seen],
  halfMade: [],
  namespaceAddresses: new Set(),
  bareNamespaces: [],
};
const flows = { numbers: new Set([3]), flowPorts: new Set([3]) };

const cases: readonly (readonly [string, Partial<NodeSnapshot>, readonly (readonly [string, string | undefined])[]])[] =
  [
    ["all agree", {}, []],
    ["all agree with a switch", { switch: { ports: [port], ...flows } }, []],
    ["no interface", { interfaces: [] }, [["lease-without-interface", "attachment"]]],
    [
      "no interface, an ADD may be under way",
      { interfaces: [], agent: answering(1), leases: [{ ...lease, allocatedAtMs: nowMs - 10 }] },
      [["under-way", undefined]],
    ],
    [
      "an old lease, and calls of others",
      { interfaces: [], agent: answering(1) },
      [["lease-without-interface", "attachment"]],
    ],
    ["of an earlier boot", { interfaces: [], bootId: "later" }, [["earlier-boot", undefined]]],
    [
      "its address elsewhere",
      { interfaces: [], namespaceAddresses: new Set(["10.0.0.2"]) },
      [["lease-behind-another-interface", undefined]],
    ],
    ["no lease", { leases: [] }, [["interface-without-lease", "attachment"]]],
    ["another plugin's address", { leases: [], interfaces: [{ ...seen, ownLease: false }] }, []],
    [
      "a lease of a network that others serve",
      { leases: [{ ...lease, owner: { ...owner, network: "x" } }], interfaces: [] },
      [],
    ],
    ["an interface of such a network", { networks: [], leases: [] }, [["unserved-network", undefined]]],
    [
      "a lease that host-local noted without interface",
      { leases: [{ ...lease, owner: { ...owner, ifname: "" } }] },
      [],
    ],
    ["giving up", { leases: [{ ...lease, state: "releasing", releasedAtMs: nowMs - 5 }] }, [["departing", undefined]]],
    [
      "giving up, for too long",
      { leases: [{ ...lease, state: "releasing", releasedAtMs: nowMs - 60_000 }] },
      [["departing", "attachment"]],
    ],
    [
      "a pending detach on record, no agent",
      { pendingDetaches: [owner], agent: { t: "away", reason: "" } },
      [["departing", "attachment"]],
    ],
    ["unreadable", { leases: undefined }, []],
    [
      "other addresses",
      { interfaces: [{ ...seen, addresses: [ip, ipOf("10.0.0.9")] }] },
      [["address-differs", undefined]],
    ],
    ["an address of another block", { interfaces: [{ ...seen, addresses: [ip, ipOf("192.168.0.9")] }] }, []],
    ["nobody can look into the pod", { interfaces: [{ ...seen, addresses: undefined }] }, []],
    [
      "a port alone",
      { leases: [], interfaces: [], switch: { ports: [port], ...flows } },
      [["port-without-pod", "attachment"]],
    ],
    ["no port", { switch: { ports: [], ...flows } }, [["interface-without-port", "node"]]],
    ["no number", { switch: { ports: [unmade], ...flows } }, [["port-without-number", undefined]]],
    [
      "no flows",
      { switch: { ports: [port], numbers: new Set([3]), flowPorts: new Set() } },
      [["port-without-flows", "node"]],
    ],
    ["no word of flows", { switch: { ports: [port], numbers: new Set([3]), flowPorts: undefined } }, []],
    [
      "another port address",
      { switch: { ports: [{ ...port, ips: [] }], ...flows } },
      [["port-address-differs", undefined]],
    ],
    ["unknown to the runtime", { runtime: parseRuntimeList("[]", nowMs) }, [["unknown-to-runtime", "attachment"]]],
    [
      "unknown to the runtime and without a lease: the interface counts",
      { leases: [], runtime: parseRuntimeList("[]", nowMs) },
      [["interface-without-lease", "attachment"]],
    ],
    [
      "a port alone that the runtime does not know",
      { leases: [], interfaces: [], switch: { ports: [port], ...flows }, runtime: parseRuntimeList("[]", nowMs) },
      [["port-without-pod", "attachment"]],
    ],
    [
      "unknown to the runtime, with another plugin's address",
      { leases: [], interfaces: [{ ...seen, ownLease: false }], runtime: parseRuntimeList("[]", nowMs) },
      [["unknown-to-runtime-yet", undefined]],
    ],
    [
      "perhaps too young for the runtime's list",
      { runtime: parseRuntimeList("[]", nowMs - 3_590_000) },
      [["unknown-to-runtime-yet", undefined]],
    ],
  ];

describe("one attachment", () => {
  test.each(cases)("%s", (_name, changes, wanted) => {
    const found = attachmentFindings({ ...snapshot, ...changes });
    expect(found.map(({ code, repair }) => [code, repair?.t])).toEqual(wanted);
  });
});

test("the runtime's repair names the lease that was seen", () => {
  const [found] = attachmentFindings({ ...snapshot, runtime: parseRuntimeList('{"items":[{"id":"b"}]}', nowMs) });
  expect(found?.repair).toEqual({ t: "attachment", owner, goneGeneration: 7 });
});

test("an attachment that only the runtime has", () => {
  const runtime = parseRuntimeList('[{"containerID":"a","ifname":"eth0"},{"containerID":"b","ifname":"eth0"}]', nowMs);
  expect(attachmentFindings({ ...snapshot, runtime }).map(({ what }) => what)).toEqual([
    'The runtime has "eth0" of "b", for which there is no lease',
  ]);
});

test("an address that two have, whatever says so", () => {
  const other = { ...owner, sandboxId: "b" };
  const wanted = [expect.stringContaining('10.0.0.2 is held by "eth0" of "a"')];
  const found = (changes: Partial<NodeSnapshot>) =>
    addressFindings({ ...snapshot, ...changes }).map(({ what }) => what);
  expect(found({})).toEqual([]);
  expect(found({ interfaces: [seen, { ...seen, owner: other, index: 6 }] })).toEqual(wanted);
  expect(found({ leases: [lease, { ...lease, owner: { ...other, network: "x" } }] })).toEqual(wanted);
  expect(found({ switch: { ports: [port, { ...port, owner: other, uuid: "v" }], ...flows } })).toEqual(wanted);
  const local = [ipOf("fe80::1")];
  expect(
    found({
      interfaces: [seen, seen].map((one, i) => ({ ...one, owner: [owner, other][i] ?? owner, addresses: local })),
    }),
  ).toEqual([]);
});

test("flows for a port that is gone", () => {
  const found = leftoverFindings({
    ...snapshot,
    switch: { ports: [], numbers: new Set([1]), flowPorts: new Set([9]) },
  });
  expect(found.map(({ code, evidence }) => [code, evidence])).toEqual([["flows-without-port", "9"]]);
});

test.each(["", "{}", '{"items":[{}]}', '{"items":["a"]}', '[{"containerID":"a"}]', "7"])(
  "no list of a runtime: %j",
  (text) => {
    expect(() => parseRuntimeList(text, 0)).toThrow(/wanted/);
  },
);

test("the agent's word about packet rules has a remedy; of another problem it is told what to look at", () => {
  const told = (message: string) => {
    const { status, ...agent } = answering() as Extract<NodeSnapshot["agent"], { t: "answers" }>;
    const problems = [{ code: 51, message, advisory: false }];
    return agentFindings({ ...snapshot, agent: { ...agent, status: { ...status, version, problems } } }, "");
  };
  expect(told(rulesProblem(0, 2, "pipette-pipette-gw0"))).toMatchObject([
    {
      code: "packet-rules",
      what: '0 of 2 packet rules stand in the table "pipette-pipette-gw0"',
      repair: { t: "node" },
    },
  ]);
  expect(told("the database cannot be written")).toMatchObject([
    { code: "agent-problem", todo: expect.stringContaining("put right what the sentence names") },
  ]);
});

test("what is not in force of network policies has a code of its own, beside the agent's shortcomings", () => {
  const { status } = answering() as Extract<NodeSnapshot["agent"], { t: "answers" }>;
  const [shortcomings, policyDifferences] = [["the way to a node is missing"], ["a flow is missing in IngressRule"]];
  const agent = {
    t: "answers",
    status: { ...status, version, shortcomings, policyDifferences },
  } as const;
  expect(agentFindings({ ...snapshot, agent }, "")).toMatchObject([
    { code: "shortcoming", what: "The way to a node is missing" },
    { code: "policy-differs", what: "Of network policies: a flow is missing in IngressRule", repair: { t: "node" } },
  ]);
});

test("services have codes of their own: what differs, nobody who tells of them, and a kube-proxy beside", () => {
  const { status } = answering() as Extract<NodeSnapshot["agent"], { t: "answers" }>;
  const beside = "kube-proxy seems to balance services on this node too, by a chain";
  const [shortcomings, serviceDifferences] = [[beside], ['group 7 of "x/web" is missing']];
  const servicesFault = "the API server is away";
  const agent = {
    t: "answers",
    status: { ...status, version, shortcomings, serviceDifferences, servicesFault },
  } as const;
  const found = agentFindings({ ...snapshot, agent }, "");
  expect(found).toMatchObject([
    { code: "kube-proxy-beside", what: expect.stringMatching(/^Kube-proxy seems/) },
    { code: "service-differs", what: 'Of services: group 7 of "x/web" is missing', repair: { t: "node" } },
    { code: "services-not-followed", evidence: servicesFault },
  ]);
  // What a repair of the node does not end.
  expect(found.map(({ repair }) => repair !== undefined)).toEqual([false, true, false]);
});
