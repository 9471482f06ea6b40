import { expect } from "vitest";
import { Crossing } from "./crossing.ts";
import { standing, type Told, told } from "./standing.ts";
import type { UpgradeNode, UpgradePod } from "./upgrade-node.ts";

/** Directories of the executables of both releases. */
export interface Releases {
  readonly earlier: string;
  readonly now: string;
}

const namesOf = (prefix: string, count: number): readonly string[] =>
  Array.from({ length: count }, (_, i) => `${prefix}${i}`);

/**
 * A node of the earlier release with pods, taken over by that of now, given back to the earlier one with pods that came
 * meanwhile, and taken over again. Two connections and their pings last from the first to the last of it.
 */
export async function thereAndBack(node: UpgradeNode, { earlier, now }: Releases, count: number): Promise<void> {
  await node.runAgent(earlier);
  const pods = await node.addPods(earlier, namesOf("old", count));
  const [a, b, c, d] = pods;
  if (a === undefined || b === undefined || c === undefined || d === undefined) throw new Error("wanted four pods");
  await using crossing4 = await Crossing.start(a, b, 0);
  await using crossing6 = await Crossing.start(c, d, 1);
  const before = new Map<string, Told>();

  /** The agent of `release` in place of the one that runs: nobody may notice, and its plugin knows every pod. */
  const change = async (release: string): Promise<void> => {
    const stood = await standing(node, pods);
    await node.runAgent(release);
    expect(await standing(node, pods)).toEqual(stood);
    const saying = await told(node);
    // That release refuses a call where it is held up until the switch has given up greeting it (mended in 7139dceb).
    await everyPod(release, node, pods, release === earlier ? 2 : 8);
    expect([await standing(node, pods), await told(node)]).toEqual([stood, saying]);
    await Promise.all([crossing4.goesOn(), crossing6.goesOn()]);
    sameAsBefore(saying, before.get(release));
    before.set(release, saying);
  };
  /** Some go, those of either release, and some come. */
  const turnOver = async (release: string, prefix: string): Promise<void> => {
    const going = [...pods.splice(4, 5), ...pods.splice(-2)];
    await Promise.all(going.map((pod) => node.remove(release, pod)));
    pods.push(...(await node.addPods(release, namesOf(prefix, 4))));
  };

  before.set(earlier, await told(node));
  await change(now);
  await turnOver(now, "new");
  await change(earlier);
  await unheard(earlier, now, node, pods);
  await turnOver(now, "between");
  await change(now);
  await turnOver(earlier, "last");
  await change(now);

  expect([await crossing4.lost(), await crossing6.lost()]).toEqual([0, 0]);
  await Promise.all(pods.splice(0).map((pod, i) => node.remove(i % 2 === 0 ? earlier : now, pod)));
  expect(await node.home.containers()).toEqual([]);
}

/** What a release tells of itself, and of the pods that were there the last time too, is what it told then. */
function sameAsBefore(now: Told, before: Told | undefined): void {
  if (before === undefined) return;
  expect([now.rules, now.others]).toEqual([before.rules, before.others]);
  const stayed = [...now.pods].filter(([pod]) => before.pods.has(pod));
  for (const [pod, flows] of stayed) expect(flows).toBe(before.pods.get(pod));
}

/** What its ADD answered is what CHECK confirms and ADD answers again, whichever release's plugin asks. */
async function everyPod(
  release: string,
  node: UpgradeNode,
  pods: readonly UpgradePod[],
  atOnce: number,
): Promise<void> {
  for (let i = 0; i < pods.length; i += atOnce)
    await Promise.all(
      pods.slice(i, i + atOnce).map(async (pod) => {
        await node.check(release, pod);
        const added = pod.result;
        expect(await node.add(release, pod)).toEqual(added);
      }),
    );
}

/** DELs of both plugins that no agent hears: the next agent, of whichever release, finishes them. */
async function unheard(earlier: string, now: string, node: UpgradeNode, pods: UpgradePod[]): Promise<void> {
  await node.agent.end();
  await Promise.all(pods.splice(-2).map((pod, i) => node.remove(i === 0 ? earlier : now, pod)));
  await node.startAgain();
  expect(await node.home.containers()).toEqual(pods.map(({ containerId }) => containerId).sort());
}
