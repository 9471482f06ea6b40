import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { compileExecutables } from "../conformance/plugin.ts";
import { eventually } from "../support/agent-process.ts";
import { forgetNeighbours } from "../support/forget-neighbours.ts";
import { arp, EtherType, ethernet } from "../support/frames/frame.ts";
import { NetworkNamespace } from "../support/network-namespace.ts";
import { describeWith } from "../support/requires.ts";
import { UdpEar } from "../support/udp-ear.ts";
import { datagram } from "./forbidden-frames.ts";
import { external } from "./lab/addresses.ts";
import type { LabPod } from "./lab/lab-pod.ts";
import { macOf, openRawPod, type RawPod } from "./lab/raw-pod.ts";
import { SingleNode } from "./single-node.ts";

const families = [4, 6] as const;
const ports = { lies: 7777, truth: 7778, last: 7779 } as const;
const virtualMac = "aa:bb:cc:dd:ee:ff";

/**
 * Open vSwitch in user space reads a copy of what comes in by an interface; the node's kernel has the other one. Nothing
 * but the agent keeps it from making use of that.
 */
describeWith("a node whose switch is in user space", ["root", "openvswitch", "nft"], () => {
  describe.each([
    ["encap", "outer-bridge"],
    ["noEncap", "uplink"],
    ["networkPolicyOnly", "outer-bridge"],
  ] as const)("%s, its own interface on the %s", (mode, nic) => {
    let single: SingleNode;
    let pod: LabPod;
    let raw: RawPod;
    let hostMac: string;

    beforeAll(async () => {
      compileExecutables();
      single = await SingleNode.start({ mode }, nic);
      pod = await single.node.addPod("a");
      raw = await openRawPod(pod);
      hostMac = await macOf(single.node.namespace, hostEnd());
    });
    afterAll(async () => {
      raw?.[Symbol.dispose]();
      await single?.[Symbol.asyncDispose]();
    });

    const hostEnd = (): string => pod.result.interfaces[1]?.name ?? "";

    const send = (to: string, port: number, lower: string, from = raw[to.includes(":") ? 6 : 4]): void =>
      raw.link.send(datagram({ from: raw.mac, to: lower }, { from, to }, [40_000, port], [1, 2, 3]));

    /** The MACs of all answers to two questions for one address: the second one's come behind all of the first one's. */
    async function answerers(target: string): Promise<readonly string[]> {
      const ask = { operation: 1, senderMac: raw.mac, sender: raw[4], target } as const;
      const ends = { from: raw.mac, to: "ff:ff:ff:ff:ff:ff" };
      raw.link.received();
      const macs: string[] = [];
      for (let asked = 1; asked <= 2; asked++) {
        raw.link.send(ethernet(ends, EtherType.arp, arp(ask)));
        await expect
          .poll(() => {
            for (const frame of raw.link.received())
              if (((frame[12] ?? 0) << 8) + (frame[13] ?? 0) === EtherType.arp && frame[21] === 2)
                macs.push([...frame.subarray(22, 28)].map((byte) => byte.toString(16).padStart(2, "0")).join(":"));
            return macs.length;
          })
          .toBeGreaterThanOrEqual(asked);
      }
      return macs;
    }

    /** Addresses that the switch takes from no pod: one that nobody has, none at all, and the node's own. */
    const lies = (family: 4 | 6): readonly string[] =>
      family === 4
        ? ["10.10.1.77", "0.0.0.0", single.node.addresses[0]]
        : ["fd10:0:0:1::77", "::", single.node.addresses[1]];

    /** How many datagrams the node has heard in each family: of lies past the switch, and of two by way of the gateway. */
    async function heard(): Promise<readonly (readonly number[])[]> {
      const counts: number[][] = [];
      for (const family of families) {
        const to = single.node.addresses[family === 4 ? 0 : 1];
        using lied = await UdpEar.open(single.node.namespace, to, ports.lies);
        using told = await UdpEar.open(single.node.namespace, to, ports.truth);
        using last = await UdpEar.open(single.node.namespace, to, ports.last);
        for (const lie of lies(family)) send(to, ports.lies, hostMac, lie);
        for (const port of [ports.truth, ports.truth, ports.last]) send(to, port, raw.gatewayMac);
        // What was sent before has come too then, or never will.
        await expect.poll(() => last.heard).toBeGreaterThan(0);
        counts.push([lied.heard, told.heard]);
      }
      return counts;
    }
    const once = [
      [0, 2],
      [0, 2],
    ];

    // Where another plugin routes, the switch answers for everybody, and passes on to the node.
    const isRouted = mode === "networkPolicyOnly";
    const asked = (): string => (isRouted ? single.node.addresses[0] : (pod.gateways[0] ?? ""));
    const theSwitch = (): readonly string[] => Array<string>(2).fill(isRouted ? virtualMac : raw.gatewayMac);

    test("who asks for the gateway hears the gateway, and nobody else", async () => {
      expect(await answerers(asked())).toEqual(theSwitch());
    });

    test("what a pod sends to the node arrives once, and only by way of the switch", async () => {
      expect(await heard()).toEqual(once);
    });

    test("what a pod sends to the world outside past the switch does not leave the node", async () => {
      const { namespace } = single.underlay;
      for (const family of families) {
        const to = external[family === 4 ? 0 : 1];
        using ear = await UdpEar.open(namespace, to, ports.lies);
        for (const lie of lies(family)) send(to, ports.lies, hostMac, lie);
        await heard();
        expect(ear.heard).toBe(0);
      }
    });

    test("nothing is answered twice, in fragments neither", async () => {
      const { node, underlay } = single;
      const ways = [
        ...[...node.addresses, ...(isRouted ? [] : pod.gateways)].map((to) => [pod.namespace, to] as const),
        ...node.addresses.map((to) => [underlay.namespace, to] as const),
      ];
      for (const [from, to] of ways)
        for (const bytes of [56, 4000]) {
          const output = await from.run(`ping -n -c 3 -i 0.05 -w 3 -s ${bytes} ${to}`);
          // It sends one more where an answer is late.
          expect(output).toMatch(/ ([3-9]|\d\d) received/);
          expect(output).not.toContain("duplicates");
        }
    });

    test("an interface that comes to somebody's bridge is the switch's, and the node's again when it has left that", async () => {
      const { namespace, vswitch } = single.node;
      using far = NetworkNamespace.create();
      await namespace.ip(`link add near type veth peer name eth0 netns ${far.path}`, "link set near up");
      await far.ip("addr add 10.99.0.2/24 dev eth0", "link set eth0 up");
      const other = ["add-br", "br-other", "--", "set", "Bridge", "br-other", "datapath_type=netdev"];
      await vswitch.vsctl(...other, "--", "add-port", "br-other", "near");
      await namespace.ip("addr add 10.99.0.1/24 dev br-other", "link set br-other up");
      const hears = async (): Promise<number> => {
        const { stdout } = await far.start("ping -n -c 3 -i 0.05 -w 2 10.99.0.1".split(" ")).ended;
        return (stdout.match(/bytes from/g) ?? []).length;
      };
      // Twice each as long as nobody has told the kernel.
      await eventually(async () => (await hears()) === 3 && (await hears()) === 3, "each ping to be answered once");
      // Also while there is no agent that would hear of it.
      await single.node.agent.end();
      await vswitch.vsctl("del-port", "br-other", "near");
      await vswitch.vsctl("del-br", "br-other");
      await namespace.ip("addr add 10.99.0.1/24 dev near");
      await forgetNeighbours(far, "dev eth0");
      expect(await hears()).toBe(3);
      await namespace.ip("link del near");
      await single.node.startAgent();
    });

    test("an agent that is killed and starts again leaves it as it is all the time", async () => {
      const { node, underlay } = single;
      const pinging = underlay.namespace.start(`ping -n -i 0.01 ${node.addresses[0]}`.split(" "));
      await node.agent.end("SIGKILL");
      await node.startAgent();
      process.kill(pinging.pid, "SIGINT");
      const { stdout } = await pinging.ended;
      const answered = [...stdout.matchAll(/icmp_seq=(\d+) ttl/g)].map(([, number]) => Number(number));
      expect(answered.length).toBeGreaterThan(2);
      // Each once, up to the last one: behind that another may be on its way when they are ended.
      expect(answered).toEqual(answered.map((_, i) => i + 1));
    });

    test("rules that somebody has taken away come back, and until then nobody else answers either", async () => {
      const { node } = single;
      await node.agent.end();
      await node.namespace.run("nft flush ruleset");
      expect(await answerers(asked())).toEqual(theSwitch());
      await node.startAgent();
      expect(await heard()).toEqual(once);
      await node.namespace.run("nft flush ruleset");
      await eventually(async () => Bun.deepEquals(await heard(), once), "the rules to come back");
      // It says so once it has done it.
      await eventually(
        () => node.agent.stderr.includes('in the table \\"inet pipette-beside-pipette-gw0\\"'),
        "the agent's word of it",
      );
    });

    test("pods of a release without them are kept to the switch from the next start on", async () => {
      const { node } = single;
      await node.agent.end();
      await node.namespace.run("nft flush ruleset");
      await node.namespace.ip(`link set ${hostEnd()} group default`);
      const options = ["arp_ignore", "rp_filter"].map((name) => [`ipv4/conf/${hostEnd()}/${name}`, 0] as const);
      node.namespace.sysctl({ ...Object.fromEntries(options), [`ipv4/conf/${hostEnd()}/forwarding`]: 1 });
      // Else what follows would show nothing.
      expect(await answerers(asked())).toContain(hostMac);
      await node.startAgent();
      expect(await answerers(asked())).toEqual(theSwitch());
      expect(await heard()).toEqual(once);
    });
  });
});
