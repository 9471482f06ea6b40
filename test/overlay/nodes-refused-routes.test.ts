import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { compileExecutables } from "../conformance/plugin.ts";
import { eventually } from "../support/agent-process.ts";
import { describeWith } from "../support/requires.ts";
import { scratchDir } from "../support/scratch-dir.ts";
import { routesOf } from "./lab/traces.ts";
import { SingleNode, subnets } from "./single-node.ts";

const own = { name: "n1", addresses: ["172.30.0.1", "fd30:a::1"], subnets };
const peer = (number: number, subnet: string) => ({
  name: `peer-${number}`,
  addresses: [`172.30.0.${number}`],
  subnets: [subnet],
});

interface Report {
  readonly findings: readonly { readonly code: string; readonly what: string }[];
  readonly repaired: readonly { readonly error?: string }[];
}

/** A record that may be, and a route that the kernel will not have: what it leads by way of is an address that the node itself has given another meaning. */
describeWith("a route that the kernel refuses", ["root", "openvswitch", "nft"], () => {
  beforeAll(compileExecutables);

  describe.each(["encap", "noEncap", "bridge"] as const)("%s", (mode) => {
    const stack = new AsyncDisposableStack();
    const file = join(stack.use(scratchDir()).path, "nodes.json");
    let single: SingleNode;

    const write = (...peers: readonly object[]): void => {
      writeFileSync(`${file}.new`, JSON.stringify({ nodes: [own, ...peers] }));
      renameSync(`${file}.new`, file);
    };
    const shortcomings = async (): Promise<readonly string[]> => (await single.node.home.status()).shortcomings;
    const routes = (): Promise<readonly string[]> => routesOf(single.node);
    const onLink = (device: string): string => `172.30.0.33/29 brd 172.30.0.39 dev ${device}`;
    // In a tunnel by way of its gateway, which is this node's own here; without one by way of itself, a broadcast address.
    const inTheWay = { encap: "10.50.0.1/32 dev lo", noEncap: onLink("br-phy"), bridge: onLink("nic0") }[mode];
    const badSubnet = "10.50.0.0/24";
    const bad = peer(39, badSubnet);

    beforeAll(async () => {
      write(peer(9, "10.60.0.0/24"), bad, peer(10, "10.61.0.0/24"));
      const nodes = { registry: { type: "static", file } };
      single = stack.use(
        mode === "bridge"
          ? await SingleNode.ground({}, "plain", { nodes }, "bridge")
          : await SingleNode.ground({ mode, nodeAddresses: undefined }, "outer-bridge", { nodes }),
      );
      await single.node.namespace.ip(`addr add ${inTheWay}`);
    });
    afterAll(() => stack.disposeAsync());

    test("keeps no agent from its start, and costs the others nothing", async () => {
      await single.node.startAgent();
      await expect.poll(routes).toEqual(["10.60.0.0/24", "10.61.0.0/24"]);
      const [sentence] = await eventually(async () => {
        const all = await shortcomings();
        return all.length === 1 && all;
      }, "the shortcoming");
      expect(sentence).toContain(`Cannot set the route to ${badSubnet} by way of`);
      expect(sentence).toContain("EINVAL");
      const text = await single.node.pipette("status", "--socket", single.node.home.socket);
      expect(text).toContain(`shortcoming: ${sentence}`);
      expect(text).not.toContain("no problems");
      expect((await single.node.home.status()).problems).toEqual([]);
    });

    test("others come and go while it stands, and an agent starts that has it from before", async () => {
      await single.node.agent.end();
      await single.node.startAgent();
      expect(await routes()).toEqual(["10.60.0.0/24", "10.61.0.0/24"]);
      write(peer(9, "10.60.0.0/24"), bad, peer(11, "10.62.0.0/24"));
      await expect.poll(routes).toEqual(["10.60.0.0/24", "10.62.0.0/24"]);
    });

    test("what somebody breaks meanwhile is put right all the same", async () => {
      const { executables, namespace, home } = single.node;
      await namespace.ip(`addr del 10.10.1.1/24 dev ${single.node.gatewayDevice}`);
      const words = [`${executables}/pipette`, "doctor", "--once", "--repair", "--json", "--config", home.configFile];
      const { stdout } = await namespace.start(words).ended;
      const { findings, repaired }: Report = JSON.parse(stdout);
      expect(repaired.filter(({ error }) => error !== undefined)).toEqual([]);
      expect(findings.map(({ code }) => code)).not.toContain("gateway");
      expect(findings.filter(({ code }) => code === "shortcoming")).toMatchObject([
        { what: expect.stringContaining(badSubnet) },
      ]);
      expect(await namespace.run(`ip -4 addr show dev ${single.node.gatewayDevice}`)).toContain("10.10.1.1/24");
    });

    test("it is set once nothing is in its way, and goes with its record", async () => {
      await single.node.namespace.ip(`addr del ${inTheWay}`);
      await expect.poll(routes).toEqual([...["10.60.0.0/24", "10.62.0.0/24", badSubnet].sort()]);
      await eventually(async () => (await shortcomings()).length === 0, "the end of the shortcoming");
      write(peer(9, "10.60.0.0/24"));
      await expect.poll(routes).toEqual(["10.60.0.0/24"]);
      // Nor is a pod seen there under its own address any more.
      const rules = (): Promise<string> => single.node.namespace.run("nft list table inet pipette-pipette0");
      if (mode === "bridge") expect(await rules()).not.toContain("10.61.0.0/24");
    });
  });
});
