import { pause } from "../../shared/async/abortable.ts";
import type { Live } from "../../shared/async/live-value.ts";
import { LogOnChange } from "../../shared/async/log-on-change.ts";
import type { DocumentProbe, ProbeState } from "../../shared/documents/mod.ts";
import type { Logger } from "../../shared/log.ts";
import { type Cidr, type Family, formatIp, gatewayIn, type Ip, sameIp } from "../../shared/net/ip.ts";
import { reasonOf } from "../../shared/reason.ts";
import type { ClusterNode } from "../cluster/node-registry.ts";
import type { AgentMeter } from "../metrics/meter.ts";
import type { EchoOutcome, EchoQuestion } from "../protocols/icmp/mod.ts";
import { type Care, largestPacket } from "./largest-packet.ts";
import { answered, isLost, measured, type Reach, unanswered, unknownReach } from "./reach.ts";
import { nothingComesBack, refusalReason } from "./reasons.ts";
import { type PeerTrouble, troublesOf } from "./troubles.ts";

export interface PeerProbesOptions {
  readonly peers: Live<ReadonlyMap<string, ClusterNode>>;
  /** Of this node's own pods, from whose gateway is asked. */
  readonly subnets: readonly Cidr[];
  readonly intervalMs: number;
  /** Bytes; absent: it is not known, and not tried. */
  readonly podMtu?: number | undefined;
  /** @throws where nothing can be asked at all */
  ask(question: EchoQuestion, signal: AbortSignal): Promise<EchoOutcome>;
  readonly logger: Logger;
  readonly meter?: AgentMeter | undefined;
  /** Absent: the usual ones. */
  readonly times?: { readonly timeoutMs: number; readonly againMs: number };
}

/** The way to one node's pods, in one family. */
interface Way {
  readonly node: string;
  readonly from: Ip;
  readonly to: Ip;
  reach: Reach;
  /** Answers since packets of pods' MTU were tried; absent: they never were. */
  sinceWhole: number | undefined;
  isAsked: boolean;
}

/** Ways that are asked in a second at most, so that of thousands of nodes none is busy with probes, and a round takes some. */
const waysPerSecond = 20;
/** Between two questions of whatever kind: those that are asked again come on top. */
const betweenMs = 25;
/** Longer than any network between nodes of a cluster takes. */
const usualTimes = { timeoutMs: 1_000, againMs: 1_000 } as const;
/** Packets of pods' MTU are tried after so many answers: what changes there changes with somebody's work. */
const wholeEvery = 10;
/** Nodes that started together do not ask together. */
const firstWithinMs = 5_000;

/**
 * Asks the other nodes again and again whether their pods are reached: an echo from the gateway of this node's pods to that
 * of theirs, which takes the way of pods' packets, whatever that is. Of more nodes than a round has time for each round
 * takes the next ones. What is known is in memory alone.
 */
export class PeerProbes implements AsyncDisposable {
  readonly #options: PeerProbesOptions;
  readonly #ways = new Map<string, Way>();
  readonly #ended = new AbortController();
  readonly #following: Disposable;
  readonly #running: Promise<void>;
  readonly #asked = new Set<Promise<void>>();
  readonly #problem: LogOnChange;
  /** How many ways the next round passes over. */
  #next = 0;
  #freeAtMs = 0;

  constructor(options: PeerProbesOptions) {
    this.#options = options;
    this.#problem = new LogOnChange(options.logger);
    this.#following = options.peers.subscribe((peers) => this.#follow(peers));
    this.#follow(options.peers.current ?? new Map());
    this.#running = this.#run();
  }

  /** In words: how often which. */
  get about(): string {
    const { reason } = this.#problem;
    if (reason !== undefined) return `not possible: ${reason}`;
    const each = `every ${this.#options.intervalMs / 1000} s`;
    const size = this.#roundSize;
    return this.#ways.size <= size ? `each ${each}` : `${size} of ${this.#ways.size} ways ${each}, one after another`;
  }

  /** Of one node, a family after the other. */
  of(node: string): readonly DocumentProbe[] {
    return [4, 6].flatMap((family) => this.#ways.get(keyOf(family, node)) ?? []).map(probeOf);
  }

  /** Other nodes by their state: that of the worst of their ways. */
  counts(): Readonly<Record<ProbeState, number>> {
    const counts = { reachable: 0, lost: 0, silent: 0, unknown: 0 };
    for (const ways of Map.groupBy(this.#ways.values(), ({ node }) => node).values()) {
      const states = new Set(ways.map(({ reach }) => reach.state));
      counts[worstFirst.find((state) => states.has(state)) ?? "unknown"]++;
    }
    return counts;
  }

  /** Ways that do not work, the oldest first. */
  troubles(): readonly PeerTrouble[] {
    return troublesOf([...this.#ways.values()]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended.abort();
    this.#following[Symbol.dispose]();
    await this.#running;
    await Promise.all(this.#asked);
  }

  get #roundSize(): number {
    return Math.max(1, Math.floor((this.#options.intervalMs / 1000) * waysPerSecond));
  }

  /** A node keeps what is known of it as long as its gateway stays the same. */
  #follow(peers: ReadonlyMap<string, ClusterNode>): void {
    const before = new Map(this.#ways);
    this.#ways.clear();
    for (const { name, subnets } of peers.values())
      for (const { family, from } of this.#gateways()) {
        const subnet = subnets.find(({ ip }) => ip.family === family);
        if (subnet === undefined) continue;
        const to = gatewayIn(subnet);
        const key = keyOf(family, name);
        const known = before.get(key);
        const isSame = known !== undefined && sameIp(known.to, to);
        this.#ways.set(
          key,
          isSame ? known : { ...{ node: name, from, to, reach: unknownReach }, sinceWhole: undefined, isAsked: false },
        );
      }
  }

  #gateways(): readonly { readonly family: Family; readonly from: Ip }[] {
    return this.#options.subnets.map((subnet) => ({ family: subnet.ip.family, from: gatewayIn(subnet) }));
  }

  async #run(): Promise<void> {
    const { intervalMs } = this.#options;
    const { signal } = this.#ended;
    await pause(Math.random() * Math.min(firstWithinMs, intervalMs), signal);
    while (!signal.aborted) {
      const endMs = performance.now() + intervalMs * (0.9 + 0.2 * Math.random());
      for (const way of this.#round()) {
        await this.#turn(1000 / waysPerSecond);
        if (signal.aborted) return;
        this.#begin(way);
      }
      await pause(Math.max(betweenMs, endMs - performance.now()), signal);
    }
  }

  #round(): readonly Way[] {
    const all = [...this.#ways.values()];
    const size = Math.min(this.#roundSize, all.length);
    const from = all.length === 0 ? 0 : this.#next % all.length;
    this.#next = from + size;
    return [...all.slice(from), ...all.slice(0, from)].slice(0, size);
  }

  /** Waits until one more question may be asked. */
  async #turn(afterMs = betweenMs): Promise<void> {
    const nowMs = performance.now();
    const at = Math.max(nowMs, this.#freeAtMs);
    this.#freeAtMs = at + afterMs;
    if (at > nowMs) await pause(at - nowMs, this.#ended.signal);
  }

  #begin(way: Way): void {
    if (way.isAsked) return;
    way.isAsked = true;
    const asking = this.#examine(way)
      .then(
        () => this.#problem.clear(),
        (caught: unknown) => this.#problem.log("the other nodes are not probed", reasonOf(caught)),
      )
      .finally(() => {
        way.isAsked = false;
        this.#asked.delete(asking);
      });
    this.#asked.add(asking);
  }

  /** Asks until there is an answer, or the way counts as lost; one that does already is asked once. */
  async #examine(way: Way): Promise<void> {
    const { times = usualTimes } = this.#options;
    const { signal } = this.#ended;
    do {
      const outcome = await this.#ask(way);
      if (signal.aborted) return;
      if (outcome.t === "answered") {
        this.#tellBack(way);
        way.reach = answered(way.reach, outcome.rttMicros, Date.now());
        return await this.#tryWhole(way);
      }
      const wasLost = isLost(way.reach);
      this.#options.meter?.add("pipette_peer_probe_failures_total", {});
      const reason = outcome.t === "refused" ? refusalReason(outcome.errno) : nothingComesBack;
      way.reach = unanswered(way.reach, reason, Date.now());
      if (isLost(way.reach)) {
        if (!wasLost) this.#tellLost(way);
        return;
      }
      await pause(times.againMs, signal);
      await this.#turn();
    } while (!signal.aborted);
  }

  async #ask({ from, to }: Way): Promise<EchoOutcome> {
    const { ask, meter, times = usualTimes } = this.#options;
    const outcome = await ask({ from, to, timeoutMs: times.timeoutMs }, this.#ended.signal);
    if (outcome.t === "answered") meter?.observe("pipette_peer_probe_rtt_seconds", {}, outcome.rttMicros / 1e6);
    return outcome;
  }

  /** Whether packets of pods' MTU come through as well; rarely, but each time as long as they do not. */
  async #tryWhole(way: Way): Promise<void> {
    const { podMtu, logger } = this.#options;
    way.sinceWhole = way.sinceWhole === undefined ? wholeEvery : way.sinceWhole + 1;
    if (podMtu === undefined || (way.sinceWhole < wholeEvery && way.reach.narrow === undefined)) return;
    way.sinceWhole = 0;
    const passes = (bytes: number, care: Care): Promise<boolean> => this.#passes(way, bytes, care);
    const isNarrow = !(await passes(podMtu, "sure"));
    if (this.#ended.signal.aborted) return;
    const smallest = 64;
    const largest = isNarrow ? await largestPacket(passes, smallest, podMtu) : podMtu;
    // A way that was lost meanwhile says nothing of its width.
    if (this.#ended.signal.aborted || (isNarrow && !(await passes(smallest, "sure")))) return;
    const mtu = largest < podMtu ? largest : undefined;
    const was = way.reach.narrow?.mtu;
    way.reach = measured(way.reach, podMtu, mtu, Date.now());
    if (mtu !== undefined && mtu !== was)
      logger.warn("packets of pods' MTU do not reach another node", { node: way.node, podMtu, comesThrough: mtu });
  }

  async #passes({ from, to, reach }: Way, wholeBytes: number, care: Care): Promise<boolean> {
    const { ask, times = usualTimes } = this.#options;
    // Small ones were answered: what takes much longer most likely does not come.
    const quickMs = Math.min(times.timeoutMs, Math.max(200, ((reach.rttMicros ?? 0) / 1000) * 8));
    const [tries, timeoutMs] = care === "sure" ? [3, times.timeoutMs] : [2, quickMs];
    for (let i = 0; i < tries && !this.#ended.signal.aborted; i++) {
      await this.#turn();
      const { t } = await ask({ from, to, wholeBytes, timeoutMs }, this.#ended.signal);
      if (t === "answered") return true;
      // The kernel or a router says that it is too large, which is an answer too.
      if (t === "refused") return false;
    }
    return false;
  }

  #tellLost({ node, to, reach }: Way): void {
    const { logger } = this.#options;
    logger.warn("another node's pods are not reached", { node, gateway: formatIp(to), reason: reach.reason });
  }

  #tellBack({ node, to, reach }: Way): void {
    if (!isLost(reach)) return;
    const lostMs = Date.now() - (reach.lostSinceMs ?? Date.now());
    this.#options.logger.info("another node's pods are reached", { node, gateway: formatIp(to), lostMs });
  }
}

const keyOf = (family: number, node: string): string => `${family} ${node}`;

const worstFirst = ["lost", "silent", "unknown", "reachable"] as const;

function probeOf({ to, reach: { narrow, ...reach } }: Way): DocumentProbe {
  return {
    address: formatIp(to),
    ...reach,
    ...(narrow === undefined ? {} : { mtu: narrow.mtu, podMtu: narrow.podMtu }),
  };
}
