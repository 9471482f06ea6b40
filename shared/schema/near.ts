/** How many typing mistakes still count as near: one in a short word, two in a longer one. */
const slipsIn = (word: string): number => (word.length < 5 ? 1 : 2);

/** Longer words are not compared, since that costs the product of their lengths. */
const longestWord = 64;

/**
 * Whether `typed` may have been meant as `word`: a few letters are missing, too many, wrong or swapped. Case is
 * ignored.
 */
export const isNear = (typed: string, word: string): boolean =>
  typed.length <= longestWord &&
  word.length <= longestWord &&
  distance(typed.toLowerCase(), word.toLowerCase()) <= slipsIn(word);

/** The word of the list that `typed` was most likely meant as, or `undefined` where none comes near. */
export function nearest(typed: string, words: readonly string[]): string | undefined {
  const near = words.filter((word) => isNear(typed, word));
  return near.sort((a, b) => slips(typed, a) - slips(typed, b))[0];
}

/** ` (did you mean "exclude"?)`, or nothing. */
export function didYouMean(typed: string, known: readonly string[]): string {
  const near = nearest(typed, known);
  return near === undefined || near === typed ? "" : ` (did you mean "${near}"?)`;
}

const slips = (typed: string, word: string): number => distance(typed.toLowerCase(), word.toLowerCase());

/** Letters to insert, delete, replace or swap with their neighbour (optimal string alignment). */
function distance(a: string, b: string): number {
  let [before, last] = [[] as number[], Array.from({ length: b.length + 1 }, (_, j) => j)];
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const replaced = (last[j - 1] as number) + (same ? 0 : 1);
      const least = Math.min((last[j] as number) + 1, (row[j - 1] as number) + 1, replaced);
      row.push(swapped ? Math.min(least, (before[j - 2] as number) + 1) : least);
    }
    [before, last] = [last, row];
  }
  return last[b.length] as number;
}
