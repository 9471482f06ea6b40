import { abortable, pause } from "../../../shared/async/abortable.ts";
import { formatIp, type Ip } from "../../../shared/net/ip.ts";
import { parseMac } from "../../../shared/net/mac.ts";
import type { ClusterNode } from "../../cluster/node-registry.ts";
import { type OpenFlowRequest, output, packetOut, setField } from "../../protocols/openflow/mod.ts";
import type { PipelineContext } from "./pipeline/context.ts";
import { wayTo } from "./pipeline/mod.ts";
import { virtualMac } from "./pipeline/registers.ts";

/**
 * Pauses after each packet to a node that is not known yet: close ones at first, since of nodes that start together each
 * shall know the other when its first pod speaks.
 */
const againMs = [...Array<number>(20).fill(100), ...Array<number>(8).fill(1_000)];
/** So many are asked for at these pauses, and twice as many half as often: at most 1,000 packets a second. */
const crowd = 100;
/** Sooner than the switch forgets what is not used (15 minutes). */
const keepMs = 5 * 60_000;
/** All that are due within this time are asked together: each look reads what the switch knows of all nodes. */
const roundMs = 10_000;

/** IEEE 802's EtherType for local experiments, which no flow of a node accepts. */
const experimental = [0x88, 0xb5] as const;
const leastFrame = 60;

interface Tunnels {
  /** The tunnel's port. */
  readonly ofport: () => number;
  /** The present ends of tunnels. */
  readonly ends: () => Iterable<Ip>;
  /** Sends without waiting for an answer. */
  readonly post: (requests: readonly OpenFlowRequest[]) => void;
  /** The addresses whose MAC the switch knows. May fail. */
  readonly known: () => Promise<ReadonlySet<string>>;
}

/** `times` 0: the next packet is the first of a round. */
interface Schedule {
  readonly times: number;
  readonly nextMs: number;
}

/**
 * A switch in user space resolves another node's MAC by itself, but drops the packet that caused it, which would be the
 * first one of a pod. So dummy packets are sent before: to each new node until the switch knows it, and periodically to
 * all, so that none is forgotten.
 */
export class TunnelNeighbours implements AsyncDisposable {
  readonly #tunnels: Tunnels;
  readonly #ending = new AbortController();
  readonly #ended: Promise<void>;
  /** By address, each with its own schedule. */
  readonly #asked = new Map<string, Schedule>();
  #waking = new AbortController();

  constructor(tunnels: Tunnels) {
    this.#tunnels = tunnels;
    this.#ended = this.#run();
  }

  /** The set of ends may have changed. */
  refresh(): void {
    this.#waking.abort();
  }

  /** The switch has restarted and knows no neighbour. */
  reset(): void {
    this.#asked.clear();
    this.refresh();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort();
    this.refresh();
    await this.#ended;
  }

  async #run(): Promise<void> {
    while (!this.#ending.signal.aborted) {
      this.#waking = new AbortController();
      const nextMs = await this.#askDue();
      await pause(nextMs - performance.now(), this.#waking.signal);
    }
  }

  /** @returns when the next one is due */
  async #askDue(): Promise<number> {
    const isLookDue = [...this.#asked.values()].some(({ times, nextMs }) => times > 0 && nextMs <= performance.now());
    const known = isLookDue ? await this.#known() : none;
    if (this.#ending.signal.aborted) return 0;
    const ends = new Map([...this.#tunnels.ends()].map((end) => [formatIp(end), end]));
    for (const key of this.#asked.keys()) if (!ends.has(key)) this.#asked.delete(key);
    const nowMs = performance.now();
    const due = new Map<string, Ip>();
    for (const [key, end] of ends) {
      const { times, nextMs } = this.#asked.get(key) ?? { times: 0, nextMs: nowMs };
      if (nextMs > nowMs) continue;
      if (times > 0 && known.has(key)) this.#asked.set(key, later(nowMs));
      else due.set(key, end);
    }
    const factor = Math.max(1, due.size / crowd);
    for (const key of due.keys()) this.#asked.set(key, after(this.#asked.get(key)?.times ?? 0, nowMs, factor));
    if (due.size > 0) this.#tunnels.post(greetings([...due.values()], this.#tunnels.ofport()));
    return Math.min(nowMs + keepMs, ...[...this.#asked.values()].map(({ nextMs }) => nextMs));
  }

  /** Whoever is not known is asked for again: also where the switch does not say, or a change does not wait for it. */
  #known(): Promise<ReadonlySet<string>> {
    return abortable(this.#tunnels.known(), this.#waking.signal).catch(() => none);
  }
}

/** What follows the packet after `times` others. */
function after(times: number, nowMs: number, factor: number): Schedule {
  const pauseMs = againMs[times];
  return pauseMs === undefined ? later(nowMs) : { times: times + 1, nextMs: nowMs + pauseMs * factor };
}

const later = (nowMs: number): Schedule => ({ times: 0, nextMs: Math.ceil((nowMs + keepMs) / roundMs) * roundMs });

const none: ReadonlySet<string> = new Set();

/** Has the switch send a frame that no node takes into the tunnel to each of these ends. @param ofport the tunnel's */
export function greetings(ends: readonly Ip[], ofport: number): readonly OpenFlowRequest[] {
  const frame = new Uint8Array(leastFrame);
  frame.set(parseMac(virtualMac) ?? []);
  frame.set(experimental, 12);
  return ends.map((end) =>
    packetOut(frame, [setField(end.family === 4 ? "tun_dst" : "tun_ipv6_dst", end), output(ofport)]),
  );
}

/** Where tunnels to other nodes' pods end. */
export const tunnelEnds = (context: PipelineContext, nodes: ReadonlyMap<string, ClusterNode>): Ip[] =>
  [...nodes.values()].flatMap((node) => {
    const ways = node.subnets.map((subnet) => wayTo(context, node, subnet));
    const way = ways.find((one) => one?.t === "tunnel");
    return way?.t === "tunnel" ? [way.remote] : [];
  });
