import { readdirSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { OpenVswitch } from "../overlay/open-vswitch.ts";
import { eventually } from "../support/agent-process.ts";
import { NetworkNamespace } from "../support/network-namespace.ts";
import { describeWith } from "../support/requires.ts";
import { ConfinedNode } from "./confined-node.ts";
import { daemonPod, type ManifestContainer } from "./manifest-pod.ts";

/** include/uapi/linux/capability.h */
const capabilities = { NET_ADMIN: 12, NET_RAW: 13, SYS_ADMIN: 21 } as const;

const config = {
  networks: [{ name: "pods", subnets: ["10.93.0.0/24", "fd93::/64"], bridge: "pipette0", masquerade: true }],
  janitorIntervalMs: 500,
};
const gateways = ["10.93.0.1", "fd93::1", "192.0.2.1"];

describeWith(
  "an agent in a container with the rights that the DaemonSet asks for",
  ["root", "containerd", "cni-plugins", "gcc", "busybox", "nft"],
  () => {
    let node: ConfinedNode;
    beforeAll(async () => {
      node = await ConfinedNode.start();
    });
    afterAll(async () => {
      await node?.[Symbol.asyncDispose]();
    });

    const networkReady = () =>
      eventually(async () => (await node.cri.networkProblem()) === undefined, "containerd to find its network");
    const told = (command: string): Promise<string> => node.cri.exec(node.agent, command);

    /** Two pods that reach each other, the gateways and the node; the first is ended again. */
    async function podsTalk(targets: readonly string[]): Promise<void> {
      const [one, other] = [await node.cri.runPod("one"), await node.cri.runPod("other")];
      const { addresses, netns } = await node.cri.podStatus(other);
      expect(addresses).toHaveLength(2);
      const inOne = await node.cri.startContainer(one, "sleep 1000");
      for (const target of [...addresses, ...targets])
        expect(await node.cri.exec(inOne, `ping -c 1 -W 2 ${target}`)).toContain(" 0% packet loss");
      // Switches of the pod's own namespace, which are written by the same way.
      for (const [name, value] of Object.entries({ ndisc_notify: "1", accept_ra: "0" }))
        expect(await node.node.runIn(netns, `cat /proc/sys/net/ipv6/conf/eth0/${name}`), name).toBe(value);
      await node.cri.endPod(one);
      expect(await told("/pipette status")).toMatch(/^pods +2 +0 +\d+ +1\n/m);
      await node.cri.endPod(other);
    }

    test("the executables are installed by a container with no rights at all", async () => {
      expect(await node.install()).toEqual([expect.stringMatching(/^0: (.*\n)+.* done$/m)]);
    });

    test("is not privileged: three capabilities, no new ones, system calls filtered, nothing of its own to write to", async () => {
      expect(await node.startAgent(config)).toBe("ready");
      const status = await node.agentStatus();
      const mask = Object.values(capabilities).reduce((sum, bit) => sum | (1n << BigInt(bit)), 0n);
      for (const set of ["CapPrm", "CapEff", "CapBnd"]) expect(BigInt(`0x${status.get(set)}`), set).toBe(mask);
      expect([status.get("NoNewPrivs"), status.get("Seccomp")]).toEqual(["1", "2"]);
      for (const path of ["/file", "/proc/sys/kernel/hostname", "/etc/pipette/agent.yaml"])
        await expect(told(`/bin/busybox touch ${path}`), path).rejects.toThrow(
          /Read-only file system|Permission denied/,
        );
    });

    test("turns forwarding on, hides its pods, and gives them their network", async () => {
      await networkReady();
      for (const family of ["ipv4/ip_forward", "ipv6/conf/all/forwarding"])
        expect(await node.node.run(`cat /proc/sys/net/${family}`), family).toBe("1");
      for (const name of ["accept_ra", "accept_redirects"])
        expect(await node.node.run(`cat /proc/sys/net/ipv6/conf/pipette0/${name}`), name).toBe("0");
      expect(await node.node.run("nft list table inet pipette-pipette0")).toContain("masquerade");
      await podsTalk(gateways);
      expect(await told("/pipette doctor")).toContain("all agree");
      expect(await told("/pipette status")).toContain("no problems");
      // It sees the plugins of the node from its container.
      expect(await told("/bin/busybox cat /etc/cni/net.d/10-pipette.conflist")).toContain('"type": "portmap"');
    });

    test("takes its pods over when it is started anew, and ends those that have gone meanwhile", async () => {
      const [stays, goes] = [await node.cri.runPod("stays"), await node.cri.runPod("goes")];
      await node.endAgent();
      await node.cri.endPod(goes);
      expect(await node.startAgent(config)).toBe("ready");
      expect(node.agentLog()).toMatch(/"reconciled".*"adopted":1,"finished":1/);
      await networkReady();
      expect(await told("/pipette doctor")).toContain("all agree");
      await node.cri.endPod(stays);
      await node.endAgent();
    });

    /** The container with something less. */
    const lesser = (change: (container: ManifestContainer) => Partial<ManifestContainer>): ManifestContainer => ({
      ...node.container,
      ...change(node.container),
    });
    const without = (capability: string): ManifestContainer =>
      lesser(({ securityContext }) => {
        const add = securityContext.capabilities?.add?.filter((name) => name !== capability) ?? [];
        return { securityContext: { ...securityContext, capabilities: { drop: ["ALL"], add } } };
      });

    test("needs each of them: less is not enough", async () => {
      expect(await node.startAgent(config, without("NET_ADMIN"))).toContain("EPERM");
      // Without NET_RAW only other nodes are not asked, where the system does not let everybody.
      expect(await node.startAgent(config, without("NET_RAW"))).toBe("ready");
      await node.endAgent();
      expect(await node.startAgent(config, without("SYS_ADMIN"))).toBe("ready");
      await networkReady();
      await expect(node.cri.runPod("none")).rejects.toThrow(/cannot enter the network namespace .* EPERM/);
      await node.endAgent();
    });

    test("needs the node's switches below /proc/sys/net, mounted", async () => {
      await node.node.run("sysctl -q -w net.ipv4.ip_forward=0");
      const bare = lesser(({ volumeMounts }) => ({
        volumeMounts: volumeMounts.filter(({ name }) => name !== "sysctl"),
      }));
      expect(await node.startAgent(config, bare)).toContain("cannot be written (EROFS)");
      expect(await node.startAgent(config)).toBe("ready");
      expect(await node.node.run("cat /proc/sys/net/ipv4/ip_forward")).toBe("1");
      await node.endAgent();
    });

    test("a pod of the removal, with fewer rights, leaves the node clean once no agent runs, and says what it leaves", async () => {
      const removal = daemonPod("pipette-uninstall.yaml", "pipette-uninstall");
      expect(await node.startAgent(config)).toBe("ready");
      await networkReady();
      await node.cri.runPod("stays");
      const ours = async () =>
        (
          await Promise.all(
            ["ip -o link", "nft list tables", "ls /var/lib/pipette"].map((command) => node.node.run(command)),
          )
        ).join("\n");
      const before = await ours();
      for (const what of ["pipette0", "table inet pipette-pipette0", "table bridge pipette-pipette0", "leases.db"])
        expect(before).toContain(what);
      // Before anything is touched.
      expect(await node.install(removal)).toEqual([
        expect.stringMatching(/^1: .*runs as process \d+, wanted it stopped/),
      ]);
      expect(await node.cri.exec(node.agent, "/pipette status")).toContain("no problems");
      await node.endAgent();
      const [said = ""] = await node.install(removal);
      expect(said).toMatch(/^0: /);
      for (const what of [
        /pods interfaces of network "pods" undone/,
        /bridge "pipette0" undone/,
        /table "bridge pipette-pipette0" undone/,
      ])
        expect(said).toMatch(what);
      expect(await ours()).not.toMatch(/pipette|leases|veth/);
      expect(readdirSync(node.placeOf("/opt/cni/bin")).sort()).toEqual(["loopback", "portmap"]);
      // The directory stays, since it was mounted.
      expect(await node.node.run("ls -A /usr/libexec/pipette")).toBe("");
      expect(readdirSync(node.placeOf("/etc/cni/net.d"))).toEqual([]);
      expect(await node.node.run("ls -A /var/run/pipette")).toBe("");
      const { id, log } = await node.startBeside(removal, "left");
      await eventually(() => log().includes("is mounted here"), "what is left");
      expect((await node.cri.containerStatus(id)).state).toBe("CONTAINER_RUNNING");
      await node.cri.endContainer(id, 10);
    });
  },
);

describeWith(
  "an agent of Open vSwitch in a container with the rights that the DaemonSet asks for",
  ["root", "containerd", "cni-plugins", "gcc", "busybox", "nft", "openvswitch"],
  () => {
    test("makes the bridge, gives pods their network, and takes them over when it is started anew", async () => {
      await using node = await ConfinedNode.start();
      using namespace = NetworkNamespace.at(`/proc/${node.node.firstPid}/ns/net`);
      await using vswitch = await OpenVswitch.start("both", { parent: node.node.directory, within: namespace.within });
      const ovs = {
        database: `unix:${vswitch.socket}`,
        datapath: "netdev",
        nodeAddresses: ["192.0.2.1"],
      };
      const networks = [{ name: "pods", subnets: ["10.93.0.0/24", "fd93::/64"], bridge: "br-int" }];
      const agentConfig = { dataPath: "ovs", networks, ovs, janitorIntervalMs: 500 };
      await node.install();
      for (const pods of [0, 1]) {
        expect(await node.startAgent(agentConfig, node.container, [vswitch.directory])).toBe("ready");
        expect(node.agentLog()).toContain(`"adopted":${pods}`);
        await eventually(async () => (await node.cri.networkProblem()) === undefined, "containerd to find its network");
        const id = await node.cri.runPod(`pod-${pods}`);
        const inside = await node.cri.startContainer(id, "sleep 1000");
        for (const target of ["10.93.0.1", "fd93::1"])
          expect(await node.cri.exec(inside, `ping -c 1 -W 2 ${target}`)).toContain(" 0% packet loss");
        expect(await node.cri.exec(node.agent, "/pipette status")).toContain("no problems");
        await node.endAgent();
      }
    });
  },
);
