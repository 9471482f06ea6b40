import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { eventually } from "../support/agent-process.ts";
import { describeWith } from "../support/requires.ts";
import { ContainerdNode } from "./containerd-node.ts";
import { httpGet } from "./http-get.ts";
import { gateway, nodeAddress } from "./runtime-node.ts";

describeWith("pods of containerd", ["root", "containerd", "cni-plugins", "gcc", "busybox", "nft"], () => {
  let node: ContainerdNode;

  beforeAll(async () => {
    node = await ContainerdNode.start();
  });
  afterEach(async () => {
    try {
      await node?.agrees();
    } finally {
      await node?.clear();
    }
    await node?.agrees();
  });
  afterAll(async () => {
    await node?.[Symbol.asyncDispose]();
  });

  const addressesOf = async (id: string): Promise<[string, string]> => {
    const { addresses } = await node.cri.podStatus(id);
    expect(addresses).toEqual([expect.stringMatching(/^10\.92\./), expect.stringMatching(/^fd92::/)]);
    return addresses as [string, string];
  };

  test("reach each other, the gateway and the outside, over IPv4 and IPv6; the node reaches them", async () => {
    const [a, b] = [await node.cri.runPod("a"), await node.cri.runPod("b")];
    const [a4] = await addressesOf(a);
    const [b4, b6] = await addressesOf(b);
    const inA = await node.cri.startContainer(a, "sleep 1000");
    await node.cri.startContainer(b, "mkdir /tmp/w; echo served by b >/tmp/w/index.html; httpd -f -p 80 -h /tmp/w");

    for (const target of [b4, gateway, nodeAddress, "192.0.2.2", b6, "fd92::1"])
      expect(await node.cri.exec(inA, `ping -c 1 -W 2 ${target}`)).toContain(" 0% packet loss");
    const page = await eventually(
      () => node.cri.exec(inA, `wget -q -O - http://${b4}/`).catch(() => undefined),
      "the other pod's web server",
    );
    expect(page.trim()).toBe("served by b");
    expect(await node.base.node.ping(undefined, a4)).toBe(true);
    expect(await node.base.node.ping(undefined, b6)).toBe(true);
  });

  test("have their host ports by portmap, from the neighbour, the node and the pod itself", async () => {
    const portMappings = [{ containerPort: 80, hostPort: 18080 }];
    const web = await node.cri.runPod("web", { portMappings });
    const script = "mkdir /tmp/w; echo by port >/tmp/w/index.html; httpd -f -p 80 -h /tmp/w";
    const inWeb = await node.cri.startContainer(web, script);
    const fetchPage = (from: string | undefined, host: string): Promise<string> =>
      httpGet(node.base.node, from, host, 18080);
    await eventually(() => fetchPage(undefined, nodeAddress).catch(() => undefined), "the web server");
    expect(await fetchPage(node.base.outside, nodeAddress)).toBe("by port");
    expect(await fetchPage(undefined, "127.0.0.1")).toBe("by port");
    // The hairpin: out to its own host port and back in by the same bridge port.
    expect((await node.cri.exec(inWeb, `wget -q -O - http://${nodeAddress}:18080/`)).trim()).toBe("by port");
    await node.cri.endPod(web);
    await expect(fetchPage(node.base.outside, nodeAddress)).rejects.toThrow();
  });

  test("have their bandwidth limited by the plugin after ours", async () => {
    const annotations = { "kubernetes.io/ingress-bandwidth": "10M", "kubernetes.io/egress-bandwidth": "5M" };
    await node.cri.runPod("slow", { annotations });
    const shaped = await node.base.node.run("tc qdisc show");
    expect(shaped).toMatch(/tbf .*dev slow-\S+ .*rate 10Mbit/);
    expect(shaped).toMatch(/tbf .*dev bwp\S+ .*rate 5Mbit/);
  });

  test("are ended by any number of Stops and Removes, with every address given back", async () => {
    const id = await node.cri.runPod("twice");
    const [first] = await addressesOf(id);
    await node.cri.stopPod(id);
    await node.cri.stopPod(id);
    await node.cri.removePod(id);
    await node.cri.removePod(id);
    const dels = node.agent.lines.filter((line) => line["verb"] === "DEL" && line["container"] === id);
    // One for each Stop, one for the first Remove; the last found no pod.
    expect(dels.map((line) => line["outcome"])).toEqual(["ok", "ok", "ok"]);
    const again = await node.cri.runPod("twice");
    expect((await addressesOf(again))[0]).not.toBe(first);
  });

  test("end without a Stop, with the namespace gone, and with their first process killed", async () => {
    const [removed, robbed] = [await node.cri.runPod("removed"), await node.cri.runPod("robbed")];
    const killed = await node.cri.runPod("killed");
    await node.cri.removePod(removed);
    const { netns } = await node.cri.podStatus(robbed);
    await node.base.node.run(`umount ${netns}`);
    await node.base.node.run(`rm ${netns}`);
    await node.cri.endPod(robbed);
    await node.base.node.run(`kill -KILL ${(await node.cri.podStatus(killed)).pid}`);
    await eventually(async () => (await node.cri.podStatus(killed)).state === "SANDBOX_NOTREADY", "its end to be seen");
    await node.cri.endPod(killed);
  });
});
