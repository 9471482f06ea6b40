import { type StormFigures, type StormOptions, storm } from "./storm.ts";

/** Every so many pods are pinged: all of them would take longer than the storm. */
const pinged = 25;

/** All pods of a node at once, as after its start, and all of them away at once, as when it is drained. */
export function crowd(options: StormOptions, hasStatus = true): Promise<StormFigures> {
  return storm(options, async ({ judge, polling, makePods, removePods, expectAgreement }) => {
    const pods = await makePods(options.pods);
    {
      await using _ = hasStatus ? polling() : undefined;
      await Promise.all(pods.map((pod) => judge.add(pod)));
    }
    await expectAgreement(pods);
    for (const pod of pods.filter((_, i) => i % pinged === 0)) await judge.expectReach(pod);
    for (const pod of pods) judge.yield(pod);
    {
      await using _ = hasStatus ? polling() : undefined;
      await Promise.all(pods.map((pod) => judge.call("DEL", pod)));
    }
    await removePods(pods);
    await expectAgreement([]);
  });
}

/** ADD of all pods that stand, as the kubelet on Windows repeats it, and CHECK of all of them, each at once. */
export function again(options: StormOptions): Promise<StormFigures> {
  return storm(options, async ({ judge, polling, makePods, removePods, expectAgreement }) => {
    const pods = await makePods(options.pods);
    await Promise.all(pods.map((pod) => judge.add(pod)));
    const before = pods.map(({ result }) => JSON.stringify(result));
    {
      await using _ = polling();
      await Promise.all(pods.map((pod) => judge.add(pod)));
      for (const [i, pod] of pods.entries())
        if (JSON.stringify(pod.result) !== before[i])
          judge.violate(`ADD again answered ${JSON.stringify(pod.result)}, at first ${before[i]}`);
      await Promise.all(pods.map((pod) => judge.call("CHECK", pod)));
    }
    await expectAgreement(pods);
    for (const pod of pods) judge.yield(pod);
    await Promise.all(pods.map((pod) => judge.call("DEL", pod)));
    await removePods(pods);
    await expectAgreement([]);
  });
}
