import { hasSystemd, isWindows } from "../../../shared/os/platform.ts";
import type { RegistryTrouble } from "../../../shared/proto/pipette-messages.ts";
import { version } from "../../../shared/version.ts";
import { isMissingPlugin } from "../../conflist/listed-plugins.ts";
import { isKubeProxyProblem } from "../../datapath/linux/kube-proxy.ts";
import { isRulesProblem } from "../../datapath/linux/rule-keeper.ts";
import type { Finding } from "./finding.ts";
import type { NodeSnapshot } from "./node-snapshot.ts";
import { peerFinding } from "./peer-findings.ts";

/** Whether the agent serves, and what it says itself. */
export function agentFindings({ agent, networks }: NodeSnapshot, socket: string): readonly Finding[] {
  if (agent.t === "away")
    return [
      {
        severity: "error",
        code: "agent-away",
        what: `The agent does not answer at "${socket}"`,
        why: `No pod can be added; DELs are noted and wait (${agent.reason})`,
        todo: `start it, and look at its log (${whereItsLogIs()})`,
        evidence: "",
      },
    ];
  const {
    problems,
    shortcomings,
    refusals,
    registryTroubles,
    version: running,
    networks: served,
    departing,
    policyDifferences,
    serviceDifferences,
    servicesFault,
    peerTroubles,
  } = agent.status;
  const unserved = networks.filter((name) => !served.includes(name));
  return [
    ...problems
      .filter(({ message }) => !isMissingPlugin(message))
      .map(({ message, advisory }) => (isRulesProblem(message) ? rulesMissing(message) : troubled(message, advisory))),
    ...shortcomings.map((what) => (isKubeProxyProblem(what) ? kubeProxyBeside(what) : lacking(what))),
    ...policyDifferences.map(policyDiffers),
    ...serviceDifferences.map(serviceDiffers),
    ...(servicesFault === "" ? [] : [servicesNotFollowed(servicesFault)]),
    ...refusals.map(refused),
    ...registryTroubles.map(registryTrouble),
    ...peerTroubles.map(peerFinding),
    ...(departing === 0 ? [] : [takingAway(departing)]),
    ...(running === version ? [] : [otherVersion(running)]),
    ...unserved.map(notServed),
  ];
}

function whereItsLogIs(): string {
  if (isWindows) return "agent.log of its data directory; sc.exe query pipette-agent";
  return hasSystemd()
    ? "journalctl -u pipette-agent"
    : 'of its pod on this node, or of what else starts "pipette agent"';
}

const troubled = (what: string, advisory: boolean): Finding => ({
  severity: "error",
  code: "agent-problem",
  what,
  why: advisory
    ? "The agent says so itself. Pods that run are well, and the node stays ready; new ones wait"
    : "The agent says so itself, and fails STATUS until it is over, which makes the node not ready",
  todo: "put right what the sentence names; the agent goes on trying, and its log tells more",
  evidence: "",
});

const lacking = (what: string): Finding => ({
  severity: "error",
  code: "shortcoming",
  what: `${what.charAt(0).toUpperCase()}${what.slice(1)}`,
  trusts: "the agent",
  why: "The agent has compared what is with what it had asked for; pods, or the way to another node, go without it",
  todo: "have the agent put it right, as it does once a minute; what comes again and again is somebody else's work, or a record of a node that cannot be right",
  repair: { t: "node" },
  evidence: what,
});

const policyDiffers = (what: string): Finding => ({
  severity: "error",
  code: "policy-differs",
  what: `Of network policies: ${what}`,
  trusts: "the agent",
  why: "What a policy forbids may pass, or what it allows be refused, until what is in force is again what the agent wants",
  todo: "have the agent put it in force again, as it does once a minute; find out who else changes flows or packet rules",
  repair: { t: "node" },
  evidence: what,
});

const serviceDiffers = (what: string): Finding => ({
  severity: "error",
  code: "service-differs",
  what: `Of services: ${what}`,
  trusts: "the agent",
  why: "A service may answer nobody, or lead to pods that are gone, until what is in force is again what the agent wants",
  todo: "have the agent put it in force again, as it does once a minute; find out who else changes flows, packet rules or load balancers",
  repair: { t: "node" },
  evidence: what,
});

const servicesNotFollowed = (reason: string): Finding => ({
  severity: "error",
  code: "services-not-followed",
  what: "The agent cannot follow the services that it balances",
  trusts: "what was last known",
  why: `Those in force stay; new services, and pods that come and go, are not heard of (${reason})`,
  todo: "put right what the reason names; the agent tries again by itself, and its log says when it works",
  evidence: reason,
});

const kubeProxyBeside = (what: string): Finding => ({
  severity: "error",
  code: "kube-proxy-beside",
  what: `${what.charAt(0).toUpperCase()}${what.slice(1)}`,
  trusts: "agent.yaml",
  why: "Two that balance the same service send its packets to different pods, and the other's rules outlive what it is told",
  todo: 'take kube-proxy off the node with its rules, or leave it what the node and others send ("services.proxyAll: false")',
  evidence: what,
});

const refused = (what: string): Finding => ({
  severity: "error",
  code: "refused-record",
  what: `${what.charAt(0).toUpperCase()}${what.slice(1)}`,
  trusts: "what this node knew before, and its own configuration",
  why: "The registry says what cannot be, or what another has: a mistake, or somebody who writes there and should not",
  todo: 'find out who wrote it, and put the record right: "pipette nodes list", "pipette tenants list"; what is in order again is taken at once',
  evidence: what,
});

const registryTrouble = ({ what, reason, sinceMs }: RegistryTrouble): Finding => ({
  severity: "error",
  code: "registry-lost",
  what: `The agent cannot ${what}, since ${new Date(sinceMs).toISOString()}`,
  why: `Pods go on with what was last known; changes of other nodes are not heard of (${reason})`,
  todo: "put right what the reason names; the agent tries again by itself, and its log says when it works",
  evidence: what,
});

const takingAway = (count: number): Finding => ({
  severity: "note",
  code: "taking-away",
  what: `The agent is taking ${count} attachments away`,
  why: "Their DELs are on record, or could not be finished; the agent goes on with them, later each time",
  todo: "nothing, unless it lasts: then the agent's log tells what keeps it",
  evidence: "",
});

const otherVersion = (running: string): Finding => ({
  severity: "note",
  code: "other-version",
  what: `The agent that runs is of version ${running}, this command of ${version}`,
  why: "The executable was replaced since its start; they serve each other",
  todo: "start the agent again when it suits",
  evidence: running,
});

const notServed = (network: string): Finding => ({
  severity: "error",
  code: "not-served",
  what: `agent.yaml has the network "${network}", and the agent does not serve it`,
  trusts: "the agent",
  why: "The file was changed since the agent's start",
  todo: "start the agent again",
  evidence: network,
});

/** Reported by the agent if only it knows the expected rules, else found by checking here. */
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
