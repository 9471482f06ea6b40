import { afterAll, beforeAll, expect, test } from "vitest";
import type { ActiveFault, Fault } from "../../fakes/hns/faults.ts";
import { describeWine } from "../wine/describe-wine.ts";
import { WindowsNode } from "./windows-node.ts";

/** What befalls a call, and of which kinds the error of an ADD may be then. */
const mishaps: readonly [name: string, fault: Omit<Fault, "call">, codes: readonly number[]][] = [
  ["is refused", { hresult: 0x80004005 }, [102]],
  ["is done, and its answer lost with the service", { afterwards: 0x800706be }, [11, 102]],
  ["is late", { holdMs: 500 }, [11]],
  ["is done and its answer late", { holdMs: 500, effectFirst: true }, [11]],
];

/** Where a call is late, the plugin waits for less than that. */
const confFor = ({ holdMs }: Omit<Fault, "call">) =>
  holdMs === undefined ? {} : { addTimeoutMs: 250, delTimeoutMs: 250 };

describeWine("each call of HNS in turn", (wine) => {
  let node: WindowsNode;
  const calls = { ADD: 0, DEL: 0, start: 0 };
  beforeAll(async () => {
    node = await WindowsNode.make(wine.prefix);
    calls.start = await callsWithin(() => node.start());
    const netns = node.stubs.hns.newNamespace();
    calls.ADD = await callsWithin(() => node.cni("ADD", "a", { netns }));
    calls.DEL = await callsWithin(() => node.cni("DEL", "a", { netns }));
    expect([node.endpoints(), await node.disagreements()]).toEqual([[], []]);
  });
  afterAll(() => node[Symbol.asyncDispose]());

  /** How many there are, those aside that close a handle. */
  async function callsWithin(work: () => Promise<unknown>): Promise<number> {
    const { hns } = node.stubs;
    const before = hns.calls.length;
    await work();
    return hns.calls.slice(before).filter(({ fn }) => !fn.startsWith("HcnClose")).length;
  }

  const nth = (skip: number, fault: Omit<Fault, "call">): ActiveFault =>
    node.stubs.hns.fault({ ...fault, call: "*", skip, times: 1 });

  /** Nothing stands, and nothing is open, once whatever was begun is over. */
  const isClean = async (what: string): Promise<void> => {
    await expect.poll(() => node.endpoints().length, { timeout: 20_000 }).toBe(0);
    expect([what, await node.disagreements()]).toEqual([what, []]);
  };

  /** An ADD that succeeds in the end: after a loss of the service the agent may look at everything first. */
  const added = (id: string, netns: string): Promise<void> =>
    expect.poll(async () => (await node.cni("ADD", id, { netns })).t, { timeout: 20_000 }).toBe("ok");

  /** Another sandbox gets and gives back what it needs. */
  const serves = async (): Promise<void> => {
    const netns = node.stubs.hns.newNamespace();
    await added("b", netns);
    expect((await node.cni("DEL", "b", { netns })).t).toBe("ok");
  };

  test.each(mishaps)(
    "of an ADD %s: success or one error, and the sandbox' DEL leaves nothing",
    async (_, fault, codes) => {
      expect(calls.ADD).toBeGreaterThan(4);
      const conf = confFor(fault);
      for (let n = 0; n < calls.ADD; n++) {
        const netns = node.stubs.hns.newNamespace();
        const what = `call ${n} of ADD`;
        {
          using mishap = nth(n, fault);
          let answer = await node.cni("ADD", "a", { netns, conf });
          // After a loss of the service the agent looks at everything once more, a little later.
          for (let i = 0; i < 20 && mishap.hits === 0 && answer.t === "error" && answer.code === 11; i++) {
            await Bun.sleep(100);
            answer = await node.cni("ADD", "a", { netns, conf });
          }
          expect([what, answer, mishap.hits]).toEqual([what, answer, 1]);
          if (answer.t === "error") expect([what, codes]).toEqual([what, expect.arrayContaining([answer.code])]);
          else expect([what, node.endpoints().length]).toEqual([what, 1]);
          if (answer.t === "error") await isClean(what);
        }
        expect((await node.cni("DEL", "a", { netns })).t).toBe("ok");
        await isClean(what);
      }
    },
    120_000,
  );

  test.each(mishaps)(
    "of a DEL %s: success, and in the end nothing is left",
    async (_, fault) => {
      expect(calls.DEL).toBeGreaterThan(3);
      const conf = confFor(fault);
      for (let n = 0; n < calls.DEL; n++) {
        const netns = node.stubs.hns.newNamespace();
        const what = `call ${n} of DEL`;
        await added("a", netns);
        using mishap = nth(n, fault);
        expect((await node.cni("DEL", "a", { netns, conf })).t).toBe("ok");
        await mishap.hit();
        await isClean(what);
      }
    },
    120_000,
  );

  test.each([
    ["ADD", "before it is done", false],
    ["ADD", "when it is done", true],
    ["DEL", "before it is done", false],
    ["DEL", "when it is done", true],
  ] as const)(
    "of %s is the last of an agent that is killed %s: the next has everything in order",
    async (verb, _, effectFirst) => {
      for (let n = 0; n < calls[verb]; n++) {
        const netns = node.stubs.hns.newNamespace();
        const what = `call ${n} of ${verb}`;
        if (verb === "DEL") await added("a", netns);
        {
          using hang = nth(n, { holdMs: "until released", effectFirst });
          // Of an ADD that would wait for the next agent.
          const given = node.cni(verb, "a", { netns, conf: { addTimeoutMs: 3_000 } });
          await hang.hit();
          await node.stop(true);
          expect([what, (await given).t]).toEqual([what, verb === "ADD" ? "error" : "ok"]);
        }
        await node.start();
        await isClean(what);
      }
      await serves();
    },
    120_000,
  );

  test("of an agent's start is refused: it gets ready, or ends and does so when it is started again", async () => {
    expect(calls.start).toBeGreaterThan(4);
    for (let n = 0; n < calls.start; n++) {
      await node.stop();
      node.stubs.hns.store.networks.clear();
      const what = `call ${n} of the start`;
      {
        using mishap = nth(n, { hresult: 0x80004005 });
        const isReady = await node.start().then(
          () => true,
          () => false,
        );
        expect([what, mishap.hits]).toEqual([what, 1]);
        if (!isReady) {
          const ended = await node.stop();
          expect([what, ended?.status]).toEqual([what, 1]);
          await node.start();
        }
      }
      await serves();
      expect([what, node.stubs.hns.store.networks.size]).toEqual([what, 1]);
      await isClean(what);
    }
  }, 120_000);

  test("an agent that starts before HNS waits for it, and a pod is for later meanwhile", async () => {
    await node.stop();
    node.stubs.hns.isAway = true;
    const ready = node.start();
    const before = node.stubs.hns.calls.length;
    await expect.poll(() => node.stubs.hns.calls.length, { timeout: 20_000 }).toBeGreaterThan(before);
    expect(await node.cni("ADD", "a", { netns: node.stubs.hns.newNamespace() })).toMatchObject({
      t: "error",
      code: 11,
    });
    node.stubs.hns.isAway = false;
    await ready;
    await serves();
    await isClean("a late HNS");
  }, 60_000);
});
