import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { compileExecutables } from "../conformance/plugin.ts";
import { dayMs, SteppedClock } from "../faults/node/stepped-clock.ts";
import { eventually } from "../support/agent-process.ts";
import { describeWith } from "../support/requires.ts";
import { Capture } from "./lab/capture.ts";
import { Conversation } from "./lab/conversation.ts";
import { messagesOf } from "./lab/greetings.ts";
import { Lab } from "./lab/lab.ts";
import type { LabPod } from "./lab/lab-pod.ts";
import { marker, says, saysDuring } from "./lab/marked-pings.ts";
import { answers } from "./lab/reach.ts";

/** Less than what the clock is set by, and longer than the test. */
const rotateHours = 12;
/** Of the agent, with a second to spare. */
const lookMs = 5_000 + 1_000;
/** After which WireGuard answers data with a greeting where it has nothing else to say, with a second to spare. */
const passiveMs = 10_000 + 1_000;

describeWith(
  "WireGuard while a node's clock is set",
  ["root", "openvswitch", "nft", "etcd", "wireguard-go", "tun", "gcc"],
  () => {
    const stack = new AsyncDisposableStack();
    let lab: Lab;
    let near: LabPod;
    let far: LabPod;
    let capture: Capture;
    /** Of the first node: its agent, and its wireguard-go. */
    let clock: SteppedClock;

    beforeAll(async () => {
      compileExecutables();
      const ovs = { encryption: "wireguard", wireguard: { rotateHours } };
      lab = stack.use(await Lab.ground({ nodes: ["a", "a"], ovs }));
      clock = await SteppedClock.make(lab.directory);
      lab.node(1).variables = clock.env;
      await lab.startRegistry();
      for (const node of lab.nodes) await node.startAgent();
      [near, far] = (await Promise.all(lab.nodes.map((node) => node.addPod("web")))) as [LabPod, LabPod];
      capture = stack.use(await Capture.start(lab.underlay, [1, 2]));
      await reached();
    });
    afterAll(() => stack.disposeAsync());

    const reached = (): Promise<unknown> =>
      eventually(() => answers(near.namespace, far.address(4), { seconds: 1 }), "an answer of the other", 60_000);
    const expectNothingClear = (): void => {
      expect(capture.having(marker)).toBe(0);
      const clear = [...capture.kinds().keys()].filter((kind) => kind !== "wireguard" && kind !== "other");
      expect(clear).toEqual([]);
    };
    const shortcomings = async (number: number): Promise<string> =>
      (await lab.node(number).home.status()).shortcomings.join("\n");
    const key = (number: number): string => readFileSync(`${lab.node(number).home.dataDir}/wireguard.key`, "utf8");
    /** By a new daemon, which greets the other node at once. */
    const greetAnew = (): void => {
      for (const pid of lab.node(1).processes("wireguard-go")) process.kill(pid, "SIGKILL");
    };

    test("forward by a day: no keys are held for void, no other ones taken, and what pods say goes on", async () => {
      const before = [key(1), key(2)];
      using conversation = await Conversation.start(near.namespace, far.namespace, far.address(4));
      await clock.step(dayMs);
      await Bun.sleep(2 * lookMs);
      expect([await shortcomings(1), await shortcomings(2)]).toEqual(["", ""]);
      expect([key(1), key(2)]).toEqual(before);
      await conversation.goesOn();
      expect(conversation.ended).toBeUndefined();
      expectNothingClear();
    });

    test("back by a day: it takes another key, which others hear at that time too, and no packet is lost", async () => {
      const before = [key(1), key(2)];
      greetAnew();
      await reached();
      const { answered, missing } = await saysDuring(near, far.address(4), async () => {
        await clock.step(-dayMs);
        await eventually(() => key(1) !== before[0], "another key");
        await Bun.sleep(2_000);
      });
      expect(missing).toEqual([]);
      expect(answered).toBeGreaterThan(10);
      const after = key(1);
      greetAnew();
      await reached();
      await Bun.sleep(2 * lookMs);
      expect([key(1), key(2)]).toEqual([after, before[1]]);
      expect([await shortcomings(1), await shortcomings(2)].join("")).not.toMatch(/nothing goes/);
      expectNothingClear();
    });

    test("back, while the registry takes no other key: nothing goes, and the status says why; then all does", async () => {
      await clock.step(dayMs);
      greetAnew();
      await reached();
      await lab.etcd.signal(0, "SIGTERM");
      const before = key(1);
      // The other node hears that its last answer has come, and greets for nothing by itself then.
      await Bun.sleep(passiveMs);
      await clock.step(-dayMs);
      greetAnew();
      await eventually(
        async () =>
          /nothing goes to the pods of node "n2" at .*this node's clock was set back, and others take its handshakes only from/.test(
            await shortcomings(1),
          ),
        "the clock in the status",
        30_000,
      );
      capture.clear();
      for (const address of far.addresses) expect(await says(near, address)).toBe(false);
      await eventually(() => messagesOf(capture, "greeting", lab.node(1).addresses[0]).length > 0, "a greeting");
      expect(messagesOf(capture, "answer", lab.node(2).addresses[0])).toEqual([]);
      expectNothingClear();
      expect(key(1)).toBe(before);
      await lab.etcd.startMember(0);
      await lab.etcd.healthy(0);
      // The next agent tries at once.
      await lab.node(1).agent.end("SIGKILL");
      await lab.node(1).startAgent();
      await reached();
      expect(key(1)).not.toBe(before);
      expectNothingClear();
    });
  },
);
