import { afterAll, beforeAll, expect, test } from "vitest";
import { describeWith } from "../../support/requires.ts";
import { describeWine } from "../wine/describe-wine.ts";
import { gateway, NodeSwitch, OverlayWindowsNode, portOf } from "./overlay-node.ts";

const namespace = "5a5a5a5a-0000-4000-8000-000000000001";
const own = { name: "win", addresses: ["192.168.1.5"], mac: "00:15:5d:01:02:03", subnets: ["10.9.0.0/24"] };
const onLink = { name: "near", addresses: ["192.168.1.6"], mac: "00:15:5d:00:00:06", subnets: ["10.9.6.0/24"] };
const behind = { name: "far", addresses: ["192.168.7.7"], mac: "00:15:5d:00:00:07", subnets: ["10.9.7.0/24"] };
const nodes = "C:\\nodes.yaml";
const services = { file: "C:\\services.json", cidrs: ["10.96.0.0/16"] };
const web = { name: "shop/web:http", clusterIp: "10.96.0.10", protocol: "tcp", port: 80 };
const registry = { nodes: { name: "win", mac: own.mac, registry: { type: "static", file: nodes } } };

describeWith("a Windows node among others", ["root", "openvswitch"], () => {
  let real: NodeSwitch;
  beforeAll(async () => {
    real = await NodeSwitch.start();
  });
  afterAll(() => real?.[Symbol.asyncDispose]());

  describeWine("in Wine", (wine) => {
    let node: OverlayWindowsNode;
    const tell = (...all: object[]): void => wine.prefix.write(nodes, JSON.stringify({ nodes: [own, ...all] }));
    const routes = (): readonly string[] =>
      node.windows.host.state.routes.map((entry) => `${entry["DestinationPrefix"]} ${entry["NextHop"]}`);
    beforeAll(async () => {
      tell(onLink, behind);
      wine.prefix.write(
        services.file,
        JSON.stringify({ services: [{ ...web, endpoints: [{ ip: "10.9.6.2", port: 8080 }] }] }),
      );
      node = await OverlayWindowsNode.make(wine.prefix, real);
      node.windows.addNamespace(namespace);
      await real.servePipes(wine.prefix);
    });
    afterAll(() => node?.[Symbol.asyncDispose]());

    test("reaches those on its link without a tunnel, by their hardware address, and those behind a router in one", async () => {
      // By the pipes, which are what it looks for where nothing says otherwise.
      await node.start({ mode: "hybrid", services, database: undefined, management: undefined }, registry);
      const port = portOf(await node.windows.cni("ADD", "a", { netns: namespace }));
      node.startContainer(port);
      await expect.poll(() => real.flowsOf("10.9.0.2")).not.toEqual([]);
      const mac = await real.podMac(port);
      const gatewayMac = (await real.column(gateway, "mac")).replaceAll('"', "");
      const from = (destination: string): Promise<string> =>
        real.trace(
          `in_port=${port},icmp,dl_src=${mac},dl_dst=${gatewayMac},nw_src=10.9.0.2,nw_dst=${destination},nw_ttl=64`,
          ...["--ct-next", "trk,est"],
        );
      const near = await from("10.9.6.2");
      expect(near).toMatch(/set\(eth\(src=00:15:5d:01:02:03,dst=00:15:5d:00:00:06\)\).*Ethernet0$/m);
      expect(await from("10.9.7.2")).toMatch(/set_field:192\.168\.7\.7->tun_dst/);
      const into = `in_port=Ethernet0,icmp,dl_src=${onLink.mac},dl_dst=${own.mac},nw_src=10.9.6.2,nw_dst=10.9.0.2,nw_ttl=64`;
      expect(await real.trace(into, "--ct-next", "trk,new")).toMatch(new RegExp(`Datapath actions:.*${port}$`, "m"));
      // What is for the node itself does not touch the pipeline.
      expect(await real.trace("in_port=Ethernet0,icmp,nw_dst=192.168.1.5")).toMatch(/Datapath actions: br-int$/m);
    });

    test("has a way to services: the route, its next hop, and that one's declared hardware address", async () => {
      const { state } = node.windows.host;
      expect(routes()).toEqual(expect.arrayContaining(["10.96.0.0/16 169.254.0.253", "169.254.0.253/32 0.0.0.0"]));
      expect(state.neighbours).toMatchObject([{ IPAddress: "169.254.0.253", State: "Permanent" }]);
      await expect.poll(() => real.flowsOf("10.96.0.10")).not.toEqual([]);
    });

    test("has the routes of its own packets to their pods, and loses them with the nodes", async () => {
      await expect.poll(routes).toEqual(expect.arrayContaining(["10.9.6.0/24 192.168.1.6", "10.9.7.0/24 10.9.7.1"]));
      tell(behind);
      await expect.poll(routes).not.toContain("10.9.6.0/24 192.168.1.6");
      await expect.poll(() => real.flowsOf("10.9.6.0")).toEqual([]);
      tell(behind, onLink);
      await expect.poll(routes).toContain("10.9.6.0/24 192.168.1.6");
      expect(await real.flowsOf("10.9.6.0")).not.toEqual([]);
      expect(routes()).toContain("10.9.7.0/24 10.9.7.1");
    });
  });
});
