import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { byName } from "../stream/store.ts";
import { grouped } from "./words.ts";

export interface Column<T> {
  readonly title: string;
  /** What is shown; absent: the text. */
  readonly cell?: (row: T) => ComponentChildren;
  /** By what it is sorted, and what is shown without `cell`. */
  readonly text: (row: T) => string | number;
  readonly isNumber?: true;
}

/** Rows that are drawn at first, and with every "more". */
const pageRows = 100;

interface TableProps<T> {
  /** Says what it is a table of. */
  readonly caption: string;
  readonly columns: readonly Column<T>[];
  readonly rows: readonly T[];
  readonly keyOf: (row: T) => string;
  /** Rows that the source has left out already. */
  readonly omitted?: number;
  readonly empty: string;
}

/** A table that is sorted by its heads, and draws no more rows than somebody asks for. */
export function Table<T>({ caption, columns, rows, keyOf, omitted = 0, empty }: TableProps<T>) {
  const sort = useSignal<{ readonly column: number; readonly isDown: boolean } | undefined>(undefined);
  const shown = useSignal(pageRows);
  if (rows.length === 0) return <p class="quiet">{empty}</p>;
  const by = sort.value === undefined ? undefined : columns[sort.value.column];
  const compare = (a: T, b: T): number => {
    const [x, y] = [by?.text(a) ?? 0, by?.text(b) ?? 0];
    const order = typeof x === "number" && typeof y === "number" ? x - y : byName(String(x), String(y));
    return sort.value?.isDown ? -order : order;
  };
  const sorted = by === undefined ? rows : rows.toSorted(compare);
  const visible = sorted.slice(0, shown.value);
  const rest = rows.length - visible.length;
  const turn = (column: number): void => {
    const isSame = sort.value?.column === column;
    sort.value = { column, isDown: isSame ? !sort.value?.isDown : false };
  };
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard.
    <section class="scroll" tabIndex={0} aria-label={caption}>
      <table>
        <caption>{caption}</caption>
        <thead>
          <tr>
            {columns.map(({ title, isNumber }, i) => (
              <th
                key={title}
                scope="col"
                class={isNumber ? "number" : undefined}
                aria-sort={sort.value?.column === i ? (sort.value.isDown ? "descending" : "ascending") : "none"}
              >
                <button type="button" class="plain" onClick={() => turn(i)}>
                  {title}
                  <span aria-hidden="true" class="sort">
                    {sort.value?.column === i ? (sort.value.isDown ? "▾" : "▴") : ""}
                  </span>
                </button>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {visible.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map(({ title, cell, text, isNumber }) => (
                <td key={title} class={isNumber ? "number" : undefined}>
                  {cell === undefined ? shownText(text(row)) : cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {rest > 0 && (
        <button type="button" onClick={() => (shown.value += pageRows)}>
          {Math.min(rest, pageRows)} more of {grouped(rest)}
        </button>
      )}
      {rest === 0 && omitted > 0 && <p class="quiet">{grouped(omitted)} more were left out by the node</p>}
    </section>
  );
}

const shownText = (value: string | number): string => (typeof value === "number" ? grouped(value) : value);
