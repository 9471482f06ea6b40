import { type StormFigures, type StormOptions, storm } from "./storm.ts";

/**
 * A node is drained while its agent is down: every DEL succeeds, and the agent that comes back takes all of it away
 * before it is ready. The pool has no more addresses than pods, so that the next ones show that all have come back.
 * @param downMs how long it stays down after the last DEL
 */
export function agentDown(options: StormOptions, downMs: number): Promise<StormFigures> {
  const { node } = options;
  return storm(options, async ({ judge, makePods, removePods, expectAgreement }) => {
    const pods = await makePods(options.pods);
    await Promise.all(pods.map((pod) => judge.add(pod)));
    await node.endAgent("SIGKILL");
    for (const pod of pods) judge.yield(pod);
    await Promise.all(pods.map((pod) => judge.call("DEL", pod)));
    await removePods(pods);
    await Bun.sleep(downMs);
    await node.startAgent();

    const next = await makePods(options.pods);
    await Promise.all(next.map((pod) => judge.add(pod)));
    await expectAgreement(next);
    for (const pod of next) judge.yield(pod);
    await Promise.all(next.map((pod) => judge.call("DEL", pod)));
    await removePods(next);
    await expectAgreement([]);
  });
}
