import { formatIp } from "../../shared/net/ip.ts";
import type { Lease } from "../lease.ts";
import { ipOfKey, keyOfNumber } from "../store/address-key.ts";
import { runsOfLeases, type TakenRun } from "../store/runs-of-leases.ts";
import type { StoreSnapshot } from "../store/store-snapshot.ts";
import type { Finding } from "./finding.ts";

/** Compares the table of taken runs with the leases it is derived from; answers the first `most` differences. */
export function checkTakenRuns(snapshot: StoreSnapshot, leases: Iterable<Lease>, most: number): readonly Finding[] {
  const wanted = runsOfLeases(leases);
  const noted = snapshot.runs();
  const findings: Finding[] = [];
  let [want, note] = [wanted.next(), noted.next()];
  // Both are read to the end, because other checks use the leases as they pass.
  while (want.done !== true || note.done !== true) {
    const [a, b] = [want.done === true ? undefined : want.value, note.done === true ? undefined : note.value];
    const order = compare(a, b);
    if (order === 0 && a?.last !== b?.last && findings.length < most) findings.push(lengthDiffers(a, b));
    if (order < 0 && a !== undefined && findings.length < most) findings.push(missing(a));
    if (order > 0 && b !== undefined && findings.length < most) findings.push(empty(b));
    if (order <= 0) want = wanted.next();
    if (order >= 0) note = noted.next();
  }
  return findings;
}

/** By network and first address; a list that has ended comes last. */
function compare(a: TakenRun | undefined, b: TakenRun | undefined): number {
  if (a === undefined || b === undefined) return a === b ? 0 : a === undefined ? 1 : -1;
  if (a.network !== b.network) return a.network < b.network ? -1 : 1;
  return a.first === b.first ? 0 : a.first < b.first ? -1 : 1;
}

const repair = 'run "pipette ipam check --repair", which notes anew what is taken';

const missing = (run: TakenRun): Finding => ({
  severity: "error",
  code: "taken-run-missing",
  network: run.network,
  what: `${runText(run)} has leases and is not noted as taken`,
  why: "An address in use can be given to another pod",
  todo: repair,
  repairable: true,
});

const empty = (run: TakenRun): Finding => ({
  severity: "error",
  code: "taken-run-empty",
  network: run.network,
  what: `${runText(run)} is noted as taken as a run of its own, which the leases do not say`,
  why: "Free addresses are never given out, or addresses in use are given out again",
  todo: repair,
  repairable: true,
});

function lengthDiffers(want: TakenRun | undefined, note: TakenRun | undefined): Finding {
  const network = want?.network ?? "";
  return {
    severity: "error",
    code: "taken-run-split",
    network,
    what: `${want === undefined ? "" : runText(want)} has leases, and ${note === undefined ? "" : runText(note)} is noted as taken`,
    why: "An address in use can be given to another pod, or a free one never",
    todo: repair,
    repairable: true,
  };
}

const ipText = (number: bigint): string => formatIp(ipOfKey(keyOfNumber(number)));

const runText = ({ first, last }: TakenRun): string =>
  first === last ? `"${ipText(first)}"` : `"${ipText(first)}-${ipText(last)}"`;
