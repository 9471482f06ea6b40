import { afterAll, beforeAll, expect, test } from "vitest";
import { describeWith } from "../../support/requires.ts";
import { describeWine } from "../wine/describe-wine.ts";
import { gateway, NodeSwitch, OverlayWindowsNode, portOf } from "./overlay-node.ts";

const [a, b] = ["5a5a5a5a-0000-4000-8000-000000000001", "5a5a5a5a-0000-4000-8000-000000000002"];
const args = (name: string) => ({
  args: `IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=${name};K8S_POD_UID=${name}-uid`,
});

describeWith("pods of a Windows node that a real Open vSwitch forwards for", ["root", "openvswitch"], () => {
  let real: NodeSwitch;
  beforeAll(async () => {
    real = await NodeSwitch.start();
  });
  afterAll(() => real?.[Symbol.asyncDispose]());

  describeWine("in Wine", (wine) => {
    let node: OverlayWindowsNode;
    beforeAll(async () => {
      node = await OverlayWindowsNode.make(wine.prefix, real);
      for (const namespace of [a, b]) node.windows.addNamespace(namespace);
    });
    afterAll(() => node?.[Symbol.asyncDispose]());

    test("the agent has bridge, uplink, tunnel and gateway, and the gateway's adapter is set up", async () => {
      await node.start();
      expect(await real.ports()).toEqual(["Ethernet0", gateway, "pipette-tun0"]);
      expect(await real.column("pipette-tun0", "options")).toContain('local_ip="192.168.1.5"');
      const { state } = node.windows.host;
      const adapter = state.adapters.find((entry) => entry["Name"] === gateway);
      expect(adapter?.["Status"]).toBe("Up");
      const mac = String(adapter?.["MacAddress"]).replaceAll("-", ":").toLowerCase();
      expect(await real.column(gateway, "mac")).toBe(`"${mac}"`);
      expect(state.addresses).toContainEqual(expect.objectContaining({ IPAddress: "10.9.0.1", PrefixLength: 24 }));
      expect(state.nats).toHaveLength(1);
      const [toNode, fromNode] = [
        await real.trace("in_port=Ethernet0,ip,nw_dst=192.168.1.5"),
        await real.trace("in_port=br-int,ip,nw_src=192.168.1.5,nw_dst=192.168.1.6"),
      ];
      expect(toNode).toMatch(/Datapath actions: br-int$/m);
      expect(fromNode).toMatch(/Datapath actions: Ethernet0$/m);
    });

    test("an ADD has endpoint and port, and no flows until the first container has started", async () => {
      const added = await node.windows.cni("ADD", "a", { netns: a, ...args("web") });
      expect(added).toMatchObject({ t: "ok" });
      const port = portOf(added);
      expect(await real.ports()).toContain(port);
      expect(await real.column(port, "type")).toBe('""');
      expect(await real.flowsOf("10.9.0.2")).toEqual([]);
      expect(await node.windows.cni("ADD", "a1", { netns: "container:a", ...args("web") })).toMatchObject({ t: "ok" });
      node.startContainer(port);
      await expect.poll(() => real.flowsOf("10.9.0.2")).not.toEqual([]);
      expect(await real.column(port, "type")).toBe("internal");
      const mtus = node.windows.host.state.interfaces.map((entry) => entry["NlMtu"]);
      expect(mtus.at(-1)).toBe(1450);
      // The same ADD again leaves what runs as it is.
      expect(await node.windows.cni("ADD", "a", { netns: a, ...args("web") })).toEqual(added);
      expect(await real.column(port, "type")).toBe("internal");
    });

    test("a restarted agent goes on with those that have started and with those that have not", async () => {
      const added = await node.windows.cni("ADD", "b", { netns: b, ...args("db") });
      const port = portOf(added);
      const before = await real.flowsOf("10.9.0.2");
      await node.windows.stop(true);
      node.startContainer(port);
      await node.start();
      expect((await real.flowsOf("10.9.0.2")).length).toBe(before.length);
      await expect.poll(() => real.flowsOf("10.9.0.3")).not.toEqual([]);
    });

    test("a DEL takes flows, port and endpoint away, and nothing of the other pod's", async () => {
      const before = await real.flowsOf("10.9.0.3");
      const ports = await real.ports();
      expect(await node.windows.cni("DEL", "a", { netns: a })).toMatchObject({ t: "ok" });
      expect(await real.flowsOf("10.9.0.2")).toEqual([]);
      expect((await real.ports()).length).toBe(ports.length - 1);
      expect(node.windows.endpoints()).toHaveLength(1);
      expect(await real.flowsOf("10.9.0.3")).toEqual(before);
      expect(await node.windows.disagreements()).toEqual([]);
    });
  });
});
