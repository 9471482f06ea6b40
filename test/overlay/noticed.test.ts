import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { compileExecutables } from "../conformance/plugin.ts";
import { describeWith } from "../support/requires.ts";
import { scratchDir } from "../support/scratch-dir.ts";
import type { LabNode } from "./lab/lab-node.ts";
import type { LabPod } from "./lab/lab-pod.ts";
import { answers } from "./lab/reach.ts";
import { SingleNode, subnets } from "./single-node.ts";

const own = { name: "n1", addresses: ["172.30.0.1", "fd30:a::1"], subnets };
const peer = { name: "peer", addresses: ["172.30.0.9", "fd30:a::9"], subnets: ["10.60.0.0/24", "fd10:0:0:60::/64"] };

/** Far below the minute after which each is looked for in any case, on a machine that has other work too. */
const soon = { timeout: 25_000, interval: 50 };

interface Sight {
  readonly node: LabNode;
  readonly pod: LabPod;
  /** The node's interface to its pods. */
  readonly device: string;
  /** The pod's end on the node. */
  readonly port: string;
}

interface Theft {
  readonly what: string;
  /** What somebody does. */
  take(sight: Sight): Promise<unknown>;
  /** What is there before and after. */
  look(sight: Sight): Promise<string>;
}

const ip = (what: string, command: (sight: Sight) => string, look: (sight: Sight) => string): Theft => ({
  what,
  take: (sight) => sight.node.namespace.ip(command(sight)),
  look: (sight) => sight.node.namespace.run(look(sight)),
});

const nft = (what: string, command: (sight: Sight) => string, look: (sight: Sight) => string): Theft => ({
  what,
  take: (sight) => sight.node.namespace.run(`nft ${command(sight)}`),
  // Chains and sets are in another order once they are made again.
  look: async (sight) => (await sight.node.namespace.run(`nft -s list ${look(sight)}`)).split("\n").sort().join("\n"),
});

/** @param away what somebody writes */
const sysctl = (what: string, key: (sight: Sight) => string, away: string): Theft => ({
  what,
  take: (sight) => sight.node.namespace.run(`sysctl -qw ${key(sight)}=${away}`),
  look: (sight) => sight.node.namespace.run(`sysctl -n ${key(sight)}`),
});

/** Of what the kernel says nothing of, the look that something else brings about. */
const unsaid = (theft: Theft): Theft => ({
  ...theft,
  take: async (sight) => {
    await theft.take(sight);
    await sight.node.namespace.ip("route del 10.60.0.0/24 proto 112");
  },
});

const gatewayAddresses = ({ device }: Sight): string => `ip -o addr show dev ${device} scope global`;

const onBoth: readonly Theft[] = [
  nft(
    "the table of packet rules",
    ({ device }) => `delete table inet pipette-${device}`,
    ({ device }) => `table inet pipette-${device}`,
  ),
  nft(
    "who is present",
    ({ device, pod }) => `delete element inet pipette-${device} pods4 { ${pod.address(4)} }`,
    ({ device }) => `set inet pipette-${device} pods4`,
  ),
  nft(
    "all packet rules",
    () => "flush ruleset",
    ({ device }) => `table inet pipette-${device}`,
  ),
  ip("a gateway address", ({ device }) => `addr del 10.10.1.1/24 dev ${device}`, gatewayAddresses),
  ip("an IPv6 gateway address", ({ device }) => `addr del fd10:0:0:1::1/64 dev ${device}`, gatewayAddresses),
  ip(
    "a route",
    () => "route del 10.60.0.0/24 proto 112",
    () => "ip route show 10.60.0.0/24",
  ),
  ip(
    "an IPv6 route",
    () => "route del fd10:0:0:60::/64 proto 112",
    () => "ip -6 route show fd10:0:0:60::/64",
  ),
  sysctl("IPv4 forwarding", () => "net.ipv4.ip_forward", "0"),
  sysctl("IPv6 forwarding", () => "net.ipv6.conf.all.forwarding", "0"),
  sysctl("the gateway's forwarding", ({ device }) => `net.ipv4.conf.${device}.forwarding`, "0"),
  unsaid(sysctl("deafness to routers", ({ device }) => `net.ipv6.conf.${device}.accept_ra`, "2")),
  unsaid(sysctl("deafness to redirects", ({ device }) => `net.ipv4.conf.${device}.accept_redirects`, "1")),
];

const onBridge: readonly Theft[] = [
  nft(
    "the table about ports",
    () => "delete table bridge pipette-pipette0",
    () => "table bridge pipette-pipette0",
  ),
  ip(
    "the bridge's being up",
    () => "link set pipette0 down",
    () => "ip -o -br link show pipette0 up",
  ),
  ip(
    "the pod's port",
    ({ port }) => `link set ${port} nomaster`,
    ({ port }) => `ip -o -br link show ${port} master pipette0`,
  ),
  ip(
    "its being up",
    ({ port }) => `link set ${port} down`,
    ({ port }) => `ip -o -br link show ${port} up`,
  ),
  // Its ports, addresses and what is in the sets come back with it, under another index.
  ip(
    "the bridge",
    () => "link del pipette0",
    ({ port }) => `ip -o -br link show ${port} master pipette0`,
  ),
];

/** What else is on the switch comes back with it, such as the flows that name a meter. */
const ofctl = (what: string, command: (sight: Sight) => string): Theft => ({
  what,
  take: (sight) => {
    const [verb = "", ...args] = command(sight).split(" ");
    return sight.node.ofctl(verb, ...args);
  },
  look: async ({ node }) => {
    const meters = (await node.ofctl("dump-meters")).split("\n").slice(1);
    return [...(await node.flows()), ...meters].join("\n");
  },
});

const meterOf = async ({ node }: Sight): Promise<string> =>
  /meter=(\d+)/.exec(await node.ofctl("dump-meters"))?.[1] ?? "";

const onSwitch: readonly Theft[] = [
  unsaid(sysctl("the gateway's silence for others", ({ device }) => `net.ipv4.conf.${device}.arp_ignore`, "0")),
  ofctl("all flows", () => "del-flows"),
  ofctl("the flows to a pod", ({ pod }) => `del-flows ip,nw_dst=${pod.address(4)}`),
  ofctl("what a flow does", () => "mod-flows table=180,actions=drop"),
  ofctl("what flows are, by a foreign one", () => "add-flow table=0,priority=60000,actions=drop"),
  ofctl("the same with a cookie as ours", () => "add-flow cookie=0x1000000000005,priority=60000,actions=drop"),
  ofctl("all meters", () => "del-meters"),
  {
    ...ofctl("a meter's rate", () => ""),
    take: async (sight) => sight.node.ofctl("mod-meter", `meter=${await meterOf(sight)},pktps,bands=type=drop,rate=1`),
  },
];

const modes = [
  { name: "a kernel bridge", dataPath: "bridge", nic: "plain", ovs: {}, thefts: [...onBoth, ...onBridge] },
  {
    name: "Open vSwitch",
    dataPath: "ovs",
    nic: "outer-bridge",
    ovs: { mode: "noEncap" },
    thefts: [...onBoth, ...onSwitch],
  },
] as const;

/** The agent compares all of it once in a minute, and hears of what happens in between. */
describeWith("what somebody takes away is noticed at once", ["root", "nft", "openvswitch"], () => {
  beforeAll(compileExecutables);

  describe.each(modes)("$name", ({ dataPath, nic, ovs, thefts }) => {
    const stack = new AsyncDisposableStack();
    let sight: Sight;

    beforeAll(async () => {
      const file = join(stack.use(scratchDir()).path, "nodes.json");
      writeFileSync(file, JSON.stringify({ nodes: [own, peer] }));
      const more = { nodes: { registry: { type: "static", file } }, janitorIntervalMs: 60_000 };
      const single = stack.use(await SingleNode.ground({ ...ovs, nodeAddresses: undefined }, nic, more, dataPath));
      const { node } = single;
      await node.startAgent();
      const pod = await node.addPod("web");
      const port = pod.result.interfaces.find(({ name }) => name.startsWith("web-"))?.name ?? "";
      sight = { node, pod, device: node.gatewayDevice, port };
    });
    afterAll(() => stack.disposeAsync());

    test.each(thefts)("$what", async ({ take, look }) => {
      const before = await look(sight);
      expect(before).not.toBe("");
      {
        using _ = await sight.node.agent.held();
        await take(sight);
        expect(await look(sight).catch(() => "")).not.toBe(before);
      }
      await expect.poll(() => look(sight).catch(() => ""), soon).toBe(before);
      for (const address of sight.pod.addresses)
        await expect.poll(() => answers(sight.node.namespace, address, { seconds: 1 }), soon).toBe(true);
    });
  });
});
