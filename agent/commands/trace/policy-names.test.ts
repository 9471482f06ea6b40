import { expect, test } from "vitest";
import { parseIp } from "../../../shared/net/ip.ts";
import type { Packet } from "./packet.ts";
import { type PolicyAnswers, withPolicyNames } from "./policy-names.ts";
import type { Step, Verdict } from "./verdict.ts";

const ip = (text: string) => parseIp(text)!;
const owner = (sandboxId: string) => ({ network: "pods", sandboxId, ifname: "eth0" });
const port = (name: string, address: string) =>
  ({
    name,
    ofport: 3,
    kind: "pod",
    mac: "",
    pod: { name: `x/${name}`, ips: [ip(address)], owner: owner(name) },
  }) as const;

const packet: Packet = {
  inPort: 3,
  protocol: { t: "tcp", port: 80 },
  source: { ip: ip("10.0.0.2"), mac: "" },
  destination: { ip: ip("10.96.0.1"), mac: "" },
};
/** The service's address has become an endpoint's. */
const pass = {
  flow: "tcp,nw_src=10.0.0.2,nw_dst=10.0.0.3,tp_dst=80",
  hops: [],
  beyond: [],
  finalFlow: "unchanged",
  datapathActions: "drop",
};
const traced = { packet, passes: [pass], ports: [port("a", "10.0.0.2"), port("b", "10.0.0.3")] };

const answers: PolicyAnswers = {
  ask: async (rule) => ({
    rule: rule === 7 ? { policy: "x/web", direction: "egress" } : undefined,
    isolated: [
      { ...{ network: "pods", containerId: "a", ifname: "eth0" }, directions: ["egress"], policies: [] },
      {
        ...{ network: "pods", containerId: "b", ifname: "eth0" },
        directions: ["ingress"],
        policies: ["x/deny", "x/web"],
      },
    ],
    differences: [],
  }),
};
const step = (decided: string, matchInWords: string): Step => ({
  ...{ table: 1, name: "EgressRule", role: "" },
  flow: { priority: 190, match: "", matchInWords, round: 1, category: 1 },
  decided: [decided],
});
const dropped = (table: string): Verdict => ({ t: "dropped", table, reason: "no rule" });

test("rules that are known get their policy's name, and others keep their number", async () => {
  const steps = [step("rule 7 lets it be sent", "ip, rule 7 lets it be sent"), step("rule 8 lets it be sent", "ip")];
  const named = await withPolicyNames({ steps, verdict: dropped("Output") }, traced, answers);
  expect(named.steps.map(({ flow, decided }) => [flow?.matchInWords, ...decided])).toEqual([
    ["ip, rule 7 of NetworkPolicy x/web lets it be sent", "rule 7 of NetworkPolicy x/web lets it be sent"],
    ["ip", "rule 8 lets it be sent"],
  ]);
  const away: PolicyAnswers = { ask: async () => undefined };
  expect(await withPolicyNames({ steps, verdict: dropped("EgressMetric") }, traced, away)).toEqual({
    steps,
    verdict: dropped("EgressMetric"),
  });
});

test("a refused packet is told with what isolates the pod at that end, behind a service too", async () => {
  const reasonAt = async (table: string) =>
    (await withPolicyNames({ steps: [], verdict: dropped(table) }, traced, answers)).verdict;
  expect(await reasonAt("IngressMetric")).toMatchObject({ reason: "no rule (isolated by x/deny, x/web)" });
  expect(await reasonAt("EgressMetric")).toMatchObject({ reason: "no rule (its policies are not known yet)" });
  expect(await reasonAt("SpoofGuard")).toMatchObject({ reason: "no rule" });
});
