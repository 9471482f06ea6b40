import { expect, test } from "vitest";
import { NetworkNamespace } from "../network-namespace.ts";
import { describeWith } from "../requires.ts";
import {
  address,
  arp,
  bytes,
  checksum,
  EtherType,
  ethernet,
  icmp6,
  ipv4,
  ipv6,
  Protocol,
  tagged,
  udp,
} from "./frame.ts";
import { RawLink } from "./raw-link.ts";

describeWith("raw frames", ["linux", "root"], () => {
  test("what one end of a cable sends, the other gets, byte for byte; and the kernel believes checksums", async () => {
    using left = NetworkNamespace.create();
    using right = NetworkNamespace.create();
    await left.ip(`link add la type veth peer name lb netns ${right.path}`, "link set la up");
    await right.ip("link set lb up", "address add 10.9.9.2/24 dev lb", "address add fd99::2/64 dev lb nodad");
    using sender = await RawLink.open(left, "la");
    using receiver = await RawLink.open(right, "lb");
    const ends = { from: "02:00:00:00:00:01", to: "ff:ff:ff:ff:ff:ff" };
    const asked = arp({ operation: 1, senderMac: ends.from, sender: "10.9.9.1", target: "10.9.9.2" });
    const frame = ethernet(ends, EtherType.arp, asked);
    sender.send(frame);
    expect(receiver.received().map((one) => Buffer.from(one).toString("hex"))).toContain(
      Buffer.from(frame).toString("hex"),
    );
    const answers = () => sender.received().filter((one) => one[12] === 0x08 && one[13] === 0x06);
    await expect.poll(() => answers().length).toBeGreaterThan(0);
    // An answer comes to a solicitation only if its checksum is right.
    const nd = { from: "fe80::1", to: "ff02::1:ff00:2" };
    const body = bytes([0, 0, 0, 0], address("fd99::2"), [1, 1, 2, 0, 0, 0, 0, 1]);
    const solicitation = ipv6(nd, Protocol.icmp6, icmp6(nd, 135, body), 255);
    sender.send(ethernet({ from: ends.from, to: "33:33:ff:00:00:02" }, EtherType.ipv6, solicitation));
    await expect.poll(() => sender.received().some((one) => one[12] === 0x86 && one[54] === 136)).toBe(true);
  });

  test("headers are summed, and tags lie outside", () => {
    const ends = { from: "10.0.0.1", to: "10.0.0.2" };
    const packet = ipv4(ends, Protocol.udp, udp(ends, { from: 1, to: 2 }, [1, 2, 3]));
    expect(checksum(packet.subarray(0, 20))).toBe(0);
    const plain = ethernet({ from: "02:00:00:00:00:01", to: "02:00:00:00:00:02" }, EtherType.ipv4, packet);
    expect([...tagged(tagged(plain, 5), 7, EtherType.qinq).subarray(12, 22)]).toEqual([
      0x88, 0xa8, 0, 7, 0x81, 0, 0, 5, 8, 0,
    ]);
  });
});
