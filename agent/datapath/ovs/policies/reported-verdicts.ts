import type { Direction } from "../../../../shared/policy/mod.ts";
import { type ConnectionEvent, forwardPackets, type PacketIn } from "../../../protocols/openflow/mod.ts";
import { packetEnds } from "../../packet-ends.ts";
import type { PodRule, Verdict } from "../../policies.ts";
import { Category, readCookie } from "../pipeline/cookie.ts";
import { registers } from "../pipeline/registers.ts";
import { tables } from "../pipeline/tables.ts";
import { keepConnected, programBounds } from "../program/connection.ts";
import type { PolicyFlows } from "./policy-flows.ts";

interface ReportedVerdictsOptions {
  readonly management: string;
  readonly flows: Pick<PolicyFlows, "ruleOf" | "podAt">;
  told(verdict: Verdict): void;
}

const ethernetBytes = 14;

/**
 * Hears of packets that the flows of policies report, over a connection of its own: the program's is not to wait behind
 * them. While it is not there nothing is reported.
 */
export class ReportedVerdicts implements AsyncDisposable {
  readonly #options: ReportedVerdictsOptions;
  readonly #closing = new AbortController();
  readonly #running: Promise<void>;

  constructor(options: ReportedVerdictsOptions) {
    this.#options = options;
    this.#running = keepConnected({
      management: options.management,
      bounds: programBounds,
      closing: this.#closing.signal,
      serve: async (client) => {
        await client.run([forwardPackets]);
        throw await client.closed;
      },
      onEvent: (event: ConnectionEvent) => {
        if (event.t === "packet-in" && readCookie(event.cookie).category === Category.policy)
          for (const verdict of this.#verdicts(event)) options.told(verdict);
      },
      down: () => undefined,
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    await this.#running;
  }

  *#verdicts({ table, match, packet: frame }: PacketIn): Iterable<Verdict> {
    const packet = frame.subarray(ethernetBytes);
    const value = ({ field, from, count }: (typeof registers)["egressRule"]): number => {
      const found = match.fields.find((one) => one.field.name === field.name)?.value ?? 0n;
      return Number((found >> BigInt(from)) & ((1n << BigInt(count)) - 1n));
    };
    const { flows } = this.#options;
    const ends = packetEnds(packet);
    if (ends === undefined) return;
    const verdict = (direction: Direction, rule?: PodRule): Verdict => {
      const at = direction === "egress" ? { ip: ends.source } : { ofport: value(registers.outputPort) };
      const owner = flows.podAt(at);
      return { direction, packet, ...(owner && { owner }), ...(rule && { rule }) };
    };
    if (table === tables.EgressMetric) yield verdict("egress");
    else if (table === tables.IngressMetric) yield verdict("ingress");
    else if (table === tables.ConntrackCommit)
      for (const [direction, judged, number] of [
        ["egress", registers.egressJudged, registers.egressRule],
        ["ingress", registers.ingressJudged, registers.ingressRule],
      ] as const) {
        const rule = value(judged) === 1 ? flows.ruleOf(value(number)) : undefined;
        if (rule !== undefined) yield verdict(direction, rule);
      }
  }
}
