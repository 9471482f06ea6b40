import { isStaleLease } from "../../../ipam/mod.ts";
import { limits } from "../../../shared/limits.ts";
import { contains, formatIp } from "../../../shared/net/ip.ts";
import type { Finding } from "./finding.ts";
import {
  type AttachmentView,
  attachmentViews,
  type NodeSnapshot,
  nameOf,
  type SeenPort,
  textOf,
} from "./node-snapshot.ts";

/** What leases, interfaces, ports and the runtime's list do not agree on, one finding per attachment. */
export function attachmentFindings(snapshot: NodeSnapshot): readonly Finding[] {
  if (snapshot.leases === undefined || snapshot.interfaces === undefined) return [];
  const found = attachmentViews(snapshot).flatMap((view) => judge(snapshot, view) ?? []);
  return [...found, ...unattached(snapshot)];
}

/** Only the first finding that applies, since further ones would be consequences of it. */
function judge(snapshot: NodeSnapshot, view: AttachmentView): Finding | undefined {
  const { owner, leases, seen, port } = view;
  if (!snapshot.networks.includes(owner.network)) return ofNobody(view);
  if (view.departing) return departing(snapshot, view);
  // An attachment without any lease is judged by its interface first.
  const isHeld = leases.length > 0 || seen?.ownLease === false;
  if (isHeld && snapshot.runtime !== undefined && !snapshot.runtime.knows(owner))
    return unknownToRuntime(snapshot, view);
  if (seen !== undefined && leases.length === 0 && seen.ownLease) return withoutLease(view);
  if (seen === undefined && leases.length > 0) return withoutInterface(snapshot, view);
  if (seen === undefined && port !== undefined) return portAlone(view, port);
  return differentAddresses(view) ?? differentPort(snapshot, view);
}

/** Attachments of the runtime's list that no network of ours has. */
function unattached({ runtime, leases = [] }: NodeSnapshot): readonly Finding[] {
  const holders = leases.filter(({ state }) => state === "allocated").map(({ owner }) => owner);
  const missing = (runtime?.attachments ?? []).filter(
    ({ containerId, ifname }) =>
      !holders.some((owner) => owner.sandboxId === containerId && ["", ifname].includes(owner.ifname)),
  );
  return missing.map(({ containerId, ifname }) => ({
    severity: "error",
    code: "pod-without-lease",
    what: `The runtime has "${ifname}" of "${containerId}", for which there is no lease`,
    trusts: "the runtime",
    why: "The pod has no network, or an address that can be given to another; where another plugin gives addresses this means nothing",
    todo: "remove the pod, so that it is made anew",
    evidence: "runtime",
  }));
}

export function ofNobody({ owner, seen }: AttachmentView): Finding | undefined {
  if (seen === undefined) return undefined;
  return {
    severity: "note",
    code: "unserved-network",
    what: `The interface "${seen.hostIfname}" is of ${nameOf(owner)}, a network that this agent does not serve`,
    why: "Another agent's, or one of a network that was taken out of agent.yaml: nobody unwires it here",
    todo: "nothing where another agent serves it; else remove the pod, or configure the network again",
    evidence: String(seen.index),
  };
}

/** The janitor handles a lease within its interval; a busy owner takes longer. */
const finishMs = 10_000;

export function departing(snapshot: NodeSnapshot, view: AttachmentView): Finding {
  const { owner, releasedAtMs } = view;
  const isDown = snapshot.agent.t === "away";
  const isLate = snapshot.nowMs - releasedAtMs > Math.max(finishMs, 2 * snapshot.janitorIntervalMs);
  const isWaiting = !isDown && (releasedAtMs === 0 || !isLate);
  return {
    severity: isWaiting ? "note" : "warning",
    code: "departing",
    what: `${nameOf(owner)} was given up and is not taken away yet`,
    trusts: "the lease",
    why: "Its DEL is on record; interface and address are kept until somebody has unwired it",
    todo: isDown ? "start the agent, which finishes it" : "let the agent finish it now; its log tells what keeps it",
    ...(isWaiting ? {} : { repair: { t: "attachment", owner } }),
    evidence: `released ${releasedAtMs}`,
  };
}

/** Tolerates pods that came while the runtime's list was being made; far longer than clocks usually differ. */
const listLagMs = 60_000;

export function unknownToRuntime(snapshot: NodeSnapshot, view: AttachmentView): Finding {
  const { owner, leases, seen, port } = view;
  const youngest = Math.max(0, ...leases.map(({ allocatedAtMs }) => allocatedAtMs));
  const takenAtMs = snapshot.runtime?.takenAtMs ?? 0;
  const mayBeNew = leases.length === 0 || youngest > takenAtMs - listLagMs;
  const [first] = leases;
  const has = [
    ...leases.map(({ address }) => `the address ${formatIp(address.ip)}`),
    ...(seen === undefined ? [] : [`the interface "${seen.hostIfname}"`]),
    ...(port === undefined ? [] : [`the port "${port.name}"`]),
  ];
  const common = {
    what: `The runtime does not know ${nameOf(owner)}, which has ${has.join(", ")}`,
    trusts: "the runtime",
    evidence: leases.map(({ generation }) => generation).join(" ") || String(seen?.index ?? port?.uuid),
  };
  if (mayBeNew)
    return {
      ...common,
      severity: "note",
      code: "unknown-to-runtime-yet",
      why: "It may have come while the list was being made: its lease is of the last minute, or another plugin's",
      todo: "look again in a minute, with a new list; what another plugin has the lease of, the runtime's own GC takes away",
    };
  return {
    ...common,
    severity: "warning",
    code: "unknown-to-runtime",
    why: "The runtime alone decides which pods there are; a DEL that never came keeps its address out of use",
    todo: "take its interface away and let its address cool",
    ...(first === undefined ? {} : { repair: { t: "attachment", owner, goneGeneration: first.generation } }),
  };
}

export const withoutLease = ({ owner, seen }: AttachmentView): Finding => ({
  severity: "error",
  code: "interface-without-lease",
  what: `The interface "${seen?.hostIfname}" of ${nameOf(owner)} stands without a lease`,
  trusts: "the interface",
  why: "A pod may be using its address, which the database takes for free and can give to another",
  todo: "give it its lease again; take it away where that lease had ended",
  repair: { t: "attachment", owner },
  evidence: String(seen?.index),
});

export function withoutInterface(snapshot: NodeSnapshot, { owner, leases }: AttachmentView): Finding {
  const addresses = leases.map(({ address }) => formatIp(address.ip));
  const common = {
    what: `${nameOf(owner)} holds ${addresses.join(", ")} and has no interface`,
    evidence: leases.map(({ generation }) => generation).join(" "),
  };
  if (leases.every((lease) => isStaleLease(lease, snapshot.bootId)))
    return {
      ...common,
      severity: "note",
      code: "earlier-boot",
      trusts: "the lease",
      why: "The node has booted since; the runtime may bring the sandbox back",
      todo: `nothing: the agent gives it back ${limits.staleGraceMs / 60_000} minutes after its start`,
    };
  const elsewhere = addresses.filter((address) => snapshot.namespaceAddresses.has(address));
  if (elsewhere.length > 0)
    return {
      ...common,
      severity: "warning",
      code: "lease-behind-another-interface",
      trusts: "the namespace",
      why: `${elsewhere.join(", ")} stands in a network namespace of this node, on an interface that is not ours`,
      todo: "find out who wired it; remove the pod, whose DEL releases the address",
    };
  const youngest = Math.max(...leases.map(({ allocatedAtMs }) => allocatedAtMs));
  const callsRun = snapshot.agent.t === "answers" && snapshot.agent.status.callsInFlight > 0;
  if (callsRun && Math.abs(snapshot.nowMs - youngest) < limits.addTimeoutMs)
    return {
      ...common,
      severity: "note",
      code: "under-way",
      trusts: "the lease",
      why: "The lease is younger than an ADD may take, and calls are under way",
      todo: "nothing",
    };
  return {
    ...common,
    severity: "error",
    code: "lease-without-interface",
    trusts: "the kernel, which has none",
    why: "An address that stands nowhere on the node is in nobody's use; a pod that should have it has no network",
    todo: "let the address cool; a pod that still runs has to be removed, so that it is made anew",
    repair: { t: "attachment", owner },
  };
}

export function differentAddresses({ owner, leases, seen }: AttachmentView): Finding | undefined {
  if (seen?.addresses === undefined || !seen.ownLease) return undefined;
  // Addresses of other blocks may come from plugins later in the chain.
  const inBlocks = seen.addresses.filter((ip) => leases.some(({ address }) => contains(address, ip)));
  const [leased, standing] = [textOf(leases.map(({ address }) => address.ip)), textOf(inBlocks)];
  if (leased === standing) return undefined;
  return {
    severity: "error",
    code: "address-differs",
    what: `${nameOf(owner)} has ${standing || "no address"} on its interface, and leases for ${leased}`,
    trusts: "the lease",
    why: "An address without a lease can be given to another pod; a lease without its address keeps one out of use",
    todo: "remove the pod, so that it is made anew; find out who changed its interface",
    evidence: `${seen.index} ${leases.map(({ generation }) => generation).join(" ")}`,
  };
}

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

/** What is wrong with an interface's port in Open vSwitch. */
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
