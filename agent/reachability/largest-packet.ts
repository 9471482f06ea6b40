/**
 * The largest packet that comes through, by halving.
 * @param passes whether one of so many bytes does; asked some ten times
 * @param known bytes of one that does
 * @param failing bytes of one that does not
 */
export async function largestPacket(
  passes: (bytes: number) => Promise<boolean>,
  known: number,
  failing: number,
): Promise<number> {
  let [low, high] = [known, failing];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (await passes(middle)) low = middle;
    else high = middle;
  }
  return low;
}
