import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { tables } from "../../agent/datapath/ovs/pipeline/tables.ts";
import { addFlow, deleteFlows, type Flow, type OpenFlowClient } from "../../agent/protocols/openflow/mod.ts";
import { forgetNeighbours } from "../support/forget-neighbours.ts";
import type { NetworkSandbox } from "../support/network-sandbox.ts";
import { describeWith } from "../support/requires.ts";
import { addressOf, contexts, macs, nodeFlows, pods, type Version } from "./pipeline-node.ts";
import { PodBridge } from "./pipeline-pods.ts";

/** For a ping that is not to come back; what comes back does so in milliseconds. */
const silent = "ping -n -q -c 3 -i 0.2 -w 1";

describeWith("packets of real kernels through the pipeline", ["linux", "root", "openvswitch"], () => {
  const open = new AsyncDisposableStack();
  let sandbox: NetworkSandbox;
  let paths: PodBridge["paths"];
  let client: OpenFlowClient;

  beforeAll(async () => {
    const made = open.use(await PodBridge.start());
    ({ sandbox, paths } = made);
    client = open.use(await made.bridge.connect());
  });
  afterAll(() => open.disposeAsync());
  beforeEach(async () => {
    await install(nodeFlows(contexts.encap));
    for (const path of Object.values(paths))
      await forgetNeighbours({ run: (command) => sandbox.pod(path, command) }, "all");
    await forgetNeighbours({ run: (command) => sandbox.node(command) }, "all");
  });

  /** Packets that the guard has not let pass. */
  const stopped = async (): Promise<number> => {
    const found = (await client.flows({ table: tables.SpoofGuard })).find(({ flow }) => flow.priority === 0);
    return Number(found?.counters.packets ?? 0n);
  };
  const install = (flows: readonly Flow[]) => client.bundle([deleteFlows(), ...flows.map(addFlow)]);

  describe.each<Version>([4, 6])("IPv%i", (version) => {
    const to = (host: "gateway" | "pod1" | "pod2") => addressOf(host, version);

    test("pods and the node reach each other at the first packet, asking nobody but whom they mean", async () => {
      expect(await sandbox.ping(paths.pod1, to("pod2"), "one")).toBe(true);
      expect(await sandbox.ping(paths.pod2, to("gateway"), "one")).toBe(true);
      expect(await sandbox.ping(undefined, to("pod1"), "one")).toBe(true);
    });

    test("without the flows that bring the question to whom it means, there is no answer", async () => {
      const answering = version === 4 ? tables.ARPResponder : tables.IPv6;
      const dumb = nodeFlows(contexts.encap).filter(({ table, priority }) => table !== answering || priority === 0);
      await install(dumb);
      await expect(sandbox.pod(paths.pod1, `${silent} ${to("pod2")}`)).rejects.toThrow();
    });

    test("a packet from another's address or MAC gets as far as the guard", async () => {
      const spoofed = async (from: string): Promise<void> => {
        const before = await stopped();
        await sandbox.pod(paths.pod1, `ip neigh replace ${to("pod2")} lladdr ${macs.pod2} dev eth0 nud permanent`);
        await expect(sandbox.pod(paths.pod1, `${silent} -I ${from} ${to("pod2")}`)).rejects.toThrow();
        const until = performance.now() + 20_000;
        while ((await stopped()) === before && performance.now() < until) await Bun.sleep(50);
        expect(await stopped()).toBeGreaterThan(before);
      };
      const taken = version === 4 ? "10.10.1.77" : "fd00:10:1::77";
      await sandbox.pod(paths.pod1, `ip addr add ${taken}${version === 4 ? "/24 dev eth0" : "/64 dev eth0 nodad"}`);
      await spoofed(taken);
      await sandbox.pod(paths.pod1, `ip addr del ${taken}/${version === 4 ? 24 : 64} dev eth0`);
      await sandbox.pod(paths.pod1, "ip link set eth0 address 0a:00:00:00:00:77");
      await spoofed(to("pod1"));
      await sandbox.pod(paths.pod1, `ip link set eth0 address ${macs.pod1}`);
      expect(await sandbox.ping(paths.pod1, to("pod2"))).toBe(true);
    });

    test("pods of two projects do not reach each other, the node reaches both", async () => {
      await install(nodeFlows(contexts.multitenant));
      await expect(sandbox.pod(paths.pod1, `${silent} ${to("pod2")}`)).rejects.toThrow();
      expect(await sandbox.ping(undefined, to("pod2"), "one")).toBe(true);
      expect(await sandbox.ping(paths.pod1, to("gateway"), "one")).toBe(true);
      await install(nodeFlows(contexts.multitenant, [pods.pod1, { ...pods.pod2, vnid: pods.pod1.vnid }]));
      expect(await sandbox.ping(paths.pod1, to("pod2"))).toBe(true);
    });

    test("a neighbour that names the MAC of an earlier pod loses nothing", async () => {
      await sandbox.pod(paths.pod1, `ip neigh replace ${to("pod2")} lladdr 0a:00:00:00:00:99 dev eth0 nud stale`);
      expect(await sandbox.ping(paths.pod1, to("pod2"), "one")).toBe(true);
    });
  });
});
