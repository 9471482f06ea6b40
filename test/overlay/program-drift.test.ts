import { afterEach, beforeEach, expect, test } from "vitest";
import { trafficModes } from "../../agent/config/ovs-config.ts";
import type { PipelineContext } from "../../agent/datapath/ovs/pipeline/context.ts";
import { Category, cookieOf, learnedBit } from "../../agent/datapath/ovs/pipeline/cookie.ts";
import { baseFlows, peerFlows, podFlows } from "../../agent/datapath/ovs/pipeline/mod.ts";
import { driftLoop } from "../../agent/datapath/ovs/program/drift.ts";
import type { FlowSet } from "../../agent/datapath/ovs/program/flow-set.ts";
import { OpenFlowProgram } from "../../agent/datapath/ovs/program/mod.ts";
import { servedPort } from "../../agent/datapath/ovs/services/served-port.ts";
import { hairpinFlowSet, noServiceFlowSet, serviceFlowSet } from "../../agent/datapath/ovs/services/service-flows.ts";
import {
  addFlow,
  deleteFlows,
  deleteGroup,
  type Flow,
  flow,
  group,
  match,
  type OpenFlowClient,
  output,
  setConfig,
} from "../../agent/protocols/openflow/mod.ts";
import { createLogger } from "../../shared/log.ts";
import { parseCidr, parseIp } from "../../shared/net/ip.ts";
import { addGroup, modifyFlows } from "../fakes/openflow/requests.ts";
import { endpointAt, servicePort } from "../fakes/service-port.ts";
import { eventually } from "../support/agent-process.ts";
import { describeWith } from "../support/requires.ts";
import { OpenFlowBridge } from "./openflow-bridge.ts";

const ip = (text: string) => parseIp(text)!;
const cidr = (text: string) => parseCidr(text)!;
const subnets = [cidr("10.10.1.0/24"), cidr("fd10:1::/64")];

function contextOf(mode: PipelineContext["mode"], more: Partial<PipelineContext> = {}): PipelineContext {
  return {
    mode,
    gateway: { ofport: 2, mac: "0e:00:0a:0a:01:01", addresses: [ip("10.10.1.1"), ip("fd10:1::1")] },
    ...(mode === "encap" || mode === "hybrid" ? { tunnel: { ofport: 1, type: "geneve" } } : {}),
    nodeAddresses: [cidr("172.30.0.1/24"), cidr("fd30::1/64")],
    podSubnets: mode === "networkPolicyOnly" ? [] : subnets,
    multitenant: false,
    ...more,
  };
}

const peer = {
  name: "b",
  uid: "b",
  addresses: [ip("172.30.0.2"), ip("fd30::2")],
  mac: "02:00:00:00:00:02",
  subnets: [cidr("10.10.2.0/24"), cidr("fd10:2::/64")],
};
const pod = { ofport: 5, mac: "0a:00:0a:0a:01:02", ips: [ip("10.10.1.2"), ip("fd10:1::2")], vnid: 12 };
const service = servicePort({ endpoints: [endpointAt("10.10.1.2")], affinitySeconds: 600 });

/** Everything that an agent puts into the switch of such a node. */
const partsOf = (context: PipelineContext): ReadonlyMap<string, FlowSet> =>
  new Map<string, FlowSet>([
    ["base", { category: Category.base, flows: baseFlows(context) }],
    ["node/b", { category: Category.node, flows: peerFlows(context, peer) }],
    ["pod/a", { category: Category.pod, flows: podFlows(context, pod) }],
    ["service/web", serviceFlowSet(servedPort(service, true), () => 7, context)],
    ["service/none", noServiceFlowSet([cidr("10.96.0.0/16"), cidr("fd00:96::/112")])],
    ["service/hairpin", hairpinFlowSet(ip("10.10.1.2"))],
  ]);

describeWith("a switch that somebody else has changed", ["linux", "root", "openvswitch"], () => {
  let bridge: OpenFlowBridge;
  let other: OpenFlowClient;
  let open: AsyncDisposableStack;

  beforeEach(async () => {
    open = new AsyncDisposableStack();
    bridge = open.use(await OpenFlowBridge.start());
    other = open.use(await bridge.connect());
  });
  afterEach(() => open.disposeAsync());

  async function filled(parts: ReadonlyMap<string, FlowSet>): Promise<OpenFlowProgram> {
    const rounds = { loadRound: async () => undefined, saveRound: async () => undefined };
    const management = `unix:${bridge.vswitch.management("br-int")}`;
    const program = open.use(await OpenFlowProgram.start({ management, rounds }));
    await program.set(parts);
    await program.finishRound();
    return program;
  }

  const everything = async (): Promise<readonly string[]> => [
    ...(await bridge.dumpFlows()),
    ...(await bridge.ofctl(6, "dump-groups")).filter((line) => line.startsWith("group_id")),
  ];

  test("what an agent puts in reads as it was put in, in every mode", async () => {
    const contexts = [
      ...trafficModes.map((mode) => contextOf(mode)),
      ...trafficModes.map((mode) => contextOf(mode, { uplink: { ofport: 4, mac: "02:00:00:00:00:01" } })),
      contextOf("encap", { multitenant: true }),
      contextOf("encap", { tunnel: { ofport: 1, type: "gre" } }),
    ];
    const program = await filled(new Map());
    for (const context of contexts) {
      await program.set(partsOf(context));
      expect([context.mode, await program.compare(false)]).toEqual([context.mode, []]);
    }
  });

  test("what was deleted, changed and added is told, and put right with nothing else touched", async () => {
    const program = await filled(partsOf(contextOf("encap")));
    const learned = numbered(33, cookieOf(0, Category.service, 7) | learnedBit);
    await other.do(addFlow(learned));
    const before = await everything();
    await other.do(deleteFlows({ table: 240 }));
    await other.do(deleteGroup(7));
    await other.do(modifyFlows(flow({ table: 30, match: match().set("in_port", 5).build(), actions: [output(9)] })));
    await other.do(addFlow(numbered(11)));
    // With the cookie of this very round.
    await other.do(addFlow(numbered(12, cookieOf(1, Category.pod, 3))));
    await other.do(addGroup(group(99, "select", [{ actions: [output(1)] }])));
    const told = await program.compare(false);
    expect(told).toEqual([
      expect.stringMatching(/^the switch lacks \d+ flows, the first "/),
      expect.stringMatching(/^the switch has 2 flows of somebody else, the first ".*priority=11/),
      "the switch lacks 1 group, the first 7",
      "the switch has 1 group of somebody else, the first 99",
    ]);
    expect(await everything()).not.toEqual(before);
    expect(await program.compare(true)).toEqual(told);
    expect(await program.compare(false)).toEqual([]);
    expect(await everything()).toEqual(before);
  });

  test("flows see the ports of first fragments, also once somebody has turned that off, or the switch has restarted", async () => {
    const fragments = async (): Promise<string> => (await bridge.ofctl(6, "get-frags").catch(() => [])).join();
    expect(await fragments()).toBe("normal");
    const program = await filled(partsOf(contextOf("encap")));
    expect(await fragments()).toBe("nx-match");
    await other.do(setConfig("normal", 0));
    await program.compare(true);
    expect(await fragments()).toBe("nx-match");
    await bridge.vswitch.stop("ovs-vswitchd", "SIGKILL");
    await bridge.vswitch.startSwitch();
    await eventually(async () => (await fragments()) === "nx-match", "the switch to be set again");
  });

  test("before the flows of earlier rounds have gone nothing is anybody else's", async () => {
    const program = await filled(partsOf(contextOf("encap")));
    await program[Symbol.asyncDispose]();
    const before = await everything();
    const management = `unix:${bridge.vswitch.management("br-int")}`;
    const rounds = { loadRound: async () => 1, saveRound: async () => undefined };
    const next = open.use(await OpenFlowProgram.start({ management, rounds }));
    await next.set(new Map());
    expect(await next.compare(true)).toEqual([]);
    expect(await everything()).toEqual(before);
  });

  test("it is noticed without being asked for, again and again", async () => {
    const program = await filled(partsOf(contextOf("encap")));
    const log: string[] = [];
    const logger = createLogger("info", (line) => void log.push(line));
    open.use(driftLoop({ look: () => program.compare(true), logger, everyMs: 20 }));
    const before = await everything();
    for (const times of [1, 2]) {
      await other.do(deleteFlows());
      await eventually(async () => Bun.deepEquals(await everything(), before), "the flows to come back");
      expect(log.filter((line) => line.includes("lacks"))).toHaveLength(times);
    }
    // While the switch is away, and once it is back.
    await bridge.vswitch.stop("ovs-vswitchd", "SIGKILL");
    await Bun.sleep(100);
    await bridge.vswitch.startSwitch();
    await eventually(async () => Bun.deepEquals(await everything().catch(() => []), before), "the flows to come back");
  });
});

const numbered = (priority: number, cookie = 0n): Flow => flow({ table: 5, priority, cookie, actions: [output(1)] });
