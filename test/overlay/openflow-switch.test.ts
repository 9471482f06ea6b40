import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import {
  addFlow,
  addMeter,
  addOrModifyGroup,
  bits,
  type ConnectionEvent,
  deleteFlows,
  deleteGroup,
  flow,
  forwardRequests,
  group,
  groupText,
  load,
  match,
  meter,
  modifyMeter,
  OpenFlowClient,
  output,
  packetOut,
  parseAddress,
  resubmit,
  setConfig,
  setField,
  toGroup,
} from "../../agent/protocols/openflow/mod.ts";
import { addGroup, deleteAllGroups, deleteAllMeters, deleteMeter, modifyGroup } from "../fakes/openflow/requests.ts";
import { describeWith } from "../support/requires.ts";
import { OpenFlowBridge } from "./openflow-bridge.ts";

/** An Ethernet frame of 60 bytes with an ethertype that means nothing. */
const frame = Uint8Array.from({ length: 60 }, (_, i) => (i === 12 ? 0x88 : i === 13 ? 0xb5 : i));
const buckets = [
  { weight: 100, actions: [setField("reg3", 0x0a000001), load(bits("reg4", 0, 15), 80), resubmit(11)] },
  { weight: 50, actions: [resubmit(12)] },
];

describeWith("groups, meters, packets and events of a real Open vSwitch", ["linux", "root", "openvswitch"], () => {
  let bridge: OpenFlowBridge;
  let client: OpenFlowClient;
  const open = new AsyncDisposableStack();
  const events: ConnectionEvent[] = [];

  /** Waits until an event is there that `wanted` takes. */
  async function event<T extends ConnectionEvent>(wanted: (event: ConnectionEvent) => event is T): Promise<T> {
    const until = performance.now() + 20_000;
    for (;;) {
      const found = events.find(wanted);
      if (found !== undefined) return found;
      if (performance.now() > until) throw new Error(`No such event came; there were ${events.map(({ t }) => t)}`);
      await Bun.sleep(5);
    }
  }

  beforeAll(async () => {
    bridge = open.use(await OpenFlowBridge.start());
    client = open.use(await bridge.connect({ onEvent: (found) => events.push(found) }));
  });
  afterAll(() => open.disposeAsync());
  beforeEach(async () => {
    expect(await client.run([deleteFlows(), deleteAllGroups(), deleteAllMeters()])).toEqual([]);
    events.length = 0;
  });

  const dumpGroups = async (): Promise<string[]> =>
    (await bridge.ofctl(6, "dump-groups")).filter((line) => line.startsWith("group_id=")).sort();
  const groupTexts = async (): Promise<string[]> => (await client.groups()).map(groupText).sort();

  test("says what the switch is", async () => {
    const id = client.features.datapathId.toString(16).padStart(16, "0");
    expect(JSON.parse(await bridge.vswitch.vsctl("get", "Bridge", "br-int", "datapath_id"))).toBe(id);
    expect(client.features.tables).toBe(254);
    await client.echo();
  });

  test("groups of each type are made, changed, and read as ovs-ofctl reads them", async () => {
    const select = group(1, "select", buckets);
    const hash = { method: "hash", parameter: 3n, fields: ["ip_src", "tcp_dst"] } as const;
    await client.bundle([
      addGroup(select),
      addGroup(group(2, "indirect", [{ actions: [output(1)] }])),
      addGroup(group(3, "all", [{ actions: [output(1)] }, { actions: [output(2), resubmit(4)] }])),
      addGroup(group(4, "select", [], { ...hash, fields: [...hash.fields] })),
    ]);
    expect(await dumpGroups()).toEqual(await groupTexts());
    expect(await groupTexts()).toEqual([
      "group_id=1,type=select,bucket=bucket_id:0,weight:100,actions=set_field:0xa000001->reg3,set_field:0x50/0xffff->reg4,resubmit(,11),bucket=bucket_id:1,weight:50,actions=resubmit(,12)",
      "group_id=2,type=indirect,bucket=bucket_id:0,actions=output:1",
      "group_id=3,type=all,bucket=bucket_id:0,actions=output:1,bucket=bucket_id:1,actions=output:2,resubmit(,4)",
      "group_id=4,type=select,selection_method=hash,selection_method_param=3,fields(ip_src,tcp_dst)",
    ]);
    await client.do(addOrModifyGroup(group(1, "select", [{ id: 7, weight: 10, actions: [resubmit(13)] }])));
    await client.do(modifyGroup(group(2, "indirect", [{ actions: [output(2)] }])));
    await client.do(deleteGroup(3));
    expect(await groupTexts()).toEqual([
      "group_id=1,type=select,bucket=bucket_id:7,weight:10,actions=resubmit(,13)",
      "group_id=2,type=indirect,bucket=bucket_id:0,actions=output:2",
      "group_id=4,type=select,selection_method=hash,selection_method_param=3,fields(ip_src,tcp_dst)",
    ]);
    expect(await dumpGroups()).toEqual(await groupTexts());
    await expect(client.do(addGroup(select))).rejects.toMatchObject({
      message: "Cannot add group 1: the switch answers OFPGMFC_GROUP_EXISTS (the group is there already)",
    });
    await expect(client.do(modifyGroup(group(9, "all", [])))).rejects.toMatchObject({
      refusal: { name: "OFPGMFC_UNKNOWN_GROUP" },
    });
  });

  test("counts what flows have done", async () => {
    await client.do(addGroup(group(5, "indirect", [{ actions: [output(1)] }])));
    await client.do(addFlow(flow({ match: match().set("in_port", 2).build(), actions: [toGroup(5)] })));
    for (let i = 0; i < 3; i++) client.post(packetOut(frame, [resubmit(0)], 2));
    await expect
      .poll(async () => (await client.flows())[0]?.counters, { timeout: 20_000, interval: 50 })
      .toMatchObject({ packets: 3n, bytes: 180n });
    const [found] = await client.flows();
    expect(found?.counters.durationMs).toBeGreaterThan(0);
  });

  test("meters are added, changed, listed and deleted", async () => {
    const first = meter({ id: 256, unit: "pktps", rate: 100, burst: 200 });
    await client.do(addMeter(first));
    await client.do(addMeter(meter({ id: 257, unit: "kbps", rate: 1000 })));
    expect(await client.meters()).toEqual([first, { id: 257, unit: "kbps", rate: 1000, burst: undefined }]);
    expect((await bridge.ofctl(6, "dump-meters")).join("\n")).toContain(
      "meter=256 pktps burst stats bands=\ntype=drop rate=100 burst_size=200\n",
    );
    await client.do(modifyMeter({ ...first, rate: 5 }));
    await client.do(deleteMeter(257));
    expect(await client.meters()).toEqual([{ ...first, rate: 5 }]);
    await expect(client.do(modifyMeter({ ...first, id: 9 }))).rejects.toMatchObject({
      refusal: { name: "OFPMMFC_UNKNOWN_METER" },
    });
  });

  test("nothing is told unasked; asked, of groups and meters that others change, and of nothing else", async () => {
    using other = await bridge.connect();
    await other.do(addMeter(meter({ id: 300, unit: "pktps", rate: 1 })));
    await bridge.addPort("p7", 7);
    await client.echo();
    expect(events).toEqual([]);
    await client.do(forwardRequests);
    await other.do(addMeter(meter({ id: 301, unit: "pktps", rate: 1 })));
    await other.do(addGroup(group(8, "all", [])));
    await bridge.vswitch.vsctl("del-port", "br-int", "p7");
    await client.echo();
    expect(events).toEqual(["meter", "group"].map((changed) => ({ t: "request-forwarded", changed })));
  });

  test("a refusal of what nobody waits for is an event", async () => {
    client.post(packetOut(frame, [toGroup(77)], 2));
    const refused = await event((found) => found.t === "refused");
    expect(refused).toMatchObject({ error: { name: "OFPBAC_BAD_OUT_GROUP" }, cause: 13 });
  });

  test("fragments are handled as asked for", async () => {
    await client.do(setConfig("nx-match", 128));
    expect((await bridge.ofctl(6, "get-frags")).join()).toContain("nx-match");
    await client.do(setConfig("normal", 0));
  });

  test("says what the switch speaks where that is not 1.5", async () => {
    for (const [name, protocols, highest] of [
      ["br-13", "OpenFlow10,OpenFlow13", 4],
      ["br-10", "OpenFlow10", 1],
    ] as const) {
      await bridge.addBridge(name, protocols);
      await expect(bridge.connect({}, name)).rejects.toMatchObject({
        kind: "unsupported",
        message: `Cannot agree on a version of OpenFlow: the switch speaks others up to ${highest}, wanted 6`,
      });
    }
  });

  test("connects over TCP", async () => {
    await bridge.vswitch.vsctl("set-controller", "br-int", "ptcp:6653:127.0.0.1");
    using overTcp = await OpenFlowClient.connect(parseAddress("tcp:127.0.0.1", false));
    expect(overTcp.features).toEqual(client.features);
    await bridge.vswitch.vsctl("del-controller", "br-int");
    expect(await overTcp.closed).toMatchObject({ kind: "lost" });
  });

  test("a frozen switch costs a request its time and no more; a killed one ends the connection", async () => {
    using victim = await bridge.connect({ requestMs: 300 });
    await bridge.vswitch.stop("ovs-vswitchd", "SIGSTOP");
    const started = performance.now();
    await expect(victim.flows()).rejects.toMatchObject({
      kind: "late",
      message: 'Cannot list the flows "": no answer came in time',
    });
    await expect(victim.bundle([addFlow(flow({}))])).rejects.toMatchObject({ kind: "late" });
    expect(performance.now() - started).toBeGreaterThan(590);
    await bridge.vswitch.stop("ovs-vswitchd", "SIGCONT");
    await victim.echo(20_000);
    // The bundle that was late has been discarded.
    expect(await client.flows()).toEqual([]);
    await bridge.vswitch.stop("ovs-vswitchd", "SIGSTOP");
    const pending = victim.echo(60_000).catch((error: unknown) => error);
    await bridge.vswitch.stop("ovs-vswitchd", "SIGKILL");
    expect(await pending).toMatchObject({ kind: "lost" });
    expect(await victim.closed).toMatchObject({ kind: "lost" });
    await expect(victim.echo()).rejects.toMatchObject({ kind: "lost" });
    await expect(bridge.connect()).rejects.toMatchObject({
      kind: "lost",
      message: expect.stringContaining("connect to"),
    });
    await bridge.vswitch.startSwitch();
  });
});
