let due: (() => void)[] = [];

/**
 * Runs `work` once this turn of the event loop is over, before anything new is read: for what an answer need not wait
 * for. All works of a turn share one immediate, because one costs a call on cold caches as much as a system call.
 */
export function afterTurn(work: () => void): void {
  due.push(work);
  if (due.length === 1) setImmediate(runDue);
}

function runDue(): void {
  const works = due;
  due = [];
  for (const [i, work] of works.entries()) {
    try {
      work();
    } catch (caught) {
      // The others are not concerned by a fault of this one, which is heard of as if it were alone.
      for (const rest of works.slice(i + 1)) afterTurn(rest);
      throw caught;
    }
  }
}
