/** Lets everything else that is due go first: for work that is too long for one turn of the event loop. */
export const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
