import { afterAll, beforeAll, expect, test } from "vitest";
import type { DataPath } from "../../agent/datapath/datapath.ts";
import { bytes, EtherType, ethernet, ipv4, ipv6, Protocol, u16, u32, udp } from "../support/frames/frame.ts";
import { RawLink } from "../support/frames/raw-link.ts";
import { NetworkNamespace } from "../support/network-namespace.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { describeWith } from "../support/requires.ts";
import { openDataPath } from "./bridge-fixture.ts";
import { gatewayOf, type WiredPod, wirePod } from "./bridge-pods.ts";

const outside4 = "192.0.2.2";
const outside6 = "2001:db8::2";
/** A reset out of nowhere: connection tracking calls it invalid, and so translates nothing. */
const reset = bytes(u16(33_000), u16(33_001), u32(7), u32(9), [0x50, 0x04], u16(0), [0, 0, 0, 0]);
/** UDP-Lite (RFC 3828) and DCCP: protocols that few kernels translate by more than the address, if at all. */
const others = [136, 33] as const;

describeWith("what leaves a node that masquerades", ["root", "nft"], () => {
  let sandbox: NetworkSandbox;
  let dataPath: DataPath;
  let pod: WiredPod;
  let gatewayMac: string;
  let outside: string;

  beforeAll(async () => {
    sandbox = await NetworkSandbox.enter("pt-un-");
    dataPath = openDataPath({ masquerade: true });
    await dataPath.start();
    pod = await wirePod(sandbox, dataPath, "a", 10);
    gatewayMac = (await gatewayOf(sandbox)).mac;
    outside = await sandbox.addPod("outside");
    const name = outside.slice(outside.lastIndexOf("/") + 1);
    await sandbox.node(`ip link add up0 type veth peer name up1 netns ${name}`);
    for (const command of ["addr add 192.0.2.1/24 dev up0", "addr add 2001:db8::1/64 dev up0 nodad", "link set up0 up"])
      await sandbox.node(`ip ${command}`);
    for (const command of [
      `addr add ${outside4}/24 dev up1`,
      `addr add ${outside6}/64 dev up1 nodad`,
      "link set up1 up",
      "route add 10.77.0.0/24 via 192.0.2.1",
      "route add fd77::/64 via 2001:db8::1",
    ])
      await sandbox.pod(outside, `ip ${command}`);
  });
  afterAll(async () => {
    pod?.wire[Symbol.dispose]();
    for (const { owner } of (await dataPath?.list()) ?? []) await dataPath.detach(owner);
    await dataPath?.[Symbol.asyncDispose]();
    await sandbox[Symbol.asyncDispose]();
  });

  test.each([4, 6] as const)(
    "IPv%i: has the node's address or stays, whatever connection tracking makes of it",
    async (family) => {
      const ends = family === 4 ? { from: pod.ip4, to: outside4 } : { from: pod.ip6, to: outside6 };
      const packet = (protocol: number, payload: Uint8Array): Uint8Array =>
        ethernet(
          { from: pod.mac, to: gatewayMac },
          family === 4 ? EtherType.ipv4 : EtherType.ipv6,
          family === 4 ? ipv4(ends, protocol, payload) : ipv6(ends, protocol, payload),
        );
      using namespace = NetworkNamespace.at(outside);
      using wire = await RawLink.open(namespace, "up1");
      pod.wire.send(packet(Protocol.tcp, reset));
      for (const protocol of others) pod.wire.send(packet(protocol, new Uint8Array(24)));
      // Sent last, by the same way.
      const last = bytes([0x70, 0x69, 0x70, 0x65, 0x74, 0x74, 0x65, family]);
      pod.wire.send(packet(Protocol.udp, udp(ends, { from: 5000, to: 9 }, last)));
      const own = family === 4 ? Buffer.from([10, 77, 0, 10]) : Buffer.from("fd770000000000000000000000000010", "hex");
      const seen: Uint8Array[] = [];
      await expect
        .poll(() => {
          seen.push(...wire.received());
          return seen.some((frame) => Buffer.from(frame).includes(last));
        })
        .toBe(true);
      expect(seen.filter((frame) => Buffer.from(frame).includes(own))).toEqual([]);
    },
  );

  test("who reaches a pod under its own address is answered from it", async () => {
    // A link that is new tries its addresses out for a second or two.
    for (const address of [pod.ip4, pod.ip6]) await expect.poll(() => sandbox.ping(outside, address)).toBe(true);
  });
});
