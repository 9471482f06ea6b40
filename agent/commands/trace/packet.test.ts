import { expect, test } from "vitest";
import { type Journey, packetOf, packetText, trackingStates } from "./packet.ts";
import { ip, portNamed, recordedPorts } from "./recorded-trace.ts";

const pod = (name: string) => ({ t: "pod", port: portNamed(name), ips: portNamed(name).pod?.ips }) as Journey["client"];
const away = (text: string): Journey["client"] => ({ t: "address", ip: ip(text) });
const journey: Journey = {
  client: pod("p1"),
  server: pod("p2"),
  protocol: { t: "icmp" },
  isReply: false,
  fromTunnel: undefined,
  as: { ip: undefined, mac: undefined },
  isRoutedOnly: false,
};
const textOf = (given: Partial<Journey>): string => packetText(packetOf({ ...journey, ...given }, recordedPorts));

test("a packet as its sender would send it", () => {
  expect(textOf({})).toBe(
    "icmp,icmp_type=8,icmp_code=0,in_port=11,dl_src=0a:00:00:00:00:02,dl_dst=0a:00:00:00:00:03,nw_src=10.10.1.2,nw_dst=10.10.1.3,nw_ttl=64,dp_hash=1",
  );
  expect(textOf({ server: away("10.10.2.3"), protocol: { t: "tcp", port: 80 } })).toBe(
    "tcp,tcp_src=40000,tcp_dst=80,in_port=11,dl_src=0a:00:00:00:00:02,dl_dst=0e:00:00:00:00:01,nw_src=10.10.1.2,nw_dst=10.10.2.3,nw_ttl=64,dp_hash=1",
  );
  expect(textOf({ client: pod("p3"), server: away("fd00::9") })).toMatch(
    /^icmp6,icmpv6_type=128,.*ipv6_src=fd00::4,ipv6_dst=fd00::9,/,
  );
  expect(textOf({ isRoutedOnly: true })).toContain("dl_dst=aa:bb:cc:dd:ee:ff");
  expect(textOf({ as: { ip: ip("10.10.1.99"), mac: "02:00:00:00:00:01" } })).toContain(
    "in_port=11,dl_src=02:00:00:00:00:01,dl_dst=0a:00:00:00:00:03,nw_src=10.10.1.99,",
  );
});

test("an answer, and what comes out of the tunnel", () => {
  const reply = { isReply: true, protocol: { t: "udp", port: 53 } } as const;
  expect(textOf(reply)).toBe(
    "udp,udp_src=53,udp_dst=40000,in_port=12,dl_src=0a:00:00:00:00:03,dl_dst=0a:00:00:00:00:02,nw_src=10.10.1.3,nw_dst=10.10.1.2,nw_ttl=64,dp_hash=1,ct_mark=3",
  );
  expect(trackingStates(packetOf({ ...journey, ...reply }, recordedPorts)).slice(0, 2)).toEqual([
    "--ct-next",
    "trk,est,rpl",
  ]);
  const fromTunnel = { from: ip("172.30.0.2"), key: 42 };
  expect(textOf({ client: away("10.10.2.2"), fromTunnel })).toBe(
    "icmp,icmp_type=8,icmp_code=0,in_port=1,tun_src=172.30.0.2,tun_id=42,dl_src=aa:bb:cc:dd:ee:ff,dl_dst=aa:bb:cc:dd:ee:ff,nw_src=10.10.2.2,nw_dst=10.10.1.3,nw_ttl=64,dp_hash=1",
  );
  expect(textOf({ client: away("10.10.2.2"), isReply: true })).toMatch(/in_port=12,.*,ct_mark=1$/);
});

test("packets that cannot come in here are refused", () => {
  expect(() => textOf({ client: away("10.10.2.2") })).toThrow('"10.10.2.2" is no pod of this node');
  expect(() => textOf({ fromTunnel: { from: ip("172.30.0.2"), key: 0 } })).toThrow("do not come out of the tunnel");
  expect(() => textOf({ server: away("fd00::9") })).toThrow("wanted two different ones of one family");
  expect(() => textOf({ as: { ip: ip("fd00::9"), mac: undefined } })).toThrow('"fd00::9" and "10.10.1.3", wanted two');
  expect(() => textOf({ server: away("10.10.1.2") })).toThrow("wanted two different ones of one family");
});
