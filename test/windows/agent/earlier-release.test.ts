import { afterAll, beforeAll, expect, test } from "vitest";
import { describeWith } from "../../support/requires.ts";
import { earlierExecutables } from "../../upgrade/earlier-release.ts";
import { describeWine } from "../wine/describe-wine.ts";
import { executables } from "../wine/prefix.ts";
import { WindowsNode } from "./windows-node.ts";

const clients = 6;

describeWith("a Windows node with pods of an earlier release", ["earlier-release"], () => {
  describeWine("in Wine", (wine) => {
    let node: WindowsNode;
    let earlier = "";
    let pods: { readonly id: string; readonly netns: string; readonly answer: unknown }[] = [];
    beforeAll(async () => {
      earlier = await earlierExecutables("windows");
      node = await WindowsNode.make(wine.prefix);
    });
    afterAll(() => node?.[Symbol.asyncDispose]());

    async function inTurns<T>(all: readonly T[], work: (one: T) => Promise<void>): Promise<void> {
      const left = [...all];
      const client = async (): Promise<void> => {
        for (let one = left.shift(); one !== undefined; one = left.shift()) await work(one);
      };
      await Promise.all(Array.from({ length: clients }, client));
    }
    const changes = (): number => node.stubs.hns.calls.filter(({ fn }) => /Create|Modify|Delete/.test(fn)).length;
    /** The agent of the other release takes the node over; HNS' documents stay as they are, and pods get what they had. */
    async function takenOverBy(release: string): Promise<void> {
      const [documents, before] = [structuredClone(node.endpoints()), changes()];
      await node.stop();
      node.executables = release;
      await node.start();
      expect(node.endpoints()).toEqual(documents);
      for (const { id, netns, answer } of pods.slice(0, 5))
        expect(await node.cni("ADD", id, { netns })).toEqual(answer);
      expect(changes()).toBe(before);
      expect(await node.disagreements()).toEqual([]);
    }
    /** A plugin of one release with the agent of the other that runs. */
    async function servesPluginOf(release: string): Promise<void> {
      const running = node.executables;
      node.executables = release;
      const netns = node.stubs.hns.newNamespace();
      const added = await node.cni("ADD", "other", { netns });
      expect(added).toMatchObject({ t: "ok" });
      expect(await node.cni("ADD", "other", { netns })).toEqual(added);
      expect(await node.cni("ADD", "workload", { netns: "container:other" })).toMatchObject({ t: "ok" });
      expect(await node.cni("DEL", "other", { netns })).toMatchObject({ t: "ok" });
      node.executables = running;
      expect(await node.disagreements()).toEqual([]);
    }

    test("keeps 50 of them, documents untouched, there and back, whichever release a plugin is of", async () => {
      node.executables = earlier;
      await node.start();
      const made = Array.from({ length: 50 }, (_, i) => ({ id: `pod${i}`, netns: node.stubs.hns.newNamespace() }));
      await inTurns(made, async (pod) => {
        const answer = await node.cni("ADD", pod.id, { netns: pod.netns });
        expect(answer).toMatchObject({ t: "ok" });
        pods = [...pods, { ...pod, answer }];
      });
      await takenOverBy(executables);
      await servesPluginOf(earlier);
      // Half of them end under this release, the others under the earlier one.
      const [now, later] = [pods.slice(25), pods.slice(0, 25)];
      pods = later;
      await inTurns(now, async ({ id, netns }) =>
        expect(await node.cni("DEL", id, { netns })).toMatchObject({ t: "ok" }),
      );
      await takenOverBy(earlier);
      await servesPluginOf(executables);
      await takenOverBy(executables);
      await inTurns(later, async ({ id, netns }) =>
        expect(await node.cni("DEL", id, { netns })).toMatchObject({ t: "ok" }),
      );
      expect([await node.disagreements(), node.endpoints()]).toEqual([[], []]);
    }, 600_000);
  });
});
