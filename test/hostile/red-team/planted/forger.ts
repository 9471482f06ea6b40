import {
  address,
  arp,
  bytes,
  type Ends,
  EtherType,
  ethernet,
  icmp6,
  ipv4,
  ipv6,
  mac,
  Protocol,
  udp,
} from "../../../support/frames/frame.ts";
import type { Hex } from "../parse.ts";
import { token } from "../token.ts";
import type { World } from "../world.ts";

const macText = (hex: Hex): string => (hex.match(/../g) ?? []).join(":");
const ipText = (hex: Hex): string =>
  hex.length === 8 ? [...Buffer.from(hex, "hex")].join(".") : (hex.match(/.{4}/g) ?? []).join(":");

interface Somebody {
  readonly mac: string;
  readonly v4: string;
}

/** Frames of a world's attacker that are wrong in one thing each, by hand. */
export class Forger {
  readonly own: Somebody & { readonly linkLocal: string };
  readonly gateway: Somebody;
  readonly #world: World;
  /** Above whatever the controls beside them are numbered. */
  #number = 1_000_000;

  constructor(world: World) {
    this.#world = world;
    const [{ mac: ownMac, addresses, linkLocal }] = world.pods;
    const [{ gateway }] = world.nodes;
    this.own = { mac: macText(ownMac), v4: ipText(addresses[0] ?? ""), linkLocal: ipText(linkLocal) };
    this.gateway = { mac: macText(gateway.mac), v4: ipText(gateway.addresses[0] ?? "") };
  }

  pod(name: string): Somebody {
    const found = this.#world.pods.find((pod) => pod.name === name);
    return { mac: macText(found?.mac ?? ""), v4: ipText(found?.addresses[0] ?? "") };
  }

  /** From the attacker, where nothing else is said. */
  udp({
    ip,
    macs,
    ports = { from: 40_000, to: 9 },
  }: {
    readonly ip: Partial<Ends>;
    readonly macs: Partial<Ends>;
    readonly ports?: { readonly from: number; readonly to: number };
  }): Uint8Array {
    const ends = { from: this.own.v4, to: this.gateway.v4, ...ip };
    const packet = ipv4(ends, Protocol.udp, udp(ends, ports, this.#token()));
    return ethernet({ from: this.own.mac, to: this.gateway.mac, ...macs }, EtherType.ipv4, packet);
  }

  /** "`sender` is at my MAC", said to all who have `target`. */
  arp(sender: string, target: string): Uint8Array {
    const asked = arp({ operation: 1, senderMac: this.own.mac, sender, target });
    const frame = ethernet({ from: this.own.mac, to: "ff:ff:ff:ff:ff:ff" }, EtherType.arp, asked);
    return bytes(frame, this.#token());
  }

  /** An ICMPv6 message of neighbours, to all of them. @param body up to its options */
  neighbours(type: number, body: Uint8Array): Uint8Array {
    const ends = { from: this.own.linkLocal, to: "ff02::1" };
    const linkLayer = bytes([type === 136 ? 2 : 1, 1], mac(this.own.mac));
    const options = bytes(linkLayer, [253, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], this.#token());
    const packet = ipv6(ends, Protocol.icmp6, icmp6(ends, type, bytes(body, options)), 255);
    return ethernet({ from: this.own.mac, to: "33:33:00:00:00:01" }, EtherType.ipv6, packet);
  }

  /** The default router for an hour, and a prefix to make addresses of. */
  router(): Uint8Array {
    const prefix = bytes([3, 4, 64, 0xc0, 0, 0, 14, 16, 0, 0, 14, 16, 0, 0, 0, 0], address("2001:db8:bad::"));
    return this.neighbours(134, bytes([64, 0, 14, 16, 0, 0, 0, 0, 0, 0, 0, 0], prefix));
  }

  /** "`who` is at my MAC." */
  advertisement(who: string): Uint8Array {
    return this.neighbours(136, bytes([0x20, 0, 0, 0], address(who)));
  }

  redirect(): Uint8Array {
    return this.neighbours(137, bytes([0, 0, 0, 0], address(this.own.linkLocal), address("2001:db8::1")));
  }

  otherType(type: number, to: string): Uint8Array {
    return ethernet({ from: this.own.mac, to }, type, this.#token());
  }

  #token(): Uint8Array {
    return token(++this.#number);
  }
}
