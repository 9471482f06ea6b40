import { formatIp } from "../../../shared/net/ip.ts";
import { counted } from "../../../shared/terminal/printable.ts";
import { formatTable } from "../../../shared/terminal/table.ts";
import { listText } from "./explain.ts";
import type { EndClass, OutsideClass, PodClass } from "./pod-classes.ts";
import { type PortRange, rangesText } from "./port-ranges.ts";
import { type Change, pairsIn, type WhatIf } from "./what-if.ts";

/** Changes of one kind, between all of these and all of those. */
export interface ChangeLine {
  readonly change: "opened" | "closed";
  readonly from: string;
  readonly to: string;
  readonly ports: string;
  /** Of pods; with the world outside each pod counts once. */
  readonly pairs: number;
}

interface OneChange {
  readonly change: ChangeLine["change"];
  readonly from: EndClass;
  readonly to: EndClass;
  readonly ports: string;
  readonly pairs: number;
}

/** Joins what changes alike, by what pods people would name together. The greatest first. */
export function changeLines({ changes, classes }: WhatIf): readonly ChangeLine[] {
  const names = new Names(classes);
  const all = changes.flatMap((each) => [...kindsOf(each)]);
  // All senders for each receiver, then all receivers with the same senders.
  const bySenders = Map.groupBy(all, ({ change, ports, to }) => `${change}\n${ports}\n${names.keyOf(to)}`);
  const received = [...bySenders.values()].map((group) => {
    const [first] = group as [OneChange];
    return {
      ...first,
      from: names.of(
        group.map(({ from }) => from),
        first.to,
      ),
      pairs: sumOf(group),
    };
  });
  const alike = Map.groupBy(received, ({ change, ports, from }) => `${change}\n${ports}\n${from}`);
  const lines = [...alike.values()].map((group): ChangeLine => {
    const [first] = group as [(typeof group)[number]];
    return { ...first, to: names.of(group.map(({ to }) => to)), pairs: sumOf(group) };
  });
  return lines.toSorted((a, b) => b.pairs - a.pairs);
}

const sumOf = (of: readonly { readonly pairs: number }[]): number => of.reduce((sum, { pairs }) => sum + pairs, 0);

function kindsOf(change: Change): readonly OneChange[] {
  const { from, to, family, opened, closed } = change;
  const over = family === undefined ? "" : ` over IPv${family}`;
  const one = (kind: OneChange["change"], ranges: readonly PortRange[]): OneChange[] =>
    ranges.length === 0
      ? []
      : [{ change: kind, from, to, ports: `${rangesText(ranges)}${over}`, pairs: pairsIn(change) }];
  return [...one("opened", opened), ...one("closed", closed)];
}

/** How people would call several classes at once. */
class Names {
  readonly #byNamespace: ReadonlyMap<string, readonly PodClass[]>;
  readonly #keys = new Map<EndClass, string>();

  constructor(classes: readonly PodClass[]) {
    this.#byNamespace = Map.groupBy(classes, ({ namespace }) => namespace);
  }

  keyOf(end: EndClass): string {
    const key = this.#keys.get(end) ?? String(this.#keys.size);
    this.#keys.set(end, key);
    return key;
  }

  /** @param itself a class of one pod, which counts as being among them: what it sends to itself does not change */
  of(ends: readonly EndClass[], itself?: EndClass): string {
    const given = new Set(ends);
    const has = (each: PodClass): boolean => given.has(each) || (each === itself && each.pods.length === 1);
    const namespaces = [...new Set(ends.flatMap((end) => (end.t === "pods" ? [end.namespace] : [])))];
    const whole = namespaces.filter((namespace) => (this.#byNamespace.get(namespace) ?? []).every(has));
    const isAll = whole.length > 1 && whole.length === this.#byNamespace.size;
    const pods = isAll
      ? ["all pods"]
      : [
          ...whole.map((namespace) => `${namespace}/*`),
          ...ends.flatMap((end) => (end.t === "pods" && !whole.includes(end.namespace) ? [className(end)] : [])),
        ];
    const outside = ends.flatMap((end) => (end.t === "outside" ? end.ranges : []));
    return listText([...pods, ...(outside.length === 0 ? [] : [outsideName(outside)])]);
  }
}

/** How people would call it. */
export function className({ namespace, labels, pods }: PodClass): string {
  const [only] = pods;
  if (pods.length === 1) return `${namespace}/${only?.name}`;
  return `${namespace}/{${labels}} (${pods.length} pods)`;
}

const maxRanges = 3;

function outsideName(ranges: OutsideClass["ranges"]): string {
  const texts = ranges.map(({ first, last }) =>
    first.value === last.value ? formatIp(first) : `${formatIp(first)}-${formatIp(last)}`,
  );
  const shown = texts.slice(0, maxRanges).join(", ");
  return `outside (${shown}${texts.length > maxRanges ? ` and ${texts.length - maxRanges} more ranges` : ""})`;
}

/** Pairs of pods for which something becomes possible, or impossible; a pair may be among both. */
export function totals(lines: readonly ChangeLine[]): { readonly opened: number; readonly closed: number } {
  const of = (change: ChangeLine["change"]): number => sumOf(lines.filter((line) => line.change === change));
  return { opened: of("opened"), closed: of("closed") };
}

/** @param most lines that are shown */
export function whatIfText(lines: readonly ChangeLine[], most: number): string {
  if (lines.length === 0)
    return "Nothing would change between pods that there are, nor between them and the world outside\n";
  const { opened, closed } = totals(lines);
  const shown = lines.slice(0, most);
  const rest = lines.slice(most);
  const table = formatTable([
    ["CHANGE", "FROM", "TO", "PORTS", "PAIRS"],
    ...shown.map(({ change, from, to, ports, pairs }) => [change, from, to, ports, String(pairs)]),
  ]);
  const more =
    rest.length === 0
      ? ""
      : `… and ${counted(rest.length, "line")} more, with ${counted(sumOf(rest), "pair")} (--all shows them)\n`;
  return `${counted(opened, "pair")} of pods would be opened, and ${closed} closed\n\n${table}${more}`;
}
