export interface Budget {
  /** More than this is a fault. */
  readonly budget: number;
  /** Where it should get to. */
  readonly aim: number;
}

/**
 * The design's: what may not be exceeded, and what is aimed at. Ratios to Debian's plugins unless a unit is named.
 * docs/decisions.md says which of them do not hold yet, with what was measured.
 */
export const budgets = {
  start: { budget: 2.5, aim: 1.5 },
  addEmpty: { budget: 1.3, aim: 1 },
  addThousands: { budget: 0.2, aim: 0.2 },
  addTensOfThousands: { budget: 0.05, aim: 0.05 },
  pod: { budget: 1, aim: 0.5 },
  crowd: { budget: 1, aim: 0.5 },
  none: { budget: 0, aim: 0 },
  roundTripMs: { budget: 2, aim: 1 },
  residentMb: { budget: 120, aim: 80 },
} as const satisfies Record<string, Budget>;

/** ADD with so many leases in the pool: host-local reads them all, Pipette does not. */
export function budgetOfAdd(leases: number): Budget {
  if (leases < 1_000) return budgets.addEmpty;
  return leases < 10_000 ? budgets.addThousands : budgets.addTensOfThousands;
}
