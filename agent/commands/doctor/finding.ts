import type { Owner } from "../../../shared/cni/types.ts";

/** `error`: pods have no network, or may lose it. `warning`: something is left over or in the way. `note`: no disagreement. */
export const severities = ["error", "warning", "note"] as const;
export type Severity = (typeof severities)[number];

/** What `--repair` does about a finding. What pods' attachments are about is the agent's to do. */
export type Repair =
  /** The agent looks at one attachment again and settles it. */
  | { readonly t: "attachment"; readonly owner: Owner; readonly goneGeneration?: number }
  /** The agent sets up bridge or switch and the runtime's configuration again, as at its start. */
  | { readonly t: "node" }
  | { readonly t: "database" }
  | { readonly t: "remove"; readonly path: string }
  | { readonly t: "mode"; readonly path: string; readonly mode: number };

/** One thing that is not as it should be: what is, who is believed and why, what to do. */
export interface Finding {
  readonly severity: Severity;
  /** Stays the same from version to version, for scripts. */
  readonly code: string;
  readonly what: string;
  /** Where sources disagree, the one that is believed. */
  readonly trusts?: string;
  readonly why: string;
  readonly todo: string;
  readonly repair?: Repair;
  /**
   * What it was seen on, such as the generation of a lease: seen on the same again, it is the same disagreement and not
   * the next call's. Empty: once is enough, since no call in flight looks like this.
   */
  readonly evidence: string;
}

export const keyOf = ({ code, what, evidence }: Finding): string => `${code}\n${what}\n${evidence}`;

/** The worst first; those of one severity stay in their order. */
export const sorted = (findings: readonly Finding[]): readonly Finding[] =>
  findings.toSorted((a, b) => severities.indexOf(a.severity) - severities.indexOf(b.severity));
