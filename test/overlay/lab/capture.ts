import { EtherType } from "../../support/frames/frame.ts";
import { RawLink } from "../../support/frames/raw-link.ts";
import { isOfPods } from "./addresses.ts";
import { read } from "./raw-pod.ts";
import type { Underlay } from "./underlay.ts";

/** How often frames are fetched: the kernel keeps some thousand of them. */
const everyMs = 20;

/** What a frame between nodes is, by its outermost packet. */
export type FrameKind = "wireguard" | "ike" | "esp" | "geneve" | "vxlan" | "gre" | "pods" | "other";

const udpPorts: Readonly<Record<number, FrameKind>> = {
  51820: "wireguard",
  500: "ike",
  4500: "esp",
  6081: "geneve",
  4789: "vxlan",
};

export function kindOf(frame: Uint8Array): FrameKind {
  const seen = read(frame);
  if (seen === undefined) return "other";
  if (isOfPods(seen.source) || isOfPods(seen.destination)) return "pods";
  if (seen.protocol === 17) return isIkeByNat(frame) ? "ike" : (udpPorts[seen.port] ?? "other");
  return seen.protocol === 50 ? "esp" : seen.protocol === 47 ? "gre" : "other";
}

/** On UDP 4500 IKE begins with four zeros in the place of a number of keys (RFC 3948), and a keep-alive has one byte. */
function isIkeByNat(frame: Uint8Array): boolean {
  const isV4 = ((frame[12] ?? 0) << 8) + (frame[13] ?? 0) === EtherType.ipv4;
  const udp = 14 + (isV4 ? 4 * ((frame[14] ?? 0) & 0xf) : 40);
  const [port, length] = [udp + 2, udp + 4].map((at) => ((frame[at] ?? 0) << 8) + (frame[at + 1] ?? 0));
  const hasNumber = frame.subarray(udp + 8, udp + 12).some((byte) => byte !== 0);
  return port === 4500 && (length === 9 || !hasNumber);
}

/** Whole frames as the nodes send them, where they leave them. */
export class Capture implements Disposable {
  readonly frames: Uint8Array[] = [];
  readonly #links: readonly RawLink[];
  readonly #timer: NodeJS.Timeout;

  private constructor(links: readonly RawLink[]) {
    this.#links = links;
    this.#timer = setInterval(() => this.#fetch(), everyMs);
  }

  /** @param nodes their numbers */
  static async start({ namespace }: Underlay, nodes: readonly number[]): Promise<Capture> {
    const ends = nodes.map((number) => RawLink.open(namespace, `node${number}`));
    return new Capture(await Promise.all(ends));
  }

  /** Frames of IP of each kind so far. */
  kinds(): ReadonlyMap<FrameKind, number> {
    this.#fetch();
    const found = new Map<FrameKind, number>();
    for (const frame of this.frames) found.set(kindOf(frame), (found.get(kindOf(frame)) ?? 0) + 1);
    return found;
  }

  /** In how many frames these bytes stand, wherever. */
  having(bytes: Uint8Array): number {
    this.#fetch();
    return this.frames.filter((frame) => Buffer.from(frame.buffer, frame.byteOffset, frame.length).includes(bytes))
      .length;
  }

  /** How many frames have this address as source. */
  sentFrom(address: string): number {
    this.#fetch();
    return this.frames.filter((frame) => read(frame)?.source === address).length;
  }

  /** Those of a kind that have this address as source, in their order. */
  of(kind: FrameKind, source: string): readonly Uint8Array[] {
    this.#fetch();
    return this.frames.filter((frame) => kindOf(frame) === kind && read(frame)?.source === source);
  }

  /** Begins anew. */
  clear(): void {
    this.#fetch();
    this.frames.length = 0;
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    for (const link of this.#links) link[Symbol.dispose]();
  }

  #fetch(): void {
    for (const link of this.#links) {
      for (const frame of link.received()) if (isIp(frame)) this.frames.push(frame);
    }
  }
}

const isIp = (frame: Uint8Array): boolean => {
  const type = ((frame[12] ?? 0) << 8) | (frame[13] ?? 0);
  return type === EtherType.ipv4 || type === EtherType.ipv6;
};
