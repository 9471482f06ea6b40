import { limits } from "../../../shared/limits.ts";
import { parseIp, sameIp } from "../../../shared/net/ip.ts";
import { type ListPoliciesResponse, policyService } from "../../../shared/proto/daemon-services.ts";
import { callUnary } from "../../../shared/rpc/call.ts";
import type { Packet } from "./packet.ts";
import type { SwitchPort } from "./switch-ports.ts";
import { type Pass, stateAfter } from "./trace-text.ts";
import type { Step, Verdict } from "./verdict.ts";

/** What a trace says of policies, which the switch knows by numbers only. */
export interface PolicyAnswers {
  /** `undefined` where the agent cannot be asked. @param rule its number; 0: only what is isolated */
  ask(rule: number): Promise<ListPoliciesResponse | undefined>;
}

export const agentsPolicies = (socket: string): PolicyAnswers => ({
  ask: async (rule) => {
    try {
      const timeoutMs = limits.statusTimeoutMs;
      return await callUnary(socket, policyService.list, { rule }, { timeoutMs });
    } catch {
      // Without an agent, or with one of an earlier release, the numbers stay.
      return undefined;
    }
  },
});

interface Told {
  readonly steps: readonly Step[];
  readonly verdict: Verdict;
}

const ruleWords = /\brule (\d+) lets it be\b/g;
const isolating = { EgressMetric: "egress", IngressMetric: "ingress" } as const;

/** The same with the names of policies: of rules by their numbers, and of those that isolate whom a packet is refused to. */
export async function withPolicyNames(
  { steps, verdict }: Told,
  traced: { readonly packet: Packet; readonly passes: readonly Pass[]; readonly ports: readonly SwitchPort[] },
  policies: PolicyAnswers,
): Promise<Told> {
  const texts = steps.flatMap(({ flow, decided }) => [flow?.matchInWords ?? "", ...decided]);
  const numbers = new Set(texts.flatMap((text) => [...text.matchAll(ruleWords)].map(([, number]) => Number(number))));
  const names = new Map<string, string>();
  for (const number of numbers) {
    const { rule } = (await policies.ask(number)) ?? {};
    if (rule !== undefined) names.set(String(number), rule.policy);
  }
  const named = (text: string): string =>
    text.replaceAll(ruleWords, (whole, number: string) =>
      names.has(number) ? `rule ${number} of NetworkPolicy ${names.get(number)} lets it be` : whole,
    );
  return {
    steps: steps.map(({ flow, decided, ...step }) => ({
      ...step,
      ...(flow === undefined ? {} : { flow: { ...flow, matchInWords: named(flow.matchInWords) } }),
      decided: decided.map(named),
    })),
    verdict: await withIsolation(verdict, traced, policies),
  };
}

async function withIsolation(
  verdict: Verdict,
  { packet, passes, ports }: Parameters<typeof withPolicyNames>[1],
  policies: PolicyAnswers,
): Promise<Verdict> {
  if (verdict.t !== "dropped") return verdict;
  const direction = Object.entries(isolating).find(([table]) => table === verdict.table)?.[1];
  if (direction === undefined) return verdict;
  // Behind a service the destination is the endpoint by now.
  const target = parseIp(/,(?:nw_dst|ipv6_dst)=([^,]+)/.exec(stateAfter(passes.at(-1)))?.[1] ?? "");
  const ip = direction === "egress" ? packet.source.ip : (target ?? packet.destination.ip);
  const owner = ports.find(({ pod }) => pod?.ips.some((own) => sameIp(own, ip)))?.pod?.owner;
  if (owner === undefined) return verdict;
  const isolated = (await policies.ask(0))?.isolated ?? [];
  const found = isolated.find(
    ({ network, containerId, ifname }) =>
      network === owner.network && containerId === owner.sandboxId && ifname === owner.ifname,
  );
  if (found === undefined) return verdict;
  const by =
    found.policies.length === 0 ? "its policies are not known yet" : `isolated by ${found.policies.join(", ")}`;
  return { ...verdict, reason: `${verdict.reason} (${by})` };
}
