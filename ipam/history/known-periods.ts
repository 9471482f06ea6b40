import { formatIp, type Ip } from "../../shared/net/ip.ts";
import type { Lease } from "../lease.ts";
import { readEnded } from "./history-file.ts";
import { type Period, periodKey, periodOf } from "./period.ts";

/** Whose periods are wanted; all of what is given has to fit. */
export interface PeriodQuery {
  readonly network?: string;
  readonly ip?: Ip;
  /** `namespace/name`, or `namespace/` for all pods of a namespace. */
  readonly pod?: string;
}

export interface KnownPeriods {
  /** The latest to begin first. */
  readonly periods: readonly Period[];
  /** When the oldest of all that are known ended, whatever was asked for; absent: none has ended yet. */
  readonly sinceMs?: number;
}

/**
 * Who had addresses and has them: what has ended from the file, what lasts from the leases.
 * @param leases all of the store, in any state
 * @throws {CniError} 101 where the file cannot be read
 */
export function knownPeriods(dataDir: string, leases: Iterable<Lease>, query: PeriodQuery = {}): KnownPeriods {
  const found = new Map<string, Period>();
  const text = query.ip === undefined ? undefined : `"${formatIp(query.ip)}"`;
  let first: string | undefined;
  const ended = readEnded(dataDir, (line) => {
    first ??= line;
    return line === first || text === undefined || line.includes(text);
  });
  const isWanted = wantedBy(query);
  for (const period of ended) if (isWanted(period)) found.set(periodKey(period), period);
  for (const lease of leases) {
    const period = periodOf(lease);
    if (isWanted(period) && !found.has(periodKey(period))) found.set(periodKey(period), period);
  }
  const [oldest] = ended;
  return {
    periods: [...found.values()].sort((a, b) => b.fromMs - a.fromMs || b.generation - a.generation),
    ...(oldest === undefined ? {} : { sinceMs: oldest.untilMs }),
  };
}

function wantedBy({ network, ip, pod }: PeriodQuery): (period: Period) => boolean {
  const isOfPod = (period: Period): boolean => {
    if (pod === undefined) return true;
    if (period.pod === undefined) return false;
    const { namespace, name } = period.pod;
    return pod.endsWith("/") ? `${namespace}/` === pod : `${namespace}/${name}` === pod;
  };
  return (period) =>
    (network === undefined || period.owner.network === network) &&
    (ip === undefined || (period.ip.family === ip.family && period.ip.value === ip.value)) &&
    isOfPod(period);
}
