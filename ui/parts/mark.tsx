import type { ComponentChildren } from "preact";

/** How something is: by shape, colour and word, so that none of them is needed alone. */
export type Health = "good" | "warn" | "bad" | "unknown";

const shapes: Readonly<Record<Health, string>> = {
  good: "M6 1a5 5 0 1 0 0 10A5 5 0 0 0 6 1Z",
  warn: "M6 1 11.5 11H.5Z",
  bad: "M1.5 1.5h9v9h-9Z",
  unknown: "M6 1a5 5 0 1 0 0 10A5 5 0 0 0 6 1Zm0 2a3 3 0 1 1 0 6 3 3 0 0 1 0-6Z",
};

export function Mark({ health, children }: { readonly health: Health; readonly children?: ComponentChildren }) {
  return (
    <span class={`mark ${health}`}>
      <svg viewBox="0 0 12 12" aria-hidden="true">
        <path d={shapes[health]} fill-rule="evenodd" />
      </svg>
      {children}
    </span>
  );
}

const order: readonly Health[] = ["good", "unknown", "warn", "bad"];
export const worst = (all: readonly Health[]): Health =>
  all.reduce<Health>((so, each) => (order.indexOf(each) > order.indexOf(so) ? each : so), "good");
