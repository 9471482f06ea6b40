import type { Finding } from "./finding.ts";

/** By the agent's word where only it knows which rules there should be, else by a look from here. */
export const notMasqueraded = (problem: string): Finding => ({
  severity: "error",
  code: "masquerade",
  what: problem,
  trusts: "agent.yaml",
  why: "Pods reach nothing outside the node's own networks, where nobody knows their addresses",
  todo: 'have the agent set them up again; find out who loads packet rules with "flush ruleset"',
  repair: { t: "node" },
  evidence: problem,
});
