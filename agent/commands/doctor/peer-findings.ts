import type { PeerTrouble } from "../../../shared/proto/pipette-messages.ts";
import type { Finding } from "./finding.ts";

/** A way to another node's pods that does not work, as the agent has found by asking. */
export function peerFinding({ node, state, message, sinceMs }: PeerTrouble): Finding {
  const what = `Since ${new Date(sinceMs).toISOString()} ${message}`;
  // The time and the node tell it from another loss; what is known of the cause may change.
  const common = { what, trusts: "the agent", evidence: `${node} ${state} ${sinceMs}` } as const;
  if (state === "mtu")
    return {
      ...common,
      severity: "error",
      code: "peer-mtu",
      why: "Connections open and then hang: what is small comes through, and full packets vanish on the way",
      todo: 'set the "mtu" that the sentence names in agent.yaml of all nodes (pods have it from their next start), or raise the MTU of the network between the nodes',
    };
  if (state === "silent")
    return {
      ...common,
      severity: "warning",
      code: "peer-silent",
      why: "An echo by the way of pods' packets never came back: pods there are not reached, or that node answers none, as a firewall of Windows has it",
      todo: `ping a pod of "${node}" from one of this node; if that fails, look there at "pipette doctor", and at firewalls between the nodes`,
    };
  return {
    ...common,
    severity: "error",
    code: "peer-lost",
    why: "An echo by the way of pods' packets came back before, and does no more: pods here and there do not reach each other",
    todo: `see whether "${node}" runs and this node reaches its own address; then "pipette doctor" there, and firewalls between the nodes: tunnels need their port in both directions`,
  };
}
