import { type AttachmentView, attachmentViews } from "./attachment-views.ts";
import type { Finding } from "./finding.ts";
import type { NodeSnapshot } from "./node-snapshot.ts";
import { differentPort, portAlone } from "./port-verdicts.ts";
import {
  departing,
  differentAddresses,
  ofNobody,
  unknownToRuntime,
  withoutInterface,
  withoutLease,
} from "./verdicts.ts";

/** What leases, interfaces, ports and the runtime's list do not agree on, one finding per attachment. */
export function attachmentFindings(snapshot: NodeSnapshot): readonly Finding[] {
  if (snapshot.leases === undefined || snapshot.interfaces === undefined) return [];
  const found = attachmentViews(snapshot).flatMap((view) => judge(snapshot, view) ?? []);
  return [...found, ...unattached(snapshot)];
}

/** The first that applies: what follows from one disagreement is not told as another. */
function judge(snapshot: NodeSnapshot, view: AttachmentView): Finding | undefined {
  const { owner, leases, seen, port } = view;
  if (!snapshot.networks.includes(owner.network)) return ofNobody(view);
  if (view.isLeaving) return departing(snapshot, view);
  // What has no lease at all is put right by its interface first.
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
