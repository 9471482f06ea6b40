import type { ClusterView } from "./cluster-view.ts";
import type { PodClass } from "./pod-classes.ts";
import { rangesText } from "./port-ranges.ts";
import { whatIf } from "./what-if.ts";
import { className } from "./what-if-text.ts";

/** Rows of a matrix: more than a person reads, and than a page draws. */
const mostGroups = 200;
/** Names of a group's pods. */
const mostPods = 50;

/** Pods that no policy tells apart. */
export interface MatrixGroup {
  readonly name: string;
  readonly namespace: string;
  /** Some of them. */
  readonly pods: readonly string[];
  readonly count: number;
}

/** Who reaches whom. */
export interface Matrix {
  readonly groups: readonly MatrixGroup[];
  /** A row for each that sends, a letter for each that receives: `+` everything, `-` nothing, `%` some. */
  readonly rows: readonly string[];
  /** Of each `%`, what is refused. */
  readonly partly: readonly { readonly from: number; readonly to: number; readonly refused: string }[];
  /** Groups that were left out. */
  readonly omitted: number;
}

/**
 * Asks of every two groups of pods what policies refuse between them: what would be closed if there had been none.
 * @param namespace of the pods; absent: all
 * @param progress called now and then
 */
export function matrixOf(
  view: ClusterView,
  namespace?: string,
  progress: (done: number, total: number) => void = () => undefined,
): Matrix {
  const { changes, classes } = whatIf(view.withPolicies([]), view, progress);
  const wanted = classes
    .filter((each) => namespace === undefined || each.namespace === namespace)
    .map((each) => ({ each, name: className(each) }))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const shown = wanted.slice(0, mostGroups);
  const places = new Map(shown.map(({ each }, i) => [each, i]));
  const letters = shown.map(() => shown.map(() => "+"));
  const refused = new Map<string, Set<string>>();
  for (const { from, to, family, closed } of changes) {
    if (from.t !== "pods" || to.t !== "pods") continue;
    const [i, j] = [places.get(from), places.get(to)];
    const row = i === undefined ? undefined : letters[i];
    if (i === undefined || j === undefined || row === undefined || closed.length === 0) continue;
    const words = rangesText(closed);
    const isAll = words === "everything" && family === undefined;
    row[j] = isAll ? "-" : "%";
    if (isAll) continue;
    const key = `${i} ${j}`;
    refused.set(key, (refused.get(key) ?? new Set()).add(family === undefined ? words : `${words} over IPv${family}`));
  }
  return {
    groups: shown.map(({ each, name }) => groupOf(each, name)),
    rows: letters.map((row) => row.join("")),
    partly: [...refused].map(([key, words]) => {
      const [from = 0, to = 0] = key.split(" ").map(Number);
      return { from, to, refused: [...words].join("; ") };
    }),
    omitted: wanted.length - shown.length,
  };
}

const groupOf = ({ namespace, pods }: PodClass, name: string): MatrixGroup => ({
  name,
  namespace,
  pods: pods.slice(0, mostPods).map((pod) => `${pod.namespace}/${pod.name}`),
  count: pods.length,
});
