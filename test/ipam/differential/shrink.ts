import type { Call } from "./call.ts";

/** Each look runs the whole of a shorter sequence. */
const maxLooks = 200;

/** The sequence with every call left out that the difference does without. */
export async function shrink(
  calls: readonly Call[],
  differs: (calls: readonly Call[]) => Promise<boolean>,
): Promise<readonly Call[]> {
  let kept = calls;
  let looks = 0;
  for (let i = kept.length - 1; i >= 0 && looks < maxLooks; i--, looks++) {
    const shorter = kept.filter((_, j) => j !== i);
    if (await differs(shorter)) kept = shorter;
  }
  return kept;
}
