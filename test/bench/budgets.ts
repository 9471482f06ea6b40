export interface Budget {
  /** More than this is a fault. */
  readonly budget: number;
  /** Where it should get to. */
  readonly aim: number;
}

/**
 * What may not be exceeded, and what is aimed at. Ratios to Debian's plugins unless a unit is named. Where nothing else is
 * said, the small program of forward/ stands in front, as it is installed, and they hold however the executables lie in
 * the page cache.
 *
 * Those of the whole program by itself hold where executables were just read. Those of its allocator's ADD follow from
 * what the least program on SQLite needs beside it (`least/least.ts`: 2.4, 0.25 and 0.06): half as much again. The aims
 * are what the design first asked for, and no program compiled by Bun can reach them; docs/decisions/budgets.md says more.
 */
export const budgets = {
  start: { budget: 0.5, aim: 0.2 },
  wholeStart: { budget: 3.6, aim: 1.5 },
  addByService: { budget: 0.6, aim: 0.4 },
  addEmpty: { budget: 3.6, aim: 1.3 },
  addThousands: { budget: 0.38, aim: 0.2 },
  addTensOfThousands: { budget: 0.09, aim: 0.05 },
  pod: { budget: 0.2, aim: 0.1 },
  podAdd: { budget: 0.35, aim: 0.25 },
  wholePod: { budget: 1, aim: 0.5 },
  crowd: { budget: 0.35, aim: 0.25 },
  callMb: { budget: 2, aim: 1 },
  /** To an empty C program. */
  wineStart: { budget: 2, aim: 1.2 },
  none: { budget: 0, aim: 0 },
  roundTripMs: { budget: 2, aim: 1 },
  residentMb: { budget: 120, aim: 80 },
  /** Of an ADD by an agent that keeps numbers to one by an agent that does not. */
  metrics: { budget: 1.15, aim: 1.03 },
} as const satisfies Record<string, Budget>;

/** The same of pods and flows on Open vSwitch, where ovs-ofctl is the peer of flows. */
export const overlayBudgets = {
  pod: { budget: 1, aim: 0.5 },
  podAdd: { budget: 0.7, aim: 0.4 },
  /** To a kernel bridge, where nobody has to be asked. */
  burst: { budget: 5, aim: 1.5 },
  flows: { budget: 1, aim: 0.5 },
  replay: { budget: 1, aim: 0.5 },
  /** Ours begin with the services, the peer's with flows that are made already. */
  services: { budget: 3, aim: 1 },
  service: { budget: 1, aim: 0.5 },
  servicesMb: { budget: 160, aim: 120 },
} as const satisfies Record<string, Budget>;

/** ADD with so many leases in the pool: host-local reads them all, Pipette does not. */
export function budgetOfAdd(leases: number): Budget {
  if (leases < 1_000) return budgets.addEmpty;
  return leases < 10_000 ? budgets.addThousands : budgets.addTensOfThousands;
}
