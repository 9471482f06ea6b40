import { privilegedProject } from "./node-registry.ts";

type Vnids = ReadonlyMap<string, number>;

export interface TrustedVnids {
  /** What this node goes by. */
  readonly taken: Vnids;
  /** Why it does not go by what else the registry says, a sentence for each project. */
  readonly refused: readonly string[];
}

/**
 * Which VNIDs of a registry that every node may write count. A node allocates numbers, each for one project; only people
 * let projects share one, or make one global, and their word stands where nodes cannot write. So a number that nobody has
 * confirmed counts where it is as this node knew it, or where it is of a project that is new here, and of no other:
 * whoever overwrites one opens no project.
 * @param told by the registry, the oldest first
 * @param confirmed by people
 * @param known what this node went by until now; what the registry has lost it goes on with
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

/** What people have confirmed. Who comes to a number that another keeps needs the confirmation of that one, too: a person has joined them. */
function meant(told: Vnids, confirmed: Vnids, known: Vnids): Map<string, number> {
  const taken = new Map([...told].filter(([project, vnid]) => confirmed.get(project) === vnid));
  for (;;) {
    const staying = [...known].filter(([project, vnid]) => !taken.has(project) && confirmed.get(project) !== vnid);
    const kept = new Set(staying.map(([, vnid]) => vnid));
    const unconfirmed = [...taken].filter(
      ([project, vnid]) => vnid !== 0 && known.get(project) !== vnid && kept.has(vnid),
    );
    if (unconfirmed.length === 0) return taken;
    // One of these may have been about to leave a number to others.
    for (const [project] of unconfirmed) taken.delete(project);
  }
}

function sentence(project: string, vnid: number, own: number | undefined, holder: string | undefined): string {
  const here = own === undefined ? "has no VNID here" : `stays with VNID ${own} here`;
  const whose = vnid === 0 ? ", with which all projects reach it" : holder === undefined ? "" : `, that of "${holder}"`;
  return `project "${project}" ${here}: the registry says ${vnid}${whose}, and no person has confirmed it, which "pipette tenants confirm ${project} ${vnid}" would do; "pipette tenants isolate ${project}" gives it one of its own`;
}
