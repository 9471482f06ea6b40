/**
 * What changed of a document: its top-level keys, and of those that are lists the rows. Whatever two documents are, the
 * steps lead from the one to the other; they are few where rows come, go or change in few places.
 */
export type Step =
  | { readonly do: "set"; readonly key: string; readonly value: unknown }
  | { readonly do: "drop"; readonly key: string }
  | {
      readonly do: "rows";
      readonly key: string;
      readonly at: number;
      readonly gone: number;
      readonly rows: readonly unknown[];
    };

export type Plain = Readonly<Record<string, unknown>>;

/** More single places than this, and the list is sent from the first to the last of them. */
const maxPlaces = 64;

export function stepsBetween(before: Plain, after: Plain): Step[] {
  const steps: Step[] = [];
  for (const key of Object.keys(before)) if (!Object.hasOwn(after, key)) steps.push({ do: "drop", key });
  for (const [key, value] of Object.entries(after)) {
    const old = before[key];
    if (Array.isArray(old) && Array.isArray(value)) steps.push(...rowSteps(key, old, value));
    else if (!Object.hasOwn(before, key) || !isSame(old, value)) steps.push({ do: "set", key, value });
  }
  return steps;
}

function rowSteps(key: string, before: readonly unknown[], after: readonly unknown[]): Step[] {
  const [old, now] = [before.map(textOf), after.map(textOf)];
  let head = 0;
  while (head < old.length && head < now.length && old[head] === now[head]) head++;
  let tail = 0;
  while (tail < old.length - head && tail < now.length - head && old.at(-1 - tail) === now.at(-1 - tail)) tail++;
  const [gone, come] = [old.length - tail - head, now.length - tail - head];
  if (gone === 0 && come === 0) return [];
  if (gone === come) {
    const places = Array.from({ length: gone }, (_, i) => head + i).filter((at) => old[at] !== now[at]);
    if (places.length <= maxPlaces)
      return places.map((at) => ({ do: "rows", key, at, gone: 1, rows: [after[at]] }) as const);
  }
  return [{ do: "rows", key, at: head, gone, rows: after.slice(head, head + come) }];
}

const textOf = (value: unknown): string => JSON.stringify(value) ?? "";
const isSame = (a: unknown, b: unknown): boolean => textOf(a) === textOf(b);

/** The document after the steps; the one before stays as it is. @throws where they are of another document */
export function patched(before: Plain, steps: readonly Step[]): Plain {
  const after = new Map(Object.entries(before));
  for (const step of steps) {
    if (step.do === "drop") after.delete(step.key);
    else if (step.do === "set") after.set(step.key, step.value);
    else {
      const rows = after.get(step.key);
      if (!Array.isArray(rows) || step.at + step.gone > rows.length)
        throw new Error(`Cannot apply a change: it is of another list "${step.key}"`);
      after.set(step.key, [...rows.slice(0, step.at), ...step.rows, ...rows.slice(step.at + step.gone)]);
    }
  }
  return Object.fromEntries(after);
}
