import type { Owner } from "../../../shared/cni/types.ts";

/** `error`: pods have no network, or may lose it. `warning`: something is left over or in the way. `note`: no disagreement. */
export const severities = ["error", "warning", "note"] as const;
export type Severity = (typeof severities)[number];

/** What `--repair` does about a finding. Repairs of attachments are done by the agent. */
export type Repair =
  /** The agent checks one attachment again and repairs it. */
  | { readonly t: "attachment"; readonly owner: Owner; readonly goneGeneration?: number }
  /** The agent sets up bridge or switch and the runtime's configuration again, as at its start. */
  | { readonly t: "node" }
  | { readonly t: "database" }
  | { readonly t: "remove"; readonly path: string }
  | { readonly t: "mode"; readonly path: string; readonly mode: number };

/** A disagreement: what it is, which source is believed and why, and what to do. */
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
   * Identifies what it was found on, such as the generation of a lease: if that is the same in the next snapshot, it is
   * the same disagreement and not one of another call. Empty: one snapshot is enough, since no running call looks like
   * this.
   */
  readonly evidence: string;
}

export const keyOf = ({ code, what, evidence }: Finding): string => `${code}\n${what}\n${evidence}`;

/** The worst first; those of one severity stay in their order. */
export const sorted = (findings: readonly Finding[]): readonly Finding[] =>
  findings.toSorted((a, b) => severities.indexOf(a.severity) - severities.indexOf(b.severity));
