import { type ReadonlySignal, signal } from "@preact/signals";

/** Where in the page one is: `#/addresses?node=a`. A link to it leads there again. */
export interface Route {
  readonly page: string;
  readonly query: Readonly<Record<string, string>>;
}

function parse(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?");
  return { page: path || "overview", query: Object.fromEntries(new URLSearchParams(query)) };
}

const current = signal(parse(location.hash));
export const route: ReadonlySignal<Route> = current;

window.addEventListener("hashchange", () => {
  const next = parse(location.hash);
  const isOther = next.page !== current.value.page;
  current.value = next;
  // As with a new document: a reader of the screen begins at its head.
  if (isOther) setTimeout(() => document.querySelector<HTMLElement>("h1")?.focus(), 0);
});

export function hrefTo(page: string, query: Readonly<Record<string, string | undefined>> = {}): string {
  const given = Object.entries(query).filter((pair): pair is [string, string] => (pair[1] ?? "") !== "");
  const text = new URLSearchParams(given).toString();
  return `#/${page}${text === "" ? "" : `?${text}`}`;
}

/** Changes the filters of the page that is shown, without a new entry in the history. */
export function refine(query: Readonly<Record<string, string | undefined>>): void {
  const { page, query: before } = current.value;
  history.replaceState(undefined, "", hrefTo(page, { ...before, ...query }));
  current.value = parse(location.hash);
}
