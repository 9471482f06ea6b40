import { CniCode, CniError } from "../../shared/errors.ts";
import { isWindows } from "../../shared/os/platform.ts";
import { isForbidden, whoMay } from "../../shared/os/rights.ts";
import { reasonOf } from "../../shared/reason.ts";
import { generationMark } from "../allocate/marks.ts";
import type { Lease } from "../lease.ts";
import { missingSince } from "../recovery/integrity.ts";
import { isDamage } from "../store/sqlite-errors.ts";
import { StoreSnapshot } from "../store/store-snapshot.ts";
import { type Finding, severities } from "./finding.ts";
import { type CheckContext, LeaseChecker } from "./lease-checks.ts";
import { checkTakenRuns } from "./taken-runs.ts";

export interface CheckOptions extends Omit<CheckContext, "generation"> {
  readonly onProgress?: (done: number, total: number) => void;
}

/** Findings of one kind that are listed. */
const maxOfAKind = 20;
const leasesPerReport = 500;
const longPendingMs = 10 * 60_000;

export interface CheckReport {
  /** How many leases were checked; 0 if the file is damaged. */
  readonly leases: number;
  readonly findings: readonly Finding[];
}

/**
 * As `checkStore`, of the file at `path`; a file that is too damaged to be opened is a finding too.
 * @returns `undefined` where there is no file
 * @throws {CniError} code 101 naming the path, 11 where others keep the lock
 */
export async function checkDatabase(path: string, options: CheckOptions): Promise<CheckReport | undefined> {
  try {
    using snapshot = await StoreSnapshot.open(path);
    if (snapshot === undefined) return undefined;
    const findings = await checkStore(snapshot, options);
    const damaged = findings.some(({ code }) => code === "damaged-file");
    return { leases: damaged ? 0 : snapshot.countLeases(), findings };
  } catch (caught) {
    if (!isDamage(caught)) throw caught;
    const text = reasonOf(caught);
    return { leases: 0, findings: [damageFinding(path, text)] };
  }
}

/**
 * Checks everything in the database that the allocator relies on; answers what is wrong, the worst first. Reads one
 * snapshot once, and changes nothing.
 */
export async function checkStore(snapshot: StoreSnapshot, options: CheckOptions): Promise<readonly Finding[]> {
  const { onProgress, ...context } = options;
  const findings: Finding[] = [...(await openToOthers(snapshot.path))];
  try {
    findings.push(...snapshot.damage(maxOfAKind).map((text) => damageFinding(snapshot.path, text)));
    const marks = snapshot.marks();
    const checker = new LeaseChecker({ ...context, generation: Number(marks.get(generationMark) ?? "0") });
    findings.push(...checkTakenRuns(snapshot, inspected(snapshot, checker, onProgress), maxOfAKind));
    findings.push(
      ...leasesLost(marks, checker.networks),
      ...checker.findings(),
      ...doubles(snapshot),
      ...pendingDetaches(snapshot, context.nowMs),
    );
  } catch (caught) {
    if (!isDamage(caught)) throw caught;
    findings.push(damageFinding(snapshot.path, reasonOf(caught)));
  }
  return findings.sort((a, b) => severities.indexOf(a.severity) - severities.indexOf(b.severity));
}

const damageFinding = (path: string, text: string): Finding => ({
  severity: "error",
  code: "damaged-file",
  what: `"${path}" is damaged: ${text}`,
  why: "What it says cannot be trusted: an address in use could be given out again",
  todo: "restart the agent, or without one let the next pod start: it sets the file aside and keeps what can be read; look at the disk (the kernel's log tells more)",
});

function* inspected(
  snapshot: StoreSnapshot,
  checker: LeaseChecker,
  onProgress: CheckOptions["onProgress"],
): Generator<Lease, void> {
  const total = onProgress === undefined ? 0 : snapshot.countLeases();
  let done = 0;
  for (const lease of snapshot.leases()) {
    checker.look(lease);
    if (++done % leasesPerReport === 0) onProgress?.(done, total);
    yield lease;
  }
}

/** A database that was rebuilt says so until each network is known to be complete; one without any lease counts as well. */
function leasesLost(marks: ReadonlyMap<string, string>, networks: ReadonlySet<string>): readonly Finding[] {
  const store = { mark: (name: string): string | undefined => marks.get(name) };
  return [...(networks.size === 0 ? [""] : networks)].flatMap((network): readonly Finding[] => {
    const aside = missingSince(store, network);
    if (aside === undefined) return [];
    const whose = network === "" ? "" : ` of network "${network}"`;
    return [
      {
        severity: "warning",
        code: "leases-lost",
        ...(network === "" ? {} : { network }),
        what: `Some leases${whose} were lost when the database was damaged; the damaged one is "${aside}"`,
        why: "No pod that has no lease gets an address, because one that seems free may be in use",
        todo: 'start the agent, which makes its own networks complete; elsewhere restart the pods that have no lease, or empty the node, then "pipette ipam gc" with what runs',
      },
    ];
  });
}

const doubles = (snapshot: StoreSnapshot): readonly Finding[] => [
  ...snapshot.generationsTwice(maxOfAKind).map(
    (generation): Finding => ({
      severity: "error",
      code: "generation-twice",
      what: `Generation ${generation} names more than one lease`,
      why: "Whoever ends one of them by its generation can end the other",
      todo: "remove these pods; find out who wrote into the database",
    }),
  ),
  ...snapshot.holdingTwice(maxOfAKind).map(
    ({ network, sandboxId, ifname }): Finding => ({
      severity: "warning",
      code: "two-addresses",
      network,
      what: `Sandbox "${sandboxId}" (${ifname}) of network "${network}" holds two addresses of one range set and family`,
      why: "It uses one of them at most; host-local gave a second one to whoever asked for an address twice",
      todo: "remove the pod: its DEL releases both",
    }),
  ),
];

function pendingDetaches(snapshot: StoreSnapshot, nowMs: number): readonly Finding[] {
  return snapshot
    .pendingDetaches()
    .filter(({ sinceMs }) => nowMs - sinceMs > longPendingMs)
    .slice(0, maxOfAKind)
    .map(({ owner, sinceMs }) => ({
      severity: "warning",
      code: "long-departing",
      network: owner.network,
      what: `The interface "${owner.ifname}" of sandbox "${owner.sandboxId}" waits to be taken away since ${new Date(sinceMs).toISOString()}`,
      why: "It may stand although its pod is gone",
      todo: 'start the agent, which finishes it ("pipette status")',
    }));
}

/** SQLite's log beside the file holds lease data too, so its rights count as well. */
async function openToOthers(path: string): Promise<readonly Finding[]> {
  if (isWindows) return [];
  const findings: Finding[] = [];
  for (const file of [path, `${path}-wal`]) {
    const mode = await modeOf(file);
    if (mode === undefined || (mode & 0o077) === 0) continue;
    findings.push({
      severity: "warning",
      code: "open-to-others",
      what: `"${file}" has mode ${(mode & 0o777).toString(8).padStart(4, "0")}, which lets others than its owner in`,
      why: "Who can write to it can give one pod's address to another",
      todo: `chmod 0600 "${file}"`,
    });
  }
  return findings;
}

async function modeOf(file: string): Promise<number | undefined> {
  try {
    return (await Bun.file(file).stat()).mode;
  } catch {
    return undefined; // SQLite's log may be absent.
  }
}

/**
 * For commands that people start: SQLite's own error for a file without permission would mislead them. A plugin runs as
 * root and needs no such check.
 * @throws {CniError} code 101 where this user may not open the database
 */
export function requireRights(database: string): void {
  if (!isForbidden(database)) return;
  const is = "this user may not open it (EACCES)";
  throw new CniError(CniCode.ipamFailure, `Cannot use the lease database "${database}": ${is}, wanted ${whoMay}`);
}
