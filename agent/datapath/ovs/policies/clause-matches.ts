import { bitsOf, type Cidr, type Family, firstOf, type Ip, ipOf, overlap } from "../../../../shared/net/ip.ts";
import type { BlockPeer, Direction } from "../../../../shared/policy/mod.ts";
import { type Flow, type MatchBuilder, match } from "../../../protocols/openflow/mod.ts";
import type { RulePorts } from "../../policies.ts";
import { matchFlow } from "../pipeline/mod.ts";
import { registers } from "../pipeline/registers.ts";

/** A pod's interface on the switch. */
export interface PodInterface {
  readonly ofport: number;
  readonly ips: readonly Ip[];
}

/**
 * The flows, without actions yet, by which packets match what a clause of a rule names: pods, addresses or ports.
 * Open vSwitch dumps no flow with more than 4,087 conjunctions, and takes none with more than 4,090. So rules beyond
 * that are in further slices, whose flows match one thing more that always holds: some bits of the rule's number, which
 * is 0 until a rule is found. Flows of all slices are found in one lookup.
 */
export class ClauseMatches {
  readonly #direction: Direction;
  readonly #slice: number;
  readonly #families: readonly Family[];

  /** @param slice from 0 on @param families that pods have */
  constructor(direction: Direction, slice: number, families: readonly Family[]) {
    this.#direction = direction;
    this.#slice = slice;
    this.#families = families;
  }

  /** Packets that the pod sends, or gets. Behind a service of kube-proxy they come by the gateway's port. */
  target({ ofport, ips }: PodInterface): readonly Flow[] {
    if (this.#direction === "ingress") return [this.#flow(match().bits(registers.outputPort, ofport))];
    return ips.map((ip) => this.#flow(match().family(ip.family).source(ip)));
  }

  addresses(ips: readonly Ip[]): readonly Flow[] {
    return ips.flatMap((ip) => {
      if (!this.#families.includes(ip.family)) return [];
      const matched = match().family(ip.family);
      return this.#flow(this.#direction === "egress" ? matched.destination(ip) : matched.source(ip));
    });
  }

  block(block: BlockPeer): readonly Flow[] {
    const { family } = block.cidr.ip;
    if (!this.#families.includes(family)) return [];
    const end = this.#direction === "egress" ? "dst" : "src";
    const field = family === 4 ? (`ip_${end}` as const) : (`ipv6_${end}` as const);
    return cidrsOf(block).map((cidr) => this.#flow(match().family(family).cidr(field, cidr)));
  }

  anybody(): readonly Flow[] {
    return this.#families.map((family) => this.#flow(match().family(family)));
  }

  ports({ protocol, first, last = first }: RulePorts): readonly Flow[] {
    const name = protocol.toLowerCase() as Lowercase<typeof protocol>;
    return this.#families.flatMap((family) => {
      const packets = (): MatchBuilder => match().protocol(family === 4 ? name : `${name}6`);
      if (first === undefined || last === undefined) return [this.#flow(packets())];
      return portMasks(first, last).map(({ value, mask }) =>
        this.#flow(mask === 0 ? packets() : packets().masked(`${name}_dst`, value, mask)),
      );
    });
  }

  #flow(matched: MatchBuilder): Flow {
    const { field } = registers[`${this.#direction}Rule`];
    return matchFlow(this.#direction, this.#slice === 0 ? matched : matched.masked(field.name, 0, this.#slice));
  }
}

/** What of a block is left without its exceptions, in as few blocks as possible. */
export function cidrsOf({ cidr, except }: Pick<BlockPeer, "cidr" | "except">): readonly Cidr[] {
  const inside = except.filter((one) => overlap(one, cidr));
  if (inside.length === 0) return [cidr];
  if (inside.some((one) => one.prefix <= cidr.prefix)) return [];
  return halvesOf(cidr).flatMap((half) => cidrsOf({ cidr: half, except: inside }));
}

function halvesOf(cidr: Cidr): readonly Cidr[] {
  const { family, value } = firstOf(cidr);
  const upper = 1n << BigInt(bitsOf(family) - cidr.prefix - 1);
  return [value, value | upper].map((first) => ({ ip: ipOf(family, first), prefix: cidr.prefix + 1 }));
}

/** A range of ports as masked values: 80 to 83 is 80 without the two lowest bits. 30 of them at most. */
export function portMasks(first: number, last: number): readonly { readonly value: number; readonly mask: number }[] {
  const masks: { value: number; mask: number }[] = [];
  for (let port = first; port <= last; ) {
    let size = port === 0 ? 0x10000 : port & -port;
    while (port + size - 1 > last) size >>= 1;
    masks.push({ value: port, mask: 0xffff & ~(size - 1) });
    port += size;
  }
  return masks;
}
