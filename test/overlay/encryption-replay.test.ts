import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { compileExecutables } from "../conformance/plugin.ts";
import { eventually } from "../support/agent-process.ts";
import { RawLink } from "../support/frames/raw-link.ts";
import { describeWith, type Need } from "../support/requires.ts";
import { Capture, type FrameKind } from "./lab/capture.ts";
import { messagesOf } from "./lab/greetings.ts";
import { Lab, type LabOptions } from "./lab/lab.ts";
import type { LabPod } from "./lab/lab-pod.ts";
import { marker } from "./lab/marked-pings.ts";
import { answers } from "./lab/reach.ts";

interface Way {
  readonly kind: FrameKind;
  readonly options: Partial<LabOptions>;
  readonly needs: readonly Need[];
  /** How often a pod hears what somebody on the way has sent three times more. */
  readonly heard: number;
}

const userspace = { esp: "userspace" } as const;
const strongSwan = ["strongswan", "kernel-libipsec", "ovs-monitor-ipsec"] as const;
const ways: readonly (readonly [string, Way])[] = [
  ["none (the control)", { kind: "geneve", options: { ovs: { encryption: "none" } }, needs: [], heard: 4 }],
  [
    "wireguard",
    { kind: "wireguard", options: { ovs: { encryption: "wireguard" } }, needs: ["wireguard-go"], heard: 1 },
  ],
  [
    "ipsec, by strongSwan itself",
    {
      ...{ kind: "esp", needs: strongSwan, heard: 1 },
      options: { ...userspace, ovs: { encryption: "ipsec", ipsec: userspace } },
    },
  ],
];
const times = 3;
const port = 7374;

describe.each(ways)("what is sent once more between two nodes: encryption %s", (_, way) => {
  describeWith("is heard", ["root", "openvswitch", "nft", "etcd", "tun", ...way.needs], () => {
    const stack = new AsyncDisposableStack();
    let lab: Lab;
    let near: LabPod;
    let far: LabPod;
    let capture: Capture;
    /** On the underlay, where somebody on the way sends to the second node. */
    let attacker: RawLink;

    beforeAll(async () => {
      compileExecutables();
      lab = stack.use(await Lab.start({ nodes: ["a", "a"], ...way.options }));
      [near, far] = (await Promise.all(lab.nodes.map((node) => node.addPod("web")))) as [LabPod, LabPod];
      capture = stack.use(await Capture.start(lab.underlay, [1, 2]));
      attacker = stack.use(await RawLink.open(lab.underlay.namespace, "node2"));
      await reached();
    });
    afterAll(() => stack.disposeAsync());

    const reached = () =>
      eventually(() => answers(near.namespace, far.address(4), { seconds: 1 }), "an answer of the other");
    const [from, to] = [() => lab.node(1).addresses[0], () => lab.node(2).addresses[0]];

    test(`${way.heard === 1 ? "once" : "as often as it comes"} by a pod`, async () => {
      const heard = new Map<string, number>();
      const data = (_socket: unknown, bytes: Buffer): void => {
        const number = bytes.subarray(marker.length).toString();
        heard.set(number, (heard.get(number) ?? 0) + 1);
      };
      const ear = await far.namespace.within(() => Bun.udpSocket({ hostname: far.address(4), port, socket: { data } }));
      stack.defer(() => ear.close());
      const mouth = await near.namespace.within(() => Bun.udpSocket({}));
      stack.defer(() => mouth.close());
      const say = async (first: number, count: number): Promise<void> => {
        for (let i = first; i < first + count; i++) {
          mouth.send(Buffer.concat([marker, Buffer.from(String(i))]), port, far.address(4));
          await Bun.sleep(2);
        }
        await eventually(() => heard.has(String(first + count - 1)), `the message ${first + count - 1}`);
      };
      capture.clear();
      await say(0, 40);
      const frames = capture.of(way.kind, from());
      expect(frames.length).toBeGreaterThanOrEqual(40);
      using node = await RawLink.open(lab.node(2).namespace, "nic0");
      const arrived = new Map<string, number>();
      for (let time = 0; time < times; time++) {
        for (const frame of frames) attacker.send(frame);
        // As if it came to a node that has heard more meanwhile.
        await say(40 + 10 * time, 10);
        for (const frame of node.received()) {
          const text = Buffer.from(frame).toString("latin1");
          arrived.set(text, (arrived.get(text) ?? 0) + 1);
        }
      }
      // The second node did get each of them.
      for (const frame of frames) expect(arrived.get(Buffer.from(frame).toString("latin1"))).toBe(times);
      const numbers = Array.from({ length: 40 }, (_, i) => String(i));
      const counts = new Set(numbers.map((number) => heard.get(number)));
      expect([...counts]).toEqual([way.heard]);
      expect([heard.get("40"), heard.get("69")]).toEqual([1, 1]);
      if (way.kind === "geneve") expect(capture.having(marker)).toBeGreaterThan(0);
      else expect(capture.having(marker)).toBe(0);
    });

    if (way.kind !== "wireguard") return;

    test("not at all as a greeting", async () => {
      capture.clear();
      // The next daemon greets anew.
      for (const pid of lab.node(1).processes("wireguard-go")) process.kill(pid, "SIGKILL");
      await eventually(() => messagesOf(capture, "greeting", from()).length > 0, "a greeting");
      await reached();
      const greetings = messagesOf(capture, "greeting", from());
      const answered = messagesOf(capture, "answer", to()).length;
      expect(answered).toBeGreaterThan(0);
      for (let time = 0; time < times; time++) {
        for (const greeting of greetings) attacker.send(greeting);
        // It takes no two within 20 ms, whatever they are.
        await Bun.sleep(100);
      }
      await reached();
      expect(messagesOf(capture, "answer", to()).length).toBe(answered);
      expect(capture.having(marker)).toBe(0);
    });
  });
});
