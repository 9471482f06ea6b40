import type { Direction, NetworkPolicy, Pod, Traffic } from "../../../shared/policy/mod.ts";

/** Ports of one protocol, both ends included, that no rule tells apart. */
export interface PortRange {
  readonly protocol: string;
  /** Absent for protocols without ports. */
  readonly first?: number;
  readonly last?: number;
}

const withPorts = ["TCP", "UDP", "SCTP"] as const;
const lastPort = 65_535;
/** Stands for every protocol that no rule can name. */
const other = "ICMP";
const directions: readonly Direction[] = ["ingress", "egress"];

/** One of the range: what holds for it holds for all. */
export const trafficOf = ({ protocol, first }: PortRange): Traffic =>
  first === undefined ? { protocol } : { protocol, port: first };

/**
 * All traffic that there is, in as few ranges as these policies need.
 * @param target whose ports have the names that rules may use
 */
export function portRanges(policies: Iterable<NetworkPolicy>, target: Pick<Pod, "ports"> | undefined): PortRange[] {
  const starts = new Map(withPorts.map((protocol) => [protocol as string, new Set([1])]));
  const cut = (protocol: string, first: number, last: number): void => {
    starts.get(protocol)?.add(first);
    if (last < lastPort) starts.get(protocol)?.add(last + 1);
  };
  for (const policy of policies)
    for (const { ports = [] } of directions.flatMap((direction) => policy[direction] ?? []))
      for (const { protocol, port, endPort } of ports)
        if (typeof port === "number") cut(protocol, port, endPort ?? port);
        else if (port !== undefined)
          for (const named of target?.ports ?? [])
            if (named.name === port && named.protocol === protocol) cut(protocol, named.port, named.port);
  const ranges = [...starts].flatMap(([protocol, set]) => {
    const sorted = [...set].sort((a, b) => a - b);
    return sorted.map((first, i) => ({ protocol, first, last: (sorted[i + 1] ?? lastPort + 1) - 1 }));
  });
  return [...ranges, { protocol: other }];
}

/** `TCP 80, 443 and 8000-8010`, `every UDP port`, `everything`; `nothing` for none. */
export function rangesText(ranges: readonly PortRange[]): string {
  const words = withPorts.flatMap((protocol) => {
    const text = numbersText(ranges.filter((range) => range.protocol === protocol));
    return text === "" ? [] : [text === "all" ? `every ${protocol} port` : `${protocol} ${text}`];
  });
  const hasOther = ranges.some(({ protocol }) => protocol === other);
  const isAll = words.length === withPorts.length && words.every((word) => word.startsWith("every"));
  if (isAll && hasOther) return "everything";
  return [...words, ...(hasOther ? ["ICMP and other protocols"] : [])].join("; ") || "nothing";
}

/** @param ranges of one protocol */
function numbersText(ranges: readonly PortRange[]): string {
  const merged: { first: number; last: number }[] = [];
  // Of several endpoints the same range may come several times.
  for (const { first = 0, last = 0 } of ranges.toSorted((a, b) => (a.first ?? 0) - (b.first ?? 0))) {
    const before = merged.at(-1);
    if (before !== undefined && before.last + 1 >= first) before.last = Math.max(before.last, last);
    else merged.push({ first, last });
  }
  if (merged.length === 1 && merged[0]?.first === 1 && merged[0].last === lastPort) return "all";
  return merged.map(({ first, last }) => (first === last ? String(first) : `${first}-${last}`)).join(", ");
}
