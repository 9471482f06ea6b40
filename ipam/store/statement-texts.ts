/** Statements whose texts are long or put together. Why they are written as they are: `SqliteStore.#rows`. */

/**
 * A statement for each limit; these are few. The text is there already when a call asks for it: to put one together and
 * to look for its statement takes as long as to run that.
 */
function limited(text: string): (limit: number) => string {
  const known = new Map<number, string>();
  return (limit) => {
    const made = known.get(limit);
    if (made !== undefined) return made;
    const statement = `${text} LIMIT ${limit}`;
    known.set(limit, statement);
    return statement;
  };
}

export const ownersLeases =
  "SELECT * FROM lease INDEXED BY lease_owner WHERE network IN (?) AND sandbox_id IN (?) AND ifname IN (?) ORDER BY address";
export const longestCooling = limited(
  "SELECT * FROM lease INDEXED BY lease_left WHERE network IN (?) AND state = 'cooling' AND released_at_ms <= ? AND address BETWEEN ? AND ? ORDER BY released_at_ms, generation",
);
const runsUpTo = "SELECT first, last FROM taken WHERE network IN (?) AND first <= ? ORDER BY first DESC";
export const nearestRun = `${runsUpTo} LIMIT 1`;
export const nearestRuns = `${runsUpTo} LIMIT 2`;
