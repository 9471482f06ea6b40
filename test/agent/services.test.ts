import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { call, NamedServer } from "../overlay/named-server.ts";
import { AgentHome, type AgentProcess, bridgeName, eventually, resultOf } from "../support/agent-process.ts";
import { NetworkNamespace } from "../support/network-namespace.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { describeWith } from "../support/requires.ts";

const port = 8080;
const clusterIps = ["10.96.0.10", "fd00:96::10"] as const;
const table = `pipette-services-${bridgeName}`;

describeWith("services of an agent with a kernel bridge", ["linux", "root", "nft"], () => {
  const stack = new AsyncDisposableStack();
  const pods: { readonly namespace: NetworkNamespace; readonly ips: readonly string[] }[] = [];
  let sandbox: NetworkSandbox;
  let node: NetworkNamespace;
  let home: AgentHome;
  let agent: AgentProcess;
  let file = "";

  beforeAll(async () => {
    sandbox = stack.use(await NetworkSandbox.enter("pt-as-"));
    node = stack.use(NetworkNamespace.current());
    // A node has a way out, by which it asks for the addresses of services too.
    await node.ip(
      "link add uplink type veth peer name beyond",
      "link set beyond up",
      "link set uplink up",
      "addr add 192.0.2.1/24 dev uplink",
      "addr add 2001:db8:1::1/64 dev uplink nodad",
      "route add default via 192.0.2.2",
      "route add default via 2001:db8:1::2",
    );
    home = stack.use(new AgentHome());
    file = join(home.directory, "services.yaml");
    serve([]);
    home.change({ services: { from: "file", file, cidrs: ["10.96.0.0/16", "fd00:96::/112"] } });
    agent = await home.start();
    for (const name of ["a", "b"]) {
      const netns = await sandbox.addPod(name);
      const { ips } = resultOf(await home.cmd("cmdAdd", name, { netns }));
      const namespace = stack.use(NetworkNamespace.at(netns));
      pods.push({ namespace, ips: ips.map(({ address }) => address.split("/")[0] ?? "") });
      stack.use(await NamedServer.start(namespace, name, port));
    }
  });
  afterAll(() => stack.disposeAsync());

  /** Has these pods serve one service of each family. */
  function serve(numbers: readonly number[]): void {
    const services = clusterIps.map((clusterIp, i) => ({
      name: `default/web-${i}`,
      clusterIp,
      protocol: "tcp",
      port: 80,
      endpoints: numbers.map((number) => ({ ip: pods[number]?.ips[i], port })),
    }));
    writeFileSync(file, JSON.stringify({ services }));
  }

  /** Who answers a pod and the node at the cluster IPs of both families. */
  async function answering(): Promise<string> {
    const from = [pods[0]?.namespace ?? node, node];
    const answers = from.flatMap((each) => clusterIps.map((address) => call(each, address, 80, 1_000)));
    return [...new Set((await Promise.all(answers)).map((answer) => answer?.name ?? "nobody"))].join();
  }
  const answers = (who: string): Promise<unknown> =>
    eventually(async () => (await answering()) === who, `"${who}" to answer`);
  const shortcomings = async (): Promise<string> => (await home.status()).shortcomings.join("\n");

  test("pods and the node reach what a file says, as it changes", async () => {
    serve([1]);
    await answers("b");
    serve([0]);
    await answers("a");
    expect(await shortcomings()).toBe("");
  });

  test("an agent that is killed leaves services in force, and its successor follows the file", async () => {
    await agent.end("SIGKILL");
    expect(await answering()).toBe("a");
    serve([1]);
    agent = await home.start();
    await answers("b");
  });

  test("what somebody has deleted comes back", async () => {
    await sandbox.node(`nft delete table inet ${table}`);
    await answers("b");
  });

  test("a kube-proxy beside is told", async () => {
    await sandbox.nodeWith("nft -f -", "add table ip nat\nadd chain ip nat KUBE-SERVICES\n");
    expect(await shortcomings()).toContain("kube-proxy seems to balance services on this node too");
    await sandbox.node("nft delete table ip nat");
    expect(await shortcomings()).toBe("");
  });

  test("an agent without the section takes them back", async () => {
    await agent.end();
    home.change({ services: undefined });
    agent = await home.start();
    expect(await sandbox.node("nft list ruleset")).not.toContain("services");
  });

  test("a clean-up leaves nothing of them", async () => {
    home.change({ services: { from: "file", file, cidrs: [] } });
    await agent.end();
    agent = await home.start();
    await answers("b");
    await agent.end();
    expect(await home.spawn({}, ["--cleanup"]).ended()).toBe(0);
    expect(await sandbox.node("nft list ruleset")).toBe("");
  });
});
