/** What a flow belongs to, in its cookie: Antrea's numbers, and one of our own. */
export const Category = { base: 0, pod: 1, policy: 2, service: 3, trace: 7, node: 12, tenant: 13 } as const;
export type Category = (typeof Category)[keyof typeof Category];

const roundShift = 48n;
const categoryShift = 40n;
const objectMask = 0xffff_ffffn;

/** Rounds have 16 bits; 0 is never used, so that flows without a cookie belong to no round. */
export const lastRound = 0xffff;
/** Of a cookie, the round. */
export const roundMask = 0xffff_0000_0000_0000n;

/**
 * Marks the cookie of learned flows, with round 0: they outlive the round, and are deleted with the flow that learned
 * them (`delete_learned`).
 */
export const learnedBit = 1n << 32n;

export const isLearned = (cookie: bigint): boolean => (cookie & roundMask) === 0n && (cookie & learnedBit) !== 0n;

/**
 * Flows of a trace come and go beside the program, and end by themselves: no program has them, and a comparison passes
 * over them.
 */
export const isOfTrace = (cookie: bigint): boolean => readCookie(cookie).category === Category.trace;

/** `round[16] | category[8] | 0[8] | object[32]`. @param object tells the parts of one category apart */
export function cookieOf(round: number, category: Category, object = 0): bigint {
  return (BigInt(round) << roundShift) | (BigInt(category) << categoryShift) | (BigInt(object) & objectMask);
}

export interface CookieParts {
  readonly round: number;
  readonly category: number;
  readonly object: number;
}

export function readCookie(cookie: bigint): CookieParts {
  return {
    round: Number(cookie >> roundShift),
    category: Number((cookie >> categoryShift) & 0xffn),
    object: Number(cookie & objectMask),
  };
}

/** The round after the last one that was begun. */
export const nextRound = (last: number | undefined): number => (last === undefined || last >= lastRound ? 1 : last + 1);
