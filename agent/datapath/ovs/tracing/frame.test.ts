import { expect, test } from "vitest";
import { formatIp, parseIp } from "../../../../shared/net/ip.ts";
import { packetEnds } from "../../packet-ends.ts";
import { frameOf } from "./frame.ts";

const addresses = { 4: ["10.1.2.3", "10.1.2.4"], 6: ["fd00::3", "fd00::4"] } as const;
const protocols = ["icmp", "tcp", "udp"] as const;
const numbers = { icmp: { 4: 1, 6: 58 }, tcp: { 4: 6, 6: 6 }, udp: { 4: 17, 6: 17 } };

/** The Internet checksum of what has its own in it is zero (RFC 1071). */
function sumOf(bytes: readonly number[]): number {
  let sum = 0;
  for (let i = 0; i < bytes.length; i += 2) sum += ((bytes[i] ?? 0) << 8) | (bytes[i + 1] ?? 0);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  return ~sum & 0xffff;
}

test.each(protocols.flatMap((protocol) => ([4, 6] as const).map((family) => [protocol, family] as const)))(
  "%s over IPv%i is a packet with right lengths and checksums",
  (protocol, family) => {
    const [from, to] = addresses[family];
    const [source, destination] = [parseIp(from)!, parseIp(to)!];
    // An odd length has a half word at its end.
    const payload = new TextEncoder().encode("fifteen letters");
    const macs = { sourceMac: "0a:00:00:00:00:01", destinationMac: "0a:00:00:00:00:02" };
    const frame = frameOf({ ...macs, source, destination, protocol, sourcePort: 50_000, destinationPort: 80, payload });
    const packet = frame.subarray(14);
    const ends = packetEnds(packet);
    expect(ends).toMatchObject({ protocol: numbers[protocol][family], bytes: packet.length });
    expect([formatIp(ends!.source), formatIp(ends!.destination)]).toEqual([from, to]);
    expect(ends?.ports).toEqual(protocol === "icmp" ? undefined : { source: 50_000, destination: 80 });
    const head = family === 4 ? 20 : 40;
    if (family === 4) expect(sumOf([...packet.subarray(0, head)])).toBe(0);
    const body = [...packet.subarray(head)];
    const at = family === 4 ? packet.subarray(12, 20) : packet.subarray(8, 40);
    const pseudo = [...at, 0, numbers[protocol][family], body.length >> 8, body.length & 0xff];
    expect(sumOf([...(protocol === "icmp" && family === 4 ? [] : pseudo), ...body])).toBe(0);
    expect(Buffer.from(frame).subarray(-payload.length).toString()).toBe("fifteen letters");
  },
);
