import { pause } from "../../../shared/async/abortable.ts";
import { formatIp, type Ip } from "../../../shared/net/ip.ts";
import { parseMac } from "../../../shared/net/mac.ts";
import type { ClusterNode } from "../../cluster/node-registry.ts";
import { type OpenFlowRequest, output, packetOut, setField } from "../../protocols/openflow/mod.ts";
import type { PipelineContext } from "./pipeline/context.ts";
import { wayTo } from "./pipeline/mod.ts";
import { virtualMac } from "./pipeline/registers.ts";

/** Pauses between repeated packets to a new node, which may be just starting. */
const againMs = [250, 750, 4_000];
/** Sooner than the switch forgets what is not used (15 minutes). */
const keepMs = 5 * 60_000;

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
}

/**
 * A switch in user space resolves another node's MAC by itself, but drops the packet that caused it, which would be the
 * first one of a pod. So a dummy packet is sent before: to each new node, and periodically to all, so that none is
 * forgotten.
 */
export class TunnelNeighbours implements AsyncDisposable {
  readonly #tunnels: Tunnels;
  readonly #ending = new AbortController();
  readonly #ended: Promise<void>;
  /** By address, each with its own schedule. */
  readonly #asked = new Map<string, { readonly times: number; readonly nextMs: number }>();
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
      const nextMs = this.#askDue(performance.now());
      await pause(nextMs - performance.now(), this.#waking.signal);
    }
  }

  /** @returns when the next one is due */
  #askDue(nowMs: number): number {
    const ends = new Map([...this.#tunnels.ends()].map((end) => [formatIp(end), end]));
    for (const key of this.#asked.keys()) if (!ends.has(key)) this.#asked.delete(key);
    const due: Ip[] = [];
    let soonestMs = nowMs + keepMs;
    for (const [key, end] of ends) {
      let { times, nextMs } = this.#asked.get(key) ?? { times: 0, nextMs: nowMs };
      if (nextMs <= nowMs) {
        due.push(end);
        nextMs = nowMs + (againMs[times++] ?? keepMs);
        this.#asked.set(key, { times, nextMs });
      }
      soonestMs = Math.min(soonestMs, nextMs);
    }
    if (due.length > 0) this.#ask(due);
    return soonestMs;
  }

  #ask(ends: readonly Ip[]): void {
    this.#tunnels.post(greetings(ends, this.#tunnels.ofport()));
  }
}

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
