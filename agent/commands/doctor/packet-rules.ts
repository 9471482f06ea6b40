import type { Finding } from "./finding.ts";

/** By the agent's word where only it knows which rules there should be, else by a look from here. */
export const rulesMissing = (problem: string): Finding => ({
  severity: "error",
  code: "packet-rules",
  what: problem,
  trusts: "agent.yaml",
  why: "Pods may reach nothing outside the node's own networks, where nobody knows their addresses, pass for one another, and reach what the node serves to itself alone",
  todo: 'have the agent set them up again (it needs "nft"); find out who loads packet rules with "flush ruleset"',
  repair: { t: "node" },
  evidence: problem,
});
