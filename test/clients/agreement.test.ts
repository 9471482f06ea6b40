import { afterEach, beforeEach, expect, test } from "vitest";
import { executables } from "../conformance/plugin.ts";
import { expectAgreement, type RuntimePod } from "../support/agreement.ts";
import { callPlugin } from "../support/cni-call.ts";
import { describeWith } from "../support/requires.ts";
import { bridgeName, networkName, RuntimeNode } from "./runtime-node.ts";

// The checker that the other files trust, against a node that each test spoils in one place.
describeWith("the checker of agreement", ["root", "cni-plugins", "nft"], () => {
  let base: RuntimeNode;
  let pod: RuntimePod;

  beforeEach(async () => {
    base = await RuntimeNode.start();
    await base.home.start();
    await base.node.run("ip netns add pod");
    const netns = "/run/netns/pod";
    const containerId = "c0ffee";
    const list = JSON.parse(await base.node.run(`cat ${base.confDir}/10-pipette.conflist`));
    const { stdout } = await callPlugin({
      executable: `${executables}/pipette`,
      prefix: base.node.prefix,
      env: { CNI_COMMAND: "ADD", CNI_CONTAINERID: containerId, CNI_NETNS: netns, CNI_IFNAME: "eth0", CNI_PATH: "/" },
      conf: { ...list.plugins[0], name: list.name, cniVersion: list.cniVersion },
    });
    const ips: { address: string }[] = JSON.parse(stdout).ips;
    const addresses = ips.map(({ address }) => address.replace(/\/.*/, ""));
    pod = { network: networkName, containerId, ifname: "eth0", addresses, netns };
  });
  afterEach(async () => {
    await base?.[Symbol.asyncDispose]();
  });

  const check = (pods: readonly RuntimePod[]): Promise<void> => {
    const fixed = { fixedLinks: ["lo", "uplink", bridgeName], fixedNamespaces: ["outside"] };
    const options = { node: base.node, home: base.home, executables: base.wholeDir, withinMs: 100, ...fixed };
    return expectAgreement(options, async () => pods);
  };

  test("is content where all agree", async () => {
    await check([pod]);
  });

  test("sees a pod that the runtime does not know", async () => {
    await expect(check([])).rejects.toThrow(
      /does not know "eth0" of "c0ffee".*the address 10\.92\..*the interface "c0ffee-\w+"\nnamespace pod belongs to no pod\n/,
    );
  });

  test("sees a pod that only the runtime knows", async () => {
    const ghost = { ...pod, containerId: "deaf", netns: "/run/netns/ghost" };
    await expect(check([pod, ghost])).rejects.toThrow(
      /pod-without-lease: .*"deaf".*\ndeaf eth0: pod interface none; runtime .*\nnamespace ghost is gone/,
    );
  });

  test.each([
    [
      "an interface that is gone",
      "ip -n pod link del eth0",
      /lease-without-interface: "eth0" of "c0ffee".*\nc0ffee eth0: pod interface none/,
    ],
    [
      "another address in the pod",
      "ip -n pod addr add 10.92.9.9/16 dev eth0",
      /address-differs: .*10\.92\.9\.9.*\nc0ffee eth0: pod interface .*10\.92\.9\.9/,
    ],
    ["a namespace of nobody", "ip netns add stray", /namespace stray belongs to no pod/],
  ])("sees %s", async (_what, command, wanted) => {
    await base.node.run(command);
    await expect(check([pod])).rejects.toThrow(wanted);
  });

  test("sees a lease that nobody finishes, and an interface without one", async () => {
    using store = await base.home.store();
    store.release({ network: networkName, sandboxId: "c0ffee", ifname: "eth0" }, "cooling");
    await expect(check([pod])).rejects.toThrow(/interface-without-lease: .*"c0ffee"/);
  });

  test("sees a port rule and an interface that stayed behind", async () => {
    const words = [
      "iptables",
      "-t",
      "nat",
      "-A",
      "PREROUTING",
      "-m",
      "comment",
      "--comment",
      'dnat name: "pods" id: "dead"',
    ];
    await base.node.runWords(words);
    await base.node.run("ip link add bwp0 type veth peer name eth1 netns pod");
    await expect(check([pod])).rejects.toThrow(/a port rule of dead stayed behind/);
    await expect(check([])).rejects.toThrow(/interface bwp0 stayed behind/);
  });
});
