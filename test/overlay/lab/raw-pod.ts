import { formatIp, ipOf } from "../../../shared/net/ip.ts";
import { EtherType } from "../../support/frames/frame.ts";
import { RawLink } from "../../support/frames/raw-link.ts";
import type { NetworkNamespace } from "../../support/network-namespace.ts";
import type { Party } from "../forbidden-frames.ts";
import type { LabPod } from "./lab-pod.ts";

/** A pod whose root sends frames of its own making. */
export interface RawPod extends Party, Disposable {
  readonly link: RawLink;
  /** The MAC that it knows of its gateway. */
  readonly gatewayMac: string;
}

export async function openRawPod(pod: LabPod): Promise<RawPod> {
  const link = await RawLink.open(pod.namespace, "eth0");
  return {
    link,
    mac: await macOf(pod.namespace, "eth0"),
    4: pod.address(4),
    6: pod.address(6),
    gatewayMac: await macOf(pod.node.namespace, pod.node.gatewayDevice),
    [Symbol.dispose]: () => link[Symbol.dispose](),
  };
}

/** The hardware address of an interface in a namespace. */
export async function macOf(namespace: NetworkNamespace, name: string): Promise<string> {
  const [link] = JSON.parse(await namespace.run(`ip -j link show dev ${name}`)) as { address: string }[];
  if (link === undefined) throw new Error(`No interface "${name}"`);
  return link.address;
}

/** Of a frame with an IP packet in it. */
export interface Seen {
  readonly source: string;
  readonly destination: string;
  readonly protocol: number;
  /** Of UDP and TCP; of others whatever stands there. */
  readonly port: number;
}

/** What an IP packet says of itself; `undefined` for other frames. IPv6 without extension headers. */
export function read(frame: Uint8Array): Seen | undefined {
  const word = (at: number): number => ((frame[at] ?? 0) << 8) | (frame[at + 1] ?? 0);
  if (word(12) === EtherType.ipv4) {
    const text = (at: number): string => [...frame.subarray(at, at + 4)].join(".");
    return { source: text(26), destination: text(30), protocol: frame[23] ?? 0, port: word(36) };
  }
  if (word(12) !== EtherType.ipv6) return undefined;
  const text = (at: number): string => hex(frame.subarray(at, at + 16));
  return { source: text(22), destination: text(38), protocol: frame[20] ?? 0, port: word(56) };
}

/** As `formatIp` has it. */
const hex = (address: Uint8Array): string =>
  formatIp(
    ipOf(
      6,
      [...address].reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n),
    ),
  );
