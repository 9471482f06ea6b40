import { maxTracedPackets, type TracedPacket } from "../../../../shared/documents/mod.ts";
import { formatIp } from "../../../../shared/net/ip.ts";
import { registers } from "../pipeline/registers.ts";
import { tables } from "../pipeline/tables.ts";
import type { Observation } from "./observation.ts";
import { stepsOf, type TraceNames } from "./steps.ts";

interface Followed {
  readonly seen: Observation[];
  heardAt: number;
  ended: boolean;
}

interface FollowedOptions {
  readonly names: TraceNames;
  /** By which an injected packet is known; absent: real packets are followed. */
  readonly probe?: Uint8Array;
}

/** How long a packet is waited for that has not left the node: a switch takes microseconds from table to table. */
const quietMs = 500;
/**
 * Real connections that are followed in a second: each is told of two dozen times, and a switch queues a hundred. What
 * it cannot queue is lost, and would look like a packet that was dropped.
 */
const mostASecond = 4;

/** The packets of one trace on this node, put together of what single tables tell. */
export class FollowedPackets {
  readonly #options: FollowedOptions;
  readonly #packets = new Map<string, Followed>();
  #passed = 0;
  #begun = 0;
  #secondAt = 0;

  constructor(options: FollowedOptions) {
    this.#options = options;
  }

  /** Connections that were not dropped here. */
  get passed(): number {
    return this.#passed;
  }

  /** As many are followed as can be in this second. */
  isBusy(now: number): boolean {
    return this.#begun >= mostASecond && now - this.#secondAt < 1000;
  }

  /** @returns whether anything is new */
  take(seen: Observation, now: number): boolean {
    const { probe } = this.#options;
    // Whoever makes a packet look like an injected one does not know what it carries.
    if (probe !== undefined && !holds(seen.frame, probe)) return false;
    const key = probe === undefined ? seen.fingerprint : Buffer.from(probe).toString("hex");
    const known = this.#packets.get(key) ?? this.#begin(key, now);
    if (known === undefined || known.ended || known.seen.some(({ table }) => table === seen.table)) return false;
    known.seen.push(seen);
    known.heardAt = now;
    if (hasLeft(known)) {
      known.ended = true;
      this.#passed++;
    }
    return true;
  }

  /** What is quiet for long enough has been dropped. @returns whether anything is new */
  settle(now: number): boolean {
    const quiet = [...this.#packets.values()].filter(({ ended, heardAt }) => !ended && now - heardAt >= quietMs);
    for (const packet of quiet) packet.ended = true;
    return quiet.length > 0;
  }

  list(): readonly TracedPacket[] {
    return [...this.#packets].flatMap(([id, { seen, ended }]) => {
      const [first] = seen;
      if (first === undefined) return [];
      const { source, destination, ports, protocol, bytes } = first.ends;
      return [
        {
          id,
          family: source.family === 4 ? "IPv4" : "IPv6",
          protocol: protocolName(protocol),
          ...{ source: formatIp(source), destination: formatIp(destination), bytes },
          ...(ports === undefined ? {} : { sourcePort: ports.source, destinationPort: ports.destination }),
          ...{ steps: stepsOf(seen, ended, this.#options.names), ended },
        } as const,
      ];
    });
  }

  #begin(key: string, now: number): Followed | undefined {
    if (now - this.#secondAt >= 1000) {
      this.#secondAt = now;
      this.#begun = 0;
    }
    if (this.#begun >= mostASecond) return undefined;
    if (this.#packets.size >= maxTracedPackets && !this.#forgetOne()) return undefined;
    this.#begun++;
    const packet = { seen: [], heardAt: now, ended: false };
    this.#packets.set(key, packet);
    return packet;
  }

  /** The first that was not dropped, else the first. */
  #forgetOne(): boolean {
    const ended = [...this.#packets].filter(([, packet]) => packet.ended);
    const [key] = ended.find(([, packet]) => hasLeft(packet)) ?? ended[0] ?? [];
    return key !== undefined && this.#packets.delete(key);
  }
}

function hasLeft({ seen }: Followed): boolean {
  const last = seen.at(-1);
  return last !== undefined && last.table === tables.Output && last.value(registers.output) === 1;
}

const protocolName = (number: number): string =>
  number === 1 || number === 58 ? "icmp" : number === 6 ? "tcp" : number === 17 ? "udp" : String(number);

const holds = (frame: Uint8Array, bytes: Uint8Array): boolean => Buffer.from(frame).includes(Buffer.from(bytes));
