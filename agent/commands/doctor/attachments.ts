import { type Claims, claimsIn } from "./claims.ts";
import type { Finding } from "./finding.ts";
import { differentPort, portAlone } from "./port-verdicts.ts";
import type { Sight } from "./sight.ts";
import {
  departing,
  differentAddresses,
  ofNobody,
  unknownToRuntime,
  withoutInterface,
  withoutLease,
} from "./verdicts.ts";

/** What leases, interfaces, ports and the runtime's list do not agree on, one finding per attachment. */
export function attachmentFindings(sight: Sight): readonly Finding[] {
  if (sight.leases === undefined || sight.interfaces === undefined) return [];
  const found = claimsIn(sight).flatMap((claims) => judge(sight, claims) ?? []);
  return [...found, ...unattached(sight)];
}

/** The first that applies: what follows from one disagreement is not told as another. */
function judge(sight: Sight, claims: Claims): Finding | undefined {
  const { owner, leases, seen, port } = claims;
  if (!sight.networks.includes(owner.network)) return ofNobody(claims);
  if (claims.departing) return departing(sight, claims);
  // What has no lease at all is put right by its interface first.
  const isHeld = leases.length > 0 || seen?.ownLease === false;
  if (isHeld && sight.runtime !== undefined && !sight.runtime.knows(owner)) return unknownToRuntime(sight, claims);
  if (seen !== undefined && leases.length === 0 && seen.ownLease) return withoutLease(claims);
  if (seen === undefined && leases.length > 0) return withoutInterface(sight, claims);
  if (seen === undefined && port !== undefined) return portAlone(claims, port);
  return differentAddresses(claims) ?? differentPort(sight, claims);
}

/** Attachments of the runtime's list that no network of ours has. */
function unattached({ runtime, leases = [] }: Sight): readonly Finding[] {
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
