import { execa } from "execa";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { eventually } from "../support/agent-process.ts";
import { describeWith } from "../support/requires.ts";
import { httpGet } from "./http-get.ts";
import { PodmanNode, secondNetwork } from "./podman-node.ts";
import { gateway, networkName, nodeAddress } from "./runtime-node.ts";

describeWith("containers of podman", ["root", "podman", "cni-plugins", "gcc", "busybox", "nft"], () => {
  let node: PodmanNode;

  beforeAll(async () => {
    node = await PodmanNode.start();
  });
  afterEach(async () => {
    try {
      await node?.agrees();
    } finally {
      await node?.podman.removeAll();
    }
    await node?.agrees();
  });
  afterAll(async () => {
    await node?.[Symbol.asyncDispose]();
  });

  const ping = (from: string, address: string): Promise<string> =>
    node.podman.run("exec", from, "ping", "-c", "1", "-W", "2", address);

  const addressesOf = async (name: string, network = networkName): Promise<readonly string[]> =>
    (await node.podman.inspect(name)).networks.get(network) ?? [];

  test("reach each other, the gateway and the node; a container that has ended leaves nothing", async () => {
    await node.podman.start("a", []);
    await node.podman.start("b", []);
    for (const address of [...(await addressesOf("b")), gateway, nodeAddress])
      expect(await ping("a", address)).toContain(" 0% packet loss");
    for (const address of await addressesOf("a")) expect(await node.base.node.ping(undefined, address)).toBe(true);
    expect(await node.podman.runOnce("echo here and gone")).toBe("here and gone");
  });

  test("have their published port, from the neighbour and the node, until they end", async () => {
    const script = "mkdir /tmp/w; echo published >/tmp/w/index.html; httpd -f -p 8080 -h /tmp/w";
    await node.podman.start("web", ["-p", "18081:8080"], script);
    const fetchPage = (from?: string): Promise<string> => httpGet(node.base.node, from, nodeAddress, 18081);
    await eventually(() => fetchPage().catch(() => undefined), "the web server");
    expect(await fetchPage(node.base.outside)).toBe("published");
    await node.podman.run("rm", "-f", "-t", "0", "web");
    await expect(fetchPage(node.base.outside)).rejects.toThrow();
  });

  test("are named as podman names them", async () => {
    await node.podman.start("named", []);
    const [file = "", ...args] = node.base.home.command;
    const say = async (...words: string[]) => (await execa(file, [...args, ...words], { reject: false })).stdout;
    expect(await say("status", "--socket", node.base.home.socket)).toMatch(/ named$/m);
    expect(await say("ipam", "list", "--data-dir", node.base.home.dataDir)).toMatch(/ named +\d+s$/m);
    expect(await say("ipam", "show", "named", "--data-dir", node.base.home.dataDir)).toMatch(/^pod +named$/m);
  });

  test("join a second network and leave it again", async () => {
    await node.podman.start("both", []);
    await node.podman.start("other", ["--network", `${secondNetwork}:interface_name=eth1`]);
    await node.podman.run("network", "connect", secondNetwork, "both");
    const [there = ""] = await addressesOf("other", secondNetwork);
    expect(there).toMatch(/^10\.93\.0\./);
    expect(await ping("both", there)).toContain(" 0% packet loss");
    expect(await ping("both", gateway)).toContain(" 0% packet loss");
    await node.agrees();
    await node.podman.run("network", "disconnect", secondNetwork, "both");
    expect([...(await node.podman.inspect("both")).networks.keys()]).toEqual([networkName]);
    await node.agrees();
    expect(await ping("both", gateway)).toContain(" 0% packet loss");
  });

  test("get the address and the hardware address that they ask for, and no second one gets it", async () => {
    const wanted = `${networkName}:ip=10.92.7.7,mac=02:11:22:33:44:55`;
    await node.podman.start("fixed", ["--network", wanted]);
    const { macs } = await node.podman.inspect("fixed");
    expect([(await addressesOf("fixed"))[0], macs]).toEqual(["10.92.7.7", ["02:11:22:33:44:55"]]);
    await expect(node.podman.start("rival", ["--network", wanted])).rejects.toThrow(/10\.92\.7\.7/);
    await node.agrees();
    expect(await node.base.node.ping(undefined, "10.92.7.7")).toBe(true);
  });

  test("come back after a stop with the id that they had", async () => {
    const id = await node.podman.start("phoenix", []);
    await node.podman.run("stop", "-t", "0", "phoenix");
    await node.agrees();
    await node.podman.run("start", "phoenix");
    expect((await node.podman.inspect("phoenix")).id).toBe(id);
    expect(await ping("phoenix", gateway)).toContain(" 0% packet loss");
  });

  test("end while the agent is away, which finishes when it is back", async () => {
    await node.podman.start("orphan", []);
    await node.agent.end("SIGKILL");
    try {
      await node.podman.run("rm", "-f", "-t", "0", "orphan");
    } finally {
      node.agent = await node.base.home.start();
    }
    expect(node.agent.lines).toContainEqual(expect.objectContaining({ message: "reconciled", finished: 1 }));
  });
});
