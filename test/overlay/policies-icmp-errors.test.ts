import { afterAll, beforeAll, expect, test } from "vitest";
import type { NodePolicies, PodRule } from "../../agent/datapath/policies.ts";
import { ownerKey } from "../../shared/cni/owner-key.ts";
import { parseIp } from "../../shared/net/ip.ts";
import type { Direction } from "../../shared/policy/mod.ts";
import { eventually } from "../support/eventually.ts";
import { bytes, EtherType, ethernet, icmp6, ipv4, ipv6, Protocol, u16, u32, udp } from "../support/frames/frame.ts";
import { icmp4 } from "../support/frames/icmp.ts";
import { RawLink } from "../support/frames/raw-link.ts";
import { describeWith } from "../support/requires.ts";
import { ServiceNode } from "./service-node.ts";

const policy = { namespace: "default", name: "p", uid: "u" };
const icmp = 1;
const [asking, asked] = [4000, 53];
/** Behind what arrives nothing else is under way any more. */
const strayMs = 300;

const sides = [
  ["the one that has asked", 0, "egress"],
  ["the one that was asked", 1, "ingress"],
] as const;

describeWith("ICMP errors about connections of isolated pods", ["root", "openvswitch"], () => {
  const stack = new AsyncDisposableStack();
  let node: ServiceNode;
  let links: readonly RawLink[];

  beforeAll(async () => {
    node = stack.use(await ServiceNode.start(2));
    links = await Promise.all(node.pods.map(({ namespace }) => RawLink.open(namespace, "eth0")));
    for (const link of links) stack.use(link);
  });
  afterAll(() => stack.disposeAsync());

  const heard: string[][] = [[], []];
  /** All frames that have come to a pod, in hexadecimal. */
  const heardBy = (i: number): readonly string[] => {
    for (const frame of links[i]?.received() ?? []) heard[i]?.push(frame.toHex());
    return heard[i] ?? [];
  };
  const macOf = (i: number): string => `0a:00:0a:0a:01:0${i + 2}`;
  const from = (i: number) => ({ from: macOf(i), to: macOf(1 - i) });

  /** Pod 0 may ask pod 1 by UDP, and nothing else. */
  async function enforce(): Promise<void> {
    const rule = (id: string, direction: Direction, self: number): PodRule => ({
      ...{ id, policy, direction, targets: [node.pod(self).owner] },
      peers: {
        sets: [{ name: id, ips: ([4, 6] as const).map((family) => parseIp(node.pod(1 - self)[family])!) }],
        blocks: [],
      },
      ports: [{ protocol: "UDP", first: asked }],
    });
    const rules = [rule("out", "egress", 0), rule("in", "ingress", 1)];
    const wanted: NodePolicies = {
      rules: new Map(rules.map((one) => [one.id, one])),
      isolated: new Map(
        node.pods.map(({ owner }) => [ownerKey(owner), { owner, directions: ["ingress", "egress"], by: [policy] }]),
      ),
    };
    expect(await node.policies.enforce(wanted)).toEqual([]);
  }

  test.each(([4, 6] as const).flatMap((family) => sides.map((side) => [family, ...side] as const)))(
    "IPv%i: %s hears of the path's MTU, and of no connection that there is not",
    async (family, _, hears, direction) => {
      await enforce();
      const [ends, back] = [0, 1].map((i) => ({ from: node.pod(i)[family], to: node.pod(1 - i)[family] }));
      if (ends === undefined || back === undefined) throw new Error("There are no pods");
      const [etherType, packetOf] =
        family === 4 ? ([EtherType.ipv4, ipv4] as const) : ([EtherType.ipv6, ipv6] as const);
      const arrive = async (i: number, what: Uint8Array): Promise<boolean> => {
        const hex = what.toHex();
        return await eventually(() => heardBy(i).some((frame) => frame.includes(hex)), "the packet", 5_000).then(
          () => true,
          () => false,
        );
      };
      const port = asking + family * 10 + hears;
      const question = packetOf(ends, Protocol.udp, udp(ends, { from: port, to: asked }, [1]));
      const answer = packetOf(back, Protocol.udp, udp(back, { from: asked, to: port }, [2]));
      links[0]?.send(ethernet(from(0), etherType, question));
      expect(await arrive(1, question.subarray(-9))).toBe(true);
      links[1]?.send(ethernet(from(1), etherType, answer));
      expect(await arrive(0, answer.subarray(-9))).toBe(true);
      // Each tells the other that what it has sent was too long: of its connection, and of one that there is not.
      const [way, sent] = hears === 0 ? [back, question] : [ends, answer];
      const tooBig = (about: Uint8Array): Uint8Array =>
        family === 4
          ? packetOf(way, icmp, icmp4(3, bytes(u16(0), u16(1280), about), 4))
          : packetOf(way, Protocol.icmp6, icmp6(way, 2, bytes(u32(1280), about)));
      const other = hears === 0 ? ends : back;
      const unknown = packetOf(other, Protocol.udp, udp(other, { from: 9, to: 10 }, [3]));
      links[1 - hears]?.send(ethernet(from(1 - hears), etherType, tooBig(unknown)));
      links[1 - hears]?.send(ethernet(from(1 - hears), etherType, tooBig(sent)));
      expect(await arrive(hears, tooBig(sent).subarray(-40)), direction).toBe(true);
      await Bun.sleep(strayMs);
      const ofUnknown = unknown.subarray(-9).toHex();
      expect(heardBy(hears).filter((frame) => frame.includes(ofUnknown))).toEqual([]);
    },
  );
});
