import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { kernelNearlyFull } from "../../agent/datapath/linux/conntrack-usage.ts";
import { EtherType, ethernet, ipv4, Protocol, udp } from "../support/frames/frame.ts";
import { RawLink } from "../support/frames/raw-link.ts";
import { NetworkNamespace } from "../support/network-namespace.ts";
import { describeWith } from "../support/requires.ts";

const macs = { from: "02:00:00:00:00:01", to: "02:00:00:00:00:02" };
const ends = { from: "10.9.9.1", to: "10.9.9.2" };
/** Offsets in an Ethernet frame with a UDP datagram in IPv4. */
const sourcePort = 34;
const targetPort = 36;
const udpChecksum = 40;

describeWith("a node's own table of connections", ["linux", "root", "nft"], () => {
  const stack = new DisposableStack();
  let node: NetworkNamespace;
  let sender: NetworkNamespace;

  beforeAll(async () => {
    node = stack.use(NetworkNamespace.create());
    sender = stack.use(NetworkNamespace.create());
    await node.ip(
      `link add ext address ${macs.to} type veth peer name eth0 address ${macs.from} netns ${sender.path}`,
      "link set ext up",
      `addr add ${ends.to}/24 dev ext`,
    );
    await sender.ip("link set eth0 up");
    // Nothing is answered; whoever looks at the state of a connection has it tracked.
    await node.run(
      "nft -f -",
      "table inet t { chain in { type filter hook input priority 0; ct state new accept; }; chain out { type filter hook output priority 0; drop; }; }",
    );
  });
  afterAll(() => stack.dispose());

  const value = (name: string): number =>
    node.within(() => Number(readFileSync(`/proc/sys/net/netfilter/nf_conntrack_${name}`, "utf8")));

  test("is said to be nearly full from four fifths on, and not before", async () => {
    using link = await RawLink.open(sender, "eth0");
    const frame = ethernet(macs, EtherType.ipv4, ipv4(ends, Protocol.udp, udp(ends, { from: 1, to: 1 }, [])));
    // None: what the sums were made of changes from one to the next.
    frame.fill(0, udpChecksum, udpChecksum + 2);
    const view = new DataView(frame.buffer);
    let sent = 0;
    const open = async (most: number): Promise<void> => {
      for (const until = sent + most; sent < until; sent++) {
        view.setUint16(sourcePort, 1 + (sent % 60_000));
        view.setUint16(targetPort, 1 + Math.floor(sent / 60_000));
        link.send(frame);
        // The kernel takes what waits.
        if (sent % 500 === 0) await Bun.sleep(0);
      }
    };
    const most = value("max");
    expect(node.within(kernelNearlyFull)).toEqual([]);
    await open(1_000);
    await expect.poll(() => value("count")).toBeGreaterThan(500);
    expect(node.within(kernelNearlyFull)).toEqual([]);
    // Each lasts for half a minute; some frames get lost where the machine is busy.
    while (value("count") < most * 0.8 && sent < 4 * most) await open(10_000);
    expect(node.within(kernelNearlyFull)).toEqual([
      expect.stringMatching(
        new RegExp(`^connection tracking of the node's kernel .* holds \\d+ of ${most} connections: when it is full`),
      ),
    ]);
  });
});
