import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { readError } from "../../agent/protocols/openflow/error-message.ts";
import {
  addFlow,
  addMeter,
  bits,
  deleteFlow,
  deleteFlows,
  type Flow,
  flow,
  flowText,
  group,
  load,
  match,
  meter,
  type OpenFlowClient,
  OpenFlowError,
  output,
  resubmit,
  toGroup,
} from "../../agent/protocols/openflow/mod.ts";
import { writeMessage } from "../../agent/protocols/openflow/request.ts";
import { WireReader } from "../../agent/protocols/openflow/wire-reader.ts";
import { WireWriter } from "../../agent/protocols/openflow/wire-writer.ts";
import { parseCidr } from "../../shared/net/ip.ts";
import {
  addGroup,
  conjunction,
  deleteAllGroups,
  deleteAllMeters,
  modifyFlow,
  modifyFlows,
} from "../support/openflow-requests.ts";
import { describeWith } from "../support/requires.ts";
import { OpenFlowBridge } from "./openflow-bridge.ts";
import { namedMeter, pipelineFlows } from "./pipeline-flows.ts";
import { namedGroup } from "./service-flows.ts";

const flows = pipelineFlows.map(([given]) => given);
const texts = pipelineFlows.map(([, text]) => text).sort();

const texted = async (client: OpenFlowClient): Promise<string[]> =>
  (await client.flows()).map((found) => flowText(found.flow)).sort();

function messageOf(given: Flow): Uint8Array {
  const writer = new WireWriter();
  writeMessage(writer, addFlow(given), 1);
  return writer.done();
}

describeWith("flows on a real Open vSwitch", ["linux", "root", "openvswitch"], () => {
  let bridge: OpenFlowBridge;
  let client: OpenFlowClient;
  const open = new AsyncDisposableStack();

  beforeAll(async () => {
    bridge = open.use(await OpenFlowBridge.start());
    client = open.use(await bridge.connect());
  });
  afterAll(() => open.disposeAsync());
  beforeEach(async () => {
    await client.do(deleteFlows());
    expect(await client.run([deleteAllGroups(), deleteAllMeters()])).toEqual([]);
    await client.do(addMeter(meter({ id: namedMeter, unit: "pktps", rate: 100, burst: 200 })));
    await client.do(addGroup(group(namedGroup, "select", [{ actions: [resubmit(11)] }])));
  });

  test("ofp-print reads each as what it says", async () => {
    for (const [given, text] of pipelineFlows) {
      const [matched = "", actions] = text.split(/(?:^| )actions=/);
      const printed = await bridge.print(messageOf(given));
      expect(printed, text).not.toContain("error");
      if (given.match.fields.length > 0) expect(printed, text).toContain(matched.replace(/^.*, /, ""));
      expect(printed.trim(), text).toMatch(new RegExp(`actions=${RegExp.escape(actions ?? "")}$`));
    }
  });

  test("what a bundle installs, ovs-ofctl dumps in our words, and so do we", async () => {
    await client.bundle(flows.map(addFlow));
    expect(await bridge.dumpFlows()).toEqual(texts);
    expect(await texted(client)).toEqual(texts);
  });

  test("ovs-ofctl takes our words, and makes the same flows of them", async () => {
    for (const [, text] of pipelineFlows) await bridge.ofctl(6, "add-flow", text);
    expect(await texted(client)).toEqual(texts);
  });

  test("flows are added again, modified and deleted, strictly or not", async () => {
    const tcp = match().protocol("tcp").build();
    const narrow = match().protocol("tcp").set("tcp_dst", 80).build();
    const first = flow({ table: 1, priority: 5, match: tcp, actions: [output(1)] });
    const second = flow({ table: 1, priority: 6, match: narrow, actions: [output(1)], cookie: 0xa0002n });
    await client.bundle([first, second, { ...first, actions: [resubmit(2)] }].map(addFlow));
    expect(await texted(client)).toEqual([
      "cookie=0xa0002, table=1, priority=6,tcp,tp_dst=80 actions=output:1",
      "table=1, priority=5,tcp actions=resubmit(,2)",
    ]);
    await client.do(modifyFlow({ ...first, actions: [output(2)] }));
    await client.do(modifyFlows(flow({ table: 1, match: narrow, actions: [resubmit(7)] })));
    expect(await texted(client)).toEqual([
      "cookie=0xa0002, table=1, priority=6,tcp,tp_dst=80 actions=resubmit(,7)",
      "table=1, priority=5,tcp actions=output:2",
    ]);
    expect(await client.flows({ cookie: { value: 0xa0000n, mask: 0xff0000n } })).toHaveLength(1);
    expect(await client.flows({ outPort: 2 })).toHaveLength(1);
    expect(await client.flows({ table: 2 })).toEqual([]);
    await client.do(deleteFlows({ cookie: { value: 0xa0000n, mask: 0xff0000n } }));
    expect(await texted(client)).toEqual(["table=1, priority=5,tcp actions=output:2"]);
    await client.do(deleteFlow({ ...first, priority: 4 }));
    expect(await client.flows()).toHaveLength(1);
    await client.do(deleteFlow(first));
    expect(await client.flows()).toEqual([]);
  });

  describe("a bundle that fails", () => {
    const good = [1, 2, 3].map((priority) => flow({ table: 5, priority, actions: [output(1)] }));
    const toNowhere = flow({ table: 5, priority: 9, actions: [toGroup(99)] });
    // Not one that `flow` would make.
    const badTable: Flow = { ...toNowhere, table: 255 };

    test("at a message that cannot be read changes nothing, though the switch would commit the rest", async () => {
      const error = await client.bundle([...good, badTable].map(addFlow)).catch((caught: unknown) => caught);
      expect(error).toBeInstanceOf(OpenFlowError);
      expect(error).toMatchObject({
        kind: "refused",
        refusal: { type: 5, code: 2, name: "OFPFMFC_BAD_TABLE_ID" },
        message: `Cannot add flow "${flowText(badTable)}": the switch answers OFPFMFC_BAD_TABLE_ID (there is no such table)`,
      });
      expect(await client.flows()).toEqual([]);
    });

    test("at its commit changes nothing and says which flow it was", async () => {
      await expect(client.bundle([...good, toNowhere].map(addFlow))).rejects.toMatchObject({
        refusal: { name: "OFPBAC_BAD_OUT_GROUP" },
        message: expect.stringContaining(`Cannot add flow "${flowText(toNowhere)}"`),
      });
      expect(await client.flows()).toEqual([]);
      await client.bundle(good.map(addFlow));
      expect(await client.flows()).toHaveLength(3);
    });

    test("one by one, the good ones stay and each refusal says whose it is", async () => {
      const refusals = await client.run([good[0]!, badTable, good[1]!, toNowhere].map(addFlow));
      expect(refusals.map(({ refusal }) => refusal?.name)).toEqual(["OFPFMFC_BAD_TABLE_ID", "OFPBAC_BAD_OUT_GROUP"]);
      expect(refusals[1]?.message).toContain("actions=group:99");
      expect(await client.flows()).toHaveLength(2);
    });
  });

  test("what the builder refuses, the switch refuses too", async () => {
    const ipDst = match().protocol("ip").cidr("ip_dst", parseCidr("10.0.0.0/8")!).build();
    const without = { fields: ipDst.fields.filter(({ field }) => field.name !== "eth_type"), unknown: [] };
    const plain = flow({ table: 5 });
    const tracked = flow({ table: 5, match: ipDst, actions: [load(bits("nw_ttl", 0, 7), 3)] });
    const refusals = await client.run(
      [
        { ...plain, match: without },
        { ...plain, actions: tracked.actions },
        { ...plain, gotoTable: 5 },
        { ...plain, actions: [conjunction(1, 1, 2), output(1)] },
      ].map(addFlow),
    );
    expect(refusals.map(({ refusal }) => refusal?.name)).toEqual([
      "OFPBMC_BAD_PREREQ",
      "OFPBAC_MATCH_INCONSISTENT",
      "OFPBIC_BAD_TABLE_ID",
      "NXBAC_BAD_CONJUNCTION",
    ]);
  });

  test("errors have the names that ofp-parse gives them", async () => {
    const errors: (readonly [type: number, code: number, vendor?: number])[] = [];
    for (let type = 0; type <= 17; type++) for (let code = 0; code <= 20; code++) errors.push([type, code]);
    for (let code = 0; code < 50; code++) errors.push([0xffff, code, 0x2320]);
    for (const from of [2300, 2360, 2370, 2600, 2640, 4250]) {
      for (let code = from; code < from + 20; code++) errors.push([0xffff, code, 0x4f4e4600]);
    }
    const bodies = errors.map(([type, code, vendor]) => {
      const writer = new WireWriter().u16(type).u16(code);
      if (vendor !== undefined) writer.u32(vendor);
      return writer.zeros(8).done();
    });
    const file = join(bridge.vswitch.directory, "errors");
    const header = (body: Uint8Array) =>
      new WireWriter()
        .u8(6)
        .u8(1)
        .u16(8 + body.length)
        .u32(1)
        .bytes(body)
        .done();
    writeFileSync(file, Buffer.concat(bodies.map(header)));
    const printed = (await bridge.vswitch.run("ovs-ofctl", "ofp-parse", file)).matchAll(/^OFPT_ERROR [^:]*: (\S+)/gm);
    const theirs = Array.from(printed, ([, name = ""]) => name);
    expect(theirs).toHaveLength(errors.length);
    const ours = bodies.map((body) => readError(new WireReader(body, "an error")).name);
    const wrong = errors
      .map((error, i) => ({ error, our: ours[i] ?? "", their: theirs[i] ?? "" }))
      .filter(({ our, their }) => our !== their && /^(OFP|NX)/.test(their));
    expect(wrong).toEqual([]);
    expect(theirs.filter((name) => /^(OFP|NX)/.test(name)).length).toBeGreaterThan(100);
  });

  test("five thousand flows come back in many parts, joined", async () => {
    const many = Array.from({ length: 5000 }, (_, i) =>
      flow({ table: 70, match: match().set("reg3", i).build(), actions: [resubmit(71)], cookie: BigInt(i) }),
    );
    await client.bundle(many.map(addFlow));
    const listed = await client.flows();
    expect(listed).toHaveLength(5000);
    expect(new Set(listed.map((found) => found.flow.cookie)).size).toBe(5000);
    expect(listed[0]?.counters).toMatchObject({ packets: 0n, bytes: 0n });
  });
});
