/** Who had which address, and when: written by the agent, read by anybody who may read the data directory. */
export { AddressHistory } from "./address-history.ts";
export { type KnownPeriods, knownPeriods, type PeriodQuery } from "./known-periods.ts";
export type { Period } from "./period.ts";
