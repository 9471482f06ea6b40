import type { Finding } from "./finding.ts";
import type { NodeSnapshot } from "./node-snapshot.ts";

/** What a process that was killed left half done in the kernel and in the switch, and what a hand has left of a pod. */
export const leftoverFindings = (snapshot: NodeSnapshot): readonly Finding[] => [
  ...halfMade(snapshot),
  ...strayFlows(snapshot),
  ...bareNamespaces(snapshot),
];

/** Stays when the lease has gone, by a repair or by the janitor: nobody but the runtime can make the pod anew. */
const bareNamespaces = ({ bareNamespaces: found }: NodeSnapshot): readonly Finding[] =>
  found.map(({ path, inode }) => ({
    severity: "warning",
    code: "namespace-without-interface",
    what: `The network namespace "${path}" of a sandbox has no interface that is up, apart from the loopback`,
    trusts: "the kernel",
    why: "Its pod has no network: its interface was deleted or taken down, or never made; no repair can make it anew",
    todo: 'remove the pod, so that it is made anew ("crictl inspectp", "podman inspect" and "lsns -t net" tell whose namespace it is)',
    evidence: inode,
  }));

const halfMade = ({ halfMade: links }: NodeSnapshot): readonly Finding[] =>
  links.map(({ name, index, state }) => ({
    severity: "warning",
    code: "half-made-interface",
    what: `The interface "${name}" is ${state === "arriving" ? "half made" : "given up and not deleted"}`,
    trusts: "the interface's group",
    why:
      state === "arriving"
        ? "An agent was killed while it made it; it has no owner, so no DEL can name it"
        : "An agent was killed before it could delete it, or the kernel refuses",
    todo: "have the agent take it away, as it does at its start",
    repair: { t: "node" },
    evidence: String(index),
  }));

function strayFlows({ switch: seen }: NodeSnapshot): readonly Finding[] {
  if (seen?.flowPorts === undefined) return [];
  return [...seen.flowPorts]
    .filter((number) => !seen.numbers.has(number))
    .map((number) => ({
      severity: "warning",
      code: "flows-without-port",
      what: `The switch has flows of a pod for port ${number}, which the bridge has not`,
      trusts: "the database of Open vSwitch",
      why: "A later port with this number would pass for that pod",
      todo: "have the agent take out every flow that it has not put in itself",
      repair: { t: "node" },
      evidence: String(number),
    }));
}
