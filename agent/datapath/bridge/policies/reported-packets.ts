import type { Owner } from "../../../../shared/cni/types.ts";
import { type Ip, sameIp } from "../../../../shared/net/ip.ts";
import { reasonOf } from "../../../../shared/reason.ts";
import { type Expression, type Kernel, type Report, readReport, reportTo } from "../../../protocols/netlink/mod.ts";
import { digest } from "../../owner-names.ts";
import { packetEnds } from "../../packet-ends.ts";
import type { LoggedVerdicts, NodePolicies, Verdict } from "../../policies.ts";
import { deniedCounter, type PolicedPod, sourcesOf } from "./policy-program.ts";
import { countersOf, type VerdictReports } from "./rule-chains.ts";

export type ReportSocket = ReturnType<Kernel["openPacketReports"]>;

interface ReportedPacketsOptions {
  readonly which: Exclude<LoggedVerdicts, "off">;
  told(verdict: Verdict): void;
  wanted(): NodePolicies | undefined;
  pods(): Iterable<PolicedPod>;
}

/** The kernel keeps reports until then, 2 MiB of them. */
const pollMs = 250;
/** Of one pod's refusals in one direction, or of one rule's connections: so that no pod's noise hides another's. */
const rate = { perSecond: 5, burst: 20 };

/** Groups of this host from which other programs stay away (ulogd and others count from 0). Agents of other bridges have another. */
export function groupOf(table: string): number {
  const [high = 0, low = 0] = digest("reports", table);
  return 0x5000 + (((high << 8) | low) & 0xfff);
}

/** Packets that the rules of policies report, as verdicts. What counts a verdict is also its name in reports. */
export class ReportedPackets implements VerdictReports, Disposable {
  readonly #group: number;
  readonly #socket: ReportSocket;
  readonly #options: ReportedPacketsOptions;
  readonly #timer: ReturnType<typeof setInterval>;
  #named: { readonly wanted: NodePolicies; readonly verdicts: ReadonlyMap<string, Named> } | undefined;
  #problem: string | undefined;

  /** Takes over the socket. */
  constructor(group: number, socket: ReportSocket, options: ReportedPacketsOptions) {
    this.#group = group;
    this.#socket = socket;
    this.#options = options;
    this.#timer = setInterval(() => this.#read(), pollMs);
  }

  /** Why nothing is heard, if so. */
  get problem(): string | undefined {
    return this.#problem;
  }

  opened(counter: string): readonly Expression[] {
    return this.#options.which === "all" ? reportTo(this.#group, counter, rate) : [];
  }

  denied(counter: string): readonly Expression[] {
    return reportTo(this.#group, counter, rate);
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.#socket[Symbol.dispose]();
  }

  #read(): void {
    try {
      this.#socket.drain((message) => {
        const report = readReport(message);
        if (report !== undefined) this.#tell(report);
      });
      this.#problem = undefined;
    } catch (caught) {
      this.#problem = reasonOf(caught);
    }
  }

  #tell({ prefix, packet }: Report): void {
    const wanted = this.#options.wanted();
    if (wanted === undefined) return;
    if (this.#named?.wanted !== wanted) this.#named = { wanted, verdicts: namedIn(wanted) };
    const named = this.#named.verdicts.get(prefix);
    const ends = packetEnds(packet);
    if (named === undefined || ends === undefined) return;
    const owner = named.owner ?? this.#podAt(named.direction === "egress" ? ends.source : ends.destination);
    this.#options.told({ ...named, packet, ...(owner && { owner }) });
  }

  #podAt(ip: Ip): Owner | undefined {
    for (const pod of this.#options.pods()) if (sourcesOf(pod).some((one) => sameIp(one, ip))) return pod.owner;
    return undefined;
  }
}

type Named = Omit<Verdict, "packet">;

/** By their counters. */
function namedIn({ rules, isolated }: NodePolicies): ReadonlyMap<string, Named> {
  const named = new Map<string, Named>();
  for (const rule of rules.values()) named.set(countersOf(rule.id).opened, { direction: rule.direction, rule });
  for (const { owner, directions } of isolated.values())
    for (const direction of directions) named.set(deniedCounter(owner, direction), { direction, owner });
  return named;
}
