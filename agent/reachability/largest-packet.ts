/** How sure an answer has to be that a packet does not come through: it may merely have been late, or lost. */
export type Care = "quick" | "sure";

/** So often what was found is doubted, at most. */
const searches = 3;

/**
 * The largest packet that comes through, by halving. As one late answer would make it smaller, the next larger one is
 * asked once more with care, and where that one comes the search goes on from there.
 * @param passes whether one of so many bytes does; asked some ten times
 * @param known bytes of one that does
 * @param failing bytes of one that did not
 * @returns bytes; as many as `failing` where that one comes after all
 */
export async function largestPacket(
  passes: (bytes: number, care: Care) => Promise<boolean>,
  known: number,
  failing: number,
): Promise<number> {
  let low = known;
  for (let i = 0; i < searches && low < failing; i++) {
    let high = failing;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (await passes(middle, "quick")) low = middle;
      else high = middle;
    }
    if (!(await passes(high, "sure"))) return low;
    low = high;
  }
  return low;
}
