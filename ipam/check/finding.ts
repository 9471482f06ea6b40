/** `error`: addresses can be doubled or lost. `warning`: something is not as it should be. `note`: good to know. */
export const severities = ["error", "warning", "note"] as const;
export type Severity = (typeof severities)[number];

/** One thing that a check has found: what is, why it matters, and what to do. */
export interface Finding {
  readonly severity: Severity;
  /** Stays the same from version to version, for scripts. */
  readonly code: FindingCode;
  readonly network?: string;
  readonly what: string;
  readonly why: string;
  readonly todo: string;
  /** `--repair` puts it right. */
  readonly repairable?: true;
}

export const findingCodes = [
  "damaged-file",
  "leases-lost",
  "open-to-others",
  "taken-run-missing",
  "taken-run-empty",
  "taken-run-split",
  "generation-behind",
  "generation-twice",
  "two-addresses",
  "gateway-given",
  "wrong-name",
  "wrong-prefix",
  "time-ahead",
  "earlier-boot",
  "long-releasing",
  "long-departing",
  "outside-ranges",
  "reserved-address",
  "unknown-key",
] as const;
export type FindingCode = (typeof findingCodes)[number];
