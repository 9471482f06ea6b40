import type { ComponentChildren } from "preact";
import { type Health, Mark } from "./mark.tsx";

interface PageProps {
  readonly title: string;
  readonly health: Health;
  /** The answer to the question of the page, in one sentence. */
  readonly answer: ComponentChildren;
  readonly children?: ComponentChildren;
}

/** Every view: its answer first. */
export function Page({ title, health, answer, children }: PageProps) {
  return (
    <main>
      <h1 tabIndex={-1}>{title}</h1>
      <p class="answer" role="status">
        <Mark health={health}>{answer}</Mark>
      </p>
      {children}
    </main>
  );
}

export function Card({ title, children }: { readonly title: string; readonly children?: ComponentChildren }) {
  return (
    <section class="card">
      <h2>{title}</h2>
      {children}
    </section>
  );
}

/** What could not be had, by node; what was had before is shown meanwhile. */
export function Faults({ of }: { readonly of: readonly { readonly node: string; readonly fault?: string }[] }) {
  const faults = of.filter(({ fault }) => fault !== undefined);
  if (faults.length === 0) return null;
  return (
    <ul class="faults">
      {faults.slice(0, 5).map(({ node, fault }) => (
        <li key={node}>
          <Mark health="unknown">{fault}</Mark>
        </li>
      ))}
      {faults.length > 5 && <li>{faults.length - 5} more nodes do not answer</li>}
    </ul>
  );
}
