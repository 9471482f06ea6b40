import { privilegedProject } from "./node-registry.ts";

type Vnids = ReadonlyMap<string, number>;

export interface TrustedVnids {
  /** The VNIDs that this node accepts. */
  readonly taken: Vnids;
  /** Why it does not accept others of the registry, a sentence for each project. */
  readonly refused: readonly string[];
}

/**
 * Decides which VNIDs count in a registry that every node may write. Nodes allocate numbers for one project each; only
 * people let projects share a number, or make one global, and they confirm it where nodes cannot write. So an
 * unconfirmed number counts only if this node knew it already, or if its project is new here and no other project has
 * the number. A node that overwrites a VNID gains no access to a project.
 * @param told by the registry, the oldest first
 * @param confirmed by people
 * @param known the VNIDs accepted until now, which are kept if the registry has lost them
 */
export function trustedVnids(told: Vnids, confirmed: Vnids, known: Vnids): TrustedVnids {
  const taken = meant(told, confirmed, known);
  const refused = new Map<string, number>();
  for (const [project, vnid] of known) {
    if (taken.has(project)) continue;
    taken.set(project, vnid);
    const now = told.get(project);
    if (now !== undefined && now !== vnid) refused.set(project, now);
  }
  const holders = new Map<number, string>([...taken].map(([project, vnid]) => [vnid, project]));
  for (const [project, vnid] of told) {
    if (taken.has(project)) continue;
    const isOwn = vnid === 0 ? project === privilegedProject : !holders.has(vnid);
    if (!isOwn) refused.set(project, vnid);
    else {
      taken.set(project, vnid);
      holders.set(vnid, project);
    }
  }
  return {
    taken,
    refused: [...refused].map(([project, vnid]) => sentence(project, vnid, taken.get(project), holders.get(vnid))),
  };
}

/**
 * The VNIDs that people have confirmed. A project that joins another one's number counts only if that one's number is
 * confirmed too.
 */
function meant(told: Vnids, confirmed: Vnids, known: Vnids): Map<string, number> {
  const taken = new Map([...told].filter(([project, vnid]) => confirmed.get(project) === vnid));
  for (;;) {
    const staying = [...known].filter(([project, vnid]) => !taken.has(project) && confirmed.get(project) !== vnid);
    const kept = new Set(staying.map(([, vnid]) => vnid));
    const unconfirmed = [...taken].filter(
      ([project, vnid]) => vnid !== 0 && known.get(project) !== vnid && kept.has(vnid),
    );
    if (unconfirmed.length === 0) return taken;
    // One of these projects may be about to leave its number to another.
    for (const [project] of unconfirmed) taken.delete(project);
  }
}

function sentence(project: string, vnid: number, own: number | undefined, holder: string | undefined): string {
  const here = own === undefined ? "has no VNID here" : `stays with VNID ${own} here`;
  const whose = vnid === 0 ? ", with which all projects reach it" : holder === undefined ? "" : `, that of "${holder}"`;
  return `project "${project}" ${here}: the registry says ${vnid}${whose}, and no person has confirmed it, which "pipette tenants confirm ${project} ${vnid}" would do; "pipette tenants isolate ${project}" gives it one of its own`;
}
