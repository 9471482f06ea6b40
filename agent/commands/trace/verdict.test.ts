import { describe, expect, test } from "vitest";
import { answering, ip, recorded, recordedPorts } from "../../../test/fakes/recorded-trace.ts";
import type { Journey, Packet } from "./packet.ts";
import { verdictText } from "./report.ts";
import { parseTrace } from "./trace-text.ts";
import { trace } from "./tracer.ts";
import { nextCommand, verdictOf } from "./verdict.ts";

const packet: Packet = {
  inPort: 11,
  protocol: { t: "icmp" },
  source: { ip: ip("10.10.1.2"), mac: "0a:00:00:00:00:02" },
  destination: { ip: ip("10.10.1.3"), mac: "0a:00:00:00:00:03" },
};

const verdict = (text: string, of: Packet = packet) => verdictOf(parseTrace(text), of, recordedPorts);

describe("what becomes of a packet", () => {
  test("it is delivered to a pod of this node", () => {
    expect(verdict(recorded("same-node"))).toEqual({ t: "delivered", pod: "shop/db", port: "p2" });
    expect(verdict(recorded("service"))).toEqual({ t: "delivered", pod: "shop/db", port: "p2" });
    expect(verdict(recorded("from-tunnel"))).toEqual({ t: "delivered", pod: "shop/db", port: "p2" });
  });

  test("the spoof guard drops what does not come from the pod's address", () => {
    const spoofed = { ...packet, source: { ...packet.source, ip: ip("10.10.1.99") } };
    expect(verdictText(verdict(recorded("spoofed"), spoofed))).toBe(
      "dropped in table SpoofGuard, which lets only packets from a port's own address and MAC pass: spoof guard: port p1 may not send from 10.10.1.99 with MAC 0a:00:00:00:00:02",
    );
  });

  test("a port that is not there, a flow that drops, a table that is none of ours", () => {
    const pass = (hop: string, end = "drop") =>
      `Flow: icmp\n\nbridge("br-int")\n${hop}\nFinal flow: unchanged\nDatapath actions: ${end}\n`;
    expect(verdict(pass("240. reg0=0x1, priority 200\n    output:7\n     >> Nonexistent output port"))).toEqual({
      t: "dropped",
      table: "Output",
      reason: "Nonexistent output port",
    });
    expect(verdict(pass("80. ct_state=+inv+trk,ip, priority 200\n    drop"))).toEqual({
      t: "dropped",
      table: "ConntrackState",
      reason: "connection tracking takes it for a packet that no connection has",
    });
    expect(verdict(pass("40. icmp6,icmp_type=134, priority 205\n    drop"))).toEqual({
      t: "dropped",
      table: "SpoofGuard",
      reason: "flow of priority 205: icmp6, icmp_type=134",
    });
    const reasonOf = (hop: string) => verdict(pass(`${hop}, priority 200\n    drop`));
    for (const [hop, reason] of [
      ["0. vlan_tci=0x1000/0x1000", "VLAN tag"],
      ["45. ip,nw_dst=127.0.0.0/8", "loopback"],
      ["45. ipv6,ipv6_src=::1", "loopback"],
      ["45. icmp,icmp_type=5", "redirect"],
      ["45. icmp6,icmp_type=134", "router"],
      ["45. icmp6,nw_frag=first,icmp_type=0", "first fragment"],
      ["45. udp,tp_src=67,tp_dst=68", "DHCP"],
      ["45. udp6,tp_src=547,tp_dst=546", "DHCP"],
      ["45. ipv6,nw_proto=135", "does not look"],
      ["140. ip,nw_dst=10.10.1.0/24", "no pod of this node has 10.10.1.3"],
      ["134. ct_mark=0/0xf,reg0=0x400/0x400", "no rule of a network policy lets 10.10.1.2 send it"],
      ["208. ip,reg0=0x400/0x400", "lets its destination receive it"],
      ["130. ct_state=+rpl+trk,ct_label=0xff/0xff", "the connection was cut"],
      ["180. udp,reg0=0x20/0xf0,tp_dst=6081", "tunnel"],
    ] as const)
      expect(reasonOf(hop)).toMatchObject({ t: "dropped", reason: expect.stringContaining(reason) });
    const service = (match: string) => verdict(pass(`110. ${match}, priority 200\n    drop`));
    expect(service("tcp,reg4=0x10000/0x70000,nw_dst=10.10.1.3,tp_dst=80")).toMatchObject({
      reason: "the service at 10.10.1.3 has no endpoint on this node, and asks for one there",
    });
    expect(service("ip,reg4=0x10000/0x70000,nw_dst=10.10.0.0/16")).toMatchObject({
      reason: "no service of this protocol and port has 10.10.1.3",
    });
    expect(verdict(pass("77. No match.\n    drop"))).toEqual({ t: "dropped", table: "77", reason: "no flow matched" });
    expect(verdict(pass("200. No match.\n    drop").replace("unchanged", "icmp,reg10=0xb,reg11=0xc"))).toEqual({
      t: "dropped",
      table: "TenantIsolation",
      reason: "other project: the sender's has VNID 11, the receiver's 12",
    });
    expect(verdict(pass("240. priority 200\n    output:gw0", "gw0"))).toEqual({ t: "out", to: "gateway", port: "gw0" });
  });
});

describe("a packet for another node", () => {
  const remote = { ...packet, destination: { ...packet.destination, ip: ip("10.10.2.3") } };

  test("its end is asked for once more, since the first answer takes the packet for one from the tunnel", async () => {
    const rest = recorded("other-node-rest").replace(/.*neighbor cache miss.*\n/, "");
    const control = answering(recorded("other-node"), rest);
    const { passes, text } = await trace(control, "br-int", remote);
    expect(control.asked[1]?.slice(0, 3)).toEqual(["ofproto/trace-packet-out", "--names", "br-int"]);
    expect(control.asked[1]?.[3]).toBe(
      "dp_hash=0x1,icmp,reg0=0x200013,reg1=0x1,in_port=p1,dl_src=0a:00:00:00:00:02,dl_dst=aa:bb:cc:dd:ee:ff,nw_src=10.10.1.2,nw_dst=10.10.2.3,nw_tos=0,nw_ecn=0,nw_ttl=63,icmp_type=8,icmp_code=0",
    );
    expect(control.asked[1]?.[4]).toBe("set_field:172.30.0.2->tun_dst,resubmit(,240)");
    expect(passes.at(-1)?.hops.map(({ table }) => table)).toEqual([240]);
    expect(text).toContain("Not tunneling");
  });

  test("a neighbour that nobody has asked for yet is waited for, and told of where it does not answer", async () => {
    const answers = [recorded("other-node"), recorded("other-node-rest")];
    const control = answering(...answers, ...answers);
    const { passes } = await trace(control, "br-int", remote);
    expect(control.asked).toHaveLength(4);
    const found = verdictOf(passes, remote, recordedPorts);
    expect(found).toEqual({
      t: "tunnel",
      node: "172.30.0.2",
      key: 0,
      port: "tun0",
      remark: "nobody has answered ARP for 172.30.0.2 yet",
    });
    const journey = { isReply: false, protocol: { t: "icmp" } } as Journey;
    expect(nextCommand(found, passes, journey, [ip("172.30.0.1")])).toBe(
      "pipette trace 10.10.1.2 10.10.2.3 --from-tunnel 172.30.0.1",
    );
  });

  test("what the tunnel's own packet meets is not on the packet's way, unless it ends there", () => {
    const outer = (actions: string) => `Flow: icmp,in_port=p1

bridge("br-int")
----------------
240. reg0=0x200000/0x600000, priority 200
    output:NXM_NX_REG1[]
     -> output port is 1
     -> tunneling to 172.30.0.2 via br-int

bridge("br-int")
----------------
30. in_port=LOCAL, priority 200
    output:p2

Final flow: icmp,tun_dst=172.30.0.2
Datapath actions: ${actions}
`;
    const [pass] = parseTrace(outer("tnl_push(...)"));
    expect(pass?.hops.map(({ table }) => table)).toEqual([240]);
    expect(verdict(outer("tnl_push(...)"))).toEqual({ t: "tunnel", node: "172.30.0.2", key: 0, port: "tun0" });
    expect(verdict(outer("drop"))).toEqual({
      t: "dropped",
      table: "Output",
      reason: 'the tunnel\'s own packet does not get past the bridge "br-int"',
    });
  });

  test("what came out of the tunnel is not taken for such", async () => {
    const control = answering(recorded("other-node"));
    await trace(control, "br-int", { ...remote, tunnel: { from: ip("172.30.0.2"), key: 1 } });
    expect(control.asked).toHaveLength(1);
  });
});
