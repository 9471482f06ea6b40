import { join } from "node:path";
import { LogOnChange } from "../../shared/async/log-on-change.ts";
import { ownerKey } from "../../shared/cni/owner-key.ts";
import type { Owner } from "../../shared/cni/types.ts";
import type { Logger } from "../../shared/log.ts";
import { formatIp } from "../../shared/net/ip.ts";
import { appendToLog } from "../../shared/os/log-file.ts";
import { type PacketEnds, packetEnds } from "../datapath/packet-ends.ts";
import type { Isolation, PodRule, Verdict } from "../datapath/policies.ts";

interface VerdictLogOptions {
  readonly dataDir: string;
  /** A pod's name, as `namespace/name`; absent: unknown. */
  podOf(owner: Owner): string | undefined;
  isolationOf(owner: Owner): Isolation | undefined;
  readonly logger: Logger;
  /** For tests. */
  readonly bounds?: Partial<typeof verdictLogBounds>;
}

const verdictLogBounds = {
  /** So long equal verdicts are gathered into one line: as Antrea's agents do it. */
  gatherMs: 1_000,
  /** Lines of one such time; what is beyond is counted. Data paths report no more than a few hundred in it. */
  lines: 1_000,
  /** Of the file; with the one of before twice as many. Some 100,000 lines, and no burden for a node's disk. */
  bytes: 16 * 1024 * 1024,
};

interface Gathered {
  readonly line: string;
  readonly atMs: number;
  count: number;
}

const protocols: Readonly<Record<number, string>> = { 1: "ICMP", 6: "TCP", 17: "UDP", 58: "ICMPv6", 132: "SCTP" };
const tables = {
  egress: { rule: "EgressRule", fallback: "EgressDefaultRule", name: "Egress" },
  ingress: { rule: "IngressRule", fallback: "IngressDefaultRule", name: "Ingress" },
} as const;

/**
 * The log of verdicts: `policies.log` beside the leases, one line a verdict, in the order of Antrea's `np.log`: time,
 * table, policy, rule, direction, verdict, priority, pod, source and its port, destination and its port, protocol,
 * bytes, label; behind that, of a refusal, the policies that isolate the pod. What is not there is `<nil>`.
 */
export class VerdictLog implements Disposable {
  readonly path: string;
  readonly #options: VerdictLogOptions;
  readonly #bounds: typeof verdictLogBounds;
  readonly #gathered = new Map<string, Gathered>();
  #beyond = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  readonly #problem: LogOnChange;

  constructor(options: VerdictLogOptions) {
    this.#options = options;
    this.#bounds = { ...verdictLogBounds, ...options.bounds };
    this.#problem = new LogOnChange(options.logger, "error");
    this.path = join(options.dataDir, "policies.log");
  }

  /** Why it is not written, if so. */
  get problem(): string | undefined {
    return this.#problem.reason;
  }

  add(verdict: Verdict): void {
    const ends = packetEnds(verdict.packet);
    if (ends === undefined) return;
    const line = this.#lineOf(verdict, ends);
    this.#timer ??= setTimeout(() => this.#write(), this.#bounds.gatherMs);
    const before = this.#gathered.get(line);
    if (before !== undefined) before.count++;
    else if (this.#gathered.size < this.#bounds.lines) this.#gathered.set(line, { line, atMs: Date.now(), count: 1 });
    else this.#beyond++;
  }

  /** What was gathered is written. */
  [Symbol.dispose](): void {
    this.#write();
  }

  #lineOf({ direction, owner, rule }: Verdict, ends: PacketEnds): string {
    const { podOf, isolationOf } = this.#options;
    const at = tables[direction];
    const isolation = owner === undefined ? undefined : isolationOf(owner);
    const of = rule === undefined ? "K8sNetworkPolicy" : `K8sNetworkPolicy:${nameOf(rule.policy)}`;
    return [
      rule === undefined ? at.fallback : at.rule,
      of,
      rule?.id ?? nil,
      at.name,
      rule === undefined ? "Drop" : "Allow",
      nil,
      (owner && (podOf(owner) ?? ownerKey(owner))) ?? nil,
      formatIp(ends.source),
      ends.ports?.source ?? nil,
      formatIp(ends.destination),
      ends.ports?.destination ?? nil,
      protocols[ends.protocol] ?? ends.protocol,
      ends.bytes,
      nil,
      ...(rule === undefined ? [causeOf(isolation)] : []),
    ].join(" ");
  }

  #write(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const lines = [...this.#gathered.values()].map(({ line, atMs, count }) => {
      const times = count === 1 ? "" : ` [${count} packets in ${this.#bounds.gatherMs / 1000}s]`;
      return `${timeOf(atMs)} ${line}${times}`;
    });
    if (this.#beyond > 0) lines.push(`${timeOf(Date.now())} ${this.#beyond} more verdicts are not told one by one`);
    this.#gathered.clear();
    this.#beyond = 0;
    if (lines.length === 0) return;
    const problem = appendToLog(this.path, lines.join("\n"), this.#bounds.bytes);
    if (problem === undefined) this.#problem.clear();
    else this.#problem.log("verdicts are not logged", problem);
  }
}

const nil = "<nil>";

const nameOf = ({ namespace, name }: PodRule["policy"]): string => `${namespace}/${name}`;

/** Why a packet was refused: no rule of these policies allows it. */
function causeOf(isolation: Isolation | undefined): string {
  if (isolation === undefined) return "isolated by policies that are gone";
  const { by } = isolation;
  if (by.length === 0) return "isolated: its policies are not known yet";
  const told = by.slice(0, maxCauses).map(nameOf).join(",");
  return `isolated by ${told}${by.length > maxCauses ? ` and ${by.length - maxCauses} more` : ""}`;
}

/** Policies that one line names. */
const maxCauses = 5;

/** As Antrea's agents write it, in UTC. */
const timeOf = (atMs: number): string =>
  `${new Date(atMs).toISOString().replace("T", " ").replaceAll("-", "/").replace("Z", "000")}`;
