import { type StormFigures, type StormOptions, storm } from "./storm.ts";

/**
 * Pods come and go in so many lanes as there are addresses: each ADD gets the one that was released last, or none.
 * @param lanes how many addresses the pool has
 */
export function churn(options: StormOptions, lanes: number, hasStatus = true): Promise<StormFigures> {
  return storm(options, async ({ judge, polling, expectAgreement }) => {
    let begun = 0;
    const lane = async (): Promise<void> => {
      while (begun++ < options.pods && !judge.failed) {
        const pod = await judge.makePod();
        await judge.add(pod);
        judge.yield(pod);
        await judge.call("DEL", pod);
        await judge.removePod(pod);
      }
    };
    {
      await using _ = hasStatus ? polling() : undefined;
      await Promise.all(Array.from({ length: lanes }, lane));
    }
    await expectAgreement([]);
  });
}
