/** Far more than anything takes that works; only a busy machine needs it. */
const withinLongMs = 45_000;

/** Repeats the question until the answer is neither `undefined` nor `false`; fails after a long time. */
export async function eventually<T>(
  ask: () => T | Promise<T>,
  what: string,
  withinMs = withinLongMs,
): Promise<Exclude<T, undefined | false>> {
  const until = performance.now() + withinMs;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== false) return answer as Exclude<T, undefined | false>;
    if (performance.now() > until) throw new Error(`Waited in vain for ${what}`);
    await Bun.sleep(10);
  }
}
