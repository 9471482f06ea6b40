import { type AttachmentView, nameOf, textOf } from "./attachment-views.ts";
import type { Finding } from "./finding.ts";
import type { NodeSnapshot, SeenPort } from "./node-snapshot.ts";

export const portAlone = ({ owner }: AttachmentView, port: SeenPort): Finding => ({
  severity: "warning",
  code: "port-without-pod",
  what: `The port "${port.name}" of ${nameOf(owner)} has neither interface nor lease behind it`,
  trusts: "the interface",
  why: "Its flows would let a later interface with its number pass for this pod",
  todo: "take the port and its flows out of Open vSwitch",
  repair: { t: "attachment", owner },
  evidence: port.uuid,
});

/** What is wrong with the port of Open vSwitch that an interface should be. */
export function differentPort(
  snapshot: NodeSnapshot,
  { owner, leases, seen, port }: AttachmentView,
): Finding | undefined {
  if (snapshot.switch === undefined || seen === undefined) return undefined;
  const common = { severity: "error", trusts: "the interface", evidence: `${seen.index} ${port?.uuid}` } as const;
  if (port === undefined)
    return {
      ...common,
      code: "interface-without-port",
      what: `The interface "${seen.hostIfname}" of ${nameOf(owner)} is no port of Open vSwitch`,
      why: "No packet of the pod gets anywhere",
      todo: "make the port and its flows again",
      repair: { t: "node" },
    };
  if (port.ofport === undefined)
    return {
      ...common,
      code: "port-without-number",
      what: `Open vSwitch has not made the port "${port.name}" of ${nameOf(owner)}${port.problem ? `: ${port.problem}` : ""}`,
      why: "No packet of the pod gets anywhere",
      todo: "see that ovs-vswitchd runs, and what its log says of this port",
    };
  const { flowPorts } = snapshot.switch;
  if (flowPorts !== undefined && !flowPorts.has(port.ofport))
    return {
      ...common,
      code: "port-without-flows",
      what: `The port "${port.name}" of ${nameOf(owner)} has no flows in the switch`,
      why: "The switch drops what the pod sends",
      todo: "have the agent put them in again",
      repair: { t: "node" },
    };
  const [known, leased] = [textOf(port.ips), textOf(leases.map(({ address }) => address.ip))];
  if (!seen.ownLease || known === leased) return undefined;
  return {
    ...common,
    code: "port-address-differs",
    what: `The port "${port.name}" of ${nameOf(owner)} is for ${known || "no address"}, and leases are for ${leased}`,
    trusts: "the lease",
    why: "The flows let only the port's addresses pass",
    todo: "remove the pod, so that it is made anew",
  };
}
