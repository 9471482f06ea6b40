import { readdirSync, readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { compileExecutables } from "../conformance/plugin.ts";
import { eventually } from "../support/agent-process.ts";
import { describeWith } from "../support/requires.ts";
import { Capture } from "./lab/capture.ts";
import { Conversation } from "./lab/conversation.ts";
import { sendForgedPing } from "./lab/forged-tunnel.ts";
import { Lab } from "./lab/lab.ts";
import { type LabNode, labPsk } from "./lab/lab-node.ts";
import type { LabPod } from "./lab/lab-pod.ts";
import { marker, says } from "./lab/marked-pings.ts";
import { placesOf } from "./lab/places.ts";
import { answers, pingsHeard, unansweredPings } from "./lab/reach.ts";
import { etcdctl } from "./lab/registry-records.ts";
import { failedConnections } from "./lab/tcp.ts";

/** What strongSwan's own device takes (1400), less IP, UDP, Geneve and Ethernet. */
const largest = 1400 - 50;

describeWith(
  "IPsec between two nodes, encrypted by strongSwan itself",
  ["root", "openvswitch", "nft", "etcd", "etcdctl", "strongswan", "kernel-libipsec", "ovs-monitor-ipsec", "tun"],
  () => {
    let lab: Lab;
    let near: LabPod;
    let far: LabPod;
    let capture: Capture;

    beforeAll(async () => {
      compileExecutables();
      const ovs = { encryption: "ipsec", ipsec: { esp: "userspace" } };
      lab = await Lab.start({ nodes: ["a", "a"], esp: "userspace", ovs });
      [near, far] = (await Promise.all(lab.nodes.map((node) => node.addPod("web")))) as [LabPod, LabPod];
      capture = await Capture.start(lab.underlay, [1, 2]);
      await reached();
    });
    afterAll(async () => {
      capture?.[Symbol.dispose]();
      await lab?.[Symbol.asyncDispose]();
    });

    const reached = async (): Promise<void> => {
      await eventually(() => answers(near.namespace, far.address(4), { seconds: 1 }), "an answer of the other");
      await eventually(() => answers(far.namespace, near.address(4), { seconds: 1 }), "an answer of this one");
    };
    /** Nothing that pods have said, and nothing of theirs in any tunnel, has been between the nodes. */
    const expectNothingClear = (): void => {
      expect(capture.having(marker)).toBe(0);
      const clear = [...capture.kinds().keys()].filter((kind) => !["esp", "ike", "other"].includes(kind));
      expect(clear).toEqual([]);
    };
    const expectNothingBetween = async (): Promise<void> => {
      capture.clear();
      for (const address of far.addresses) expect(await says(near, address)).toBe(false);
      expect(await says(far, near.address(4))).toBe(false);
      expectNothingClear();
    };
    const shortcomings = async (node: LabNode): Promise<string> => (await node.home.status()).shortcomings.join("\n");
    const problems = async (node: LabNode): Promise<string> =>
      (await node.home.status()).problems.map(({ message }) => message).join("\n");
    const told = async (node: LabNode, sentence: RegExp): Promise<void> => {
      let is = "";
      const asked = async (): Promise<boolean> => {
        is = await shortcomings(node);
        return sentence.test(is);
      };
      // What it says instead is worth more than that the wait was in vain.
      await eventually(asked, "").catch(() => expect(is).toMatch(sentence));
    };
    /** Numbers of the keys for packets in use (SPIs). */
    const spis = async (node: LabNode): Promise<string> =>
      [...(await node.ipsec.run("ipsec", "statusall")).matchAll(/SPIs: ([0-9a-f]{8})_i ([0-9a-f]{8})_o/g)]
        .map(([, into, out]) => `${into} ${out}`)
        .sort()
        .join();

    test("pods reach each other, and nothing of it can be read between the nodes", async () => {
      const places = placesOf(lab);
      expect(await unansweredPings(places)).toEqual([]);
      expect(await failedConnections(places)).toEqual([]);
      capture.clear();
      for (const address of far.addresses) expect(await says(near, address)).toBe(true);
      expectNothingClear();
      expect(capture.kinds().get("esp")).toBeGreaterThanOrEqual(12);
      for (const node of lab.nodes) expect(await problems(node)).toBe("");
      for (const node of lab.nodes)
        await eventually(async () => !(await shortcomings(node)).includes("nothing goes"), "keys in the status");
    });

    test("the largest packet passes, and one byte more does not", async () => {
      for (const address of far.addresses) {
        await eventually(() => answers(near.namespace, address, { packetBytes: largest }), "the largest packet");
        expect(await answers(near.namespace, address, { packetBytes: largest + 1, seconds: 1 })).toBe(false);
      }
    });

    test("the secret is with those who need it, and in nothing else", async () => {
      const [first] = lab.nodes;
      const own = lab.nodes.map((node) => node.agent.stderr);
      const everything = [
        ...own,
        ...(await Promise.all(lab.nodes.map(async (node) => JSON.stringify(await node.home.status())))),
        await etcdctl(lab, ["get", "--prefix", ""]),
        ...readdirSync("/proc").flatMap((pid) => commandLine(pid)),
      ];
      for (const text of everything) expect(text.includes(labPsk)).toBe(false);
      // As documented: whoever reads the database has it.
      expect(await first?.vswitch.vsctl("show")).toContain(labPsk);
    });

    test("a forged packet in clear is not believed", async () => {
      const before = await pingsHeard(far.namespace);
      await sendForgedPing(lab.underlay.namespace, far.node.addresses[0], far.address(4));
      await told(lab.node(2), /1 packets of other nodes' pods came in clear/);
      expect(await pingsHeard(far.namespace)).toBe(before);
    });

    test("a killed agent, the next one and a new pod leave the keys as they are", async () => {
      using conversation = await Conversation.start(near.namespace, far.namespace, far.address(4));
      const before = await spis(lab.node(1));
      expect(before).not.toBe("");
      await lab.node(1).agent.end("SIGKILL");
      capture.clear();
      await conversation.goesOn();
      await lab.node(1).startAgent();
      const another = await lab.node(1).addPod("another");
      await eventually(() => answers(another.namespace, far.address(4), { seconds: 1 }), "the other of a new pod");
      await another.remove();
      await conversation.goesOn();
      expect(await spis(lab.node(1))).toBe(before);
      expectNothingClear();
      expect(conversation.ended).toBeUndefined();
    });

    test("without ovs-monitor-ipsec the node is not ready, and what is encrypted stays so", async () => {
      process.kill(lab.node(1).ipsec.monitorPid, "SIGKILL");
      await eventually(async () => /ovs-monitor-ipsec/.test(await problems(lab.node(1))), "the monitor's absence");
      capture.clear();
      expect(await says(near, far.address(4))).toBe(true);
      expectNothingClear();
      const { problems: both } = await lab.node(1).home.status();
      expect(both.map(({ code }) => code)).toEqual([51]);
      await lab.node(1).ipsec.startMonitor();
      await eventually(async () => (await problems(lab.node(1))) === "", "no problem");
      await reached();
      expectNothingClear();
    });

    test("without strongSwan nothing leaves, the node is not ready, and both are so again with it", async () => {
      for (const program of ["starter", "charon"])
        for (const pid of lab.node(1).processes(program)) process.kill(pid, "SIGKILL");
      await eventually(async () => /charon does not answer/.test(await problems(lab.node(1))), "charon's absence");
      await expectNothingBetween();
      // The monitor tells it nothing by itself, as where it is told while it still starts.
      await lab.node(1).ipsec.startCharon("without connections");
      await eventually(async () => (await problems(lab.node(1))) === "", "no problem");
      await reached();
      expectNothingClear();
    });

    test("with another secret nothing passes, and the status names node and cause; with the right one all does", async () => {
      const turn = async (psk: string): Promise<void> => {
        await lab.node(2).agent.end();
        lab.node(2).psk = psk;
        await lab.node(2).startAgent();
      };
      await turn("another-secret");
      await told(lab.node(1), /node "n2" at 172\.30\.0\.2: .*AUTHENTICATION_FAILED/);
      await told(lab.node(2), /node "n1" at 172\.30\.0\.1: .*AUTHENTICATION_FAILED/);
      await expectNothingBetween();
      await turn(labPsk);
      await reached();
      expectNothingClear();
    });

    test("a node that does not answer is told apart, and one that does not encrypt is named", async () => {
      const key = "/pipette/v1/nodes/n2";
      const right = await etcdctl(lab, ["get", "--print-value-only", key]);
      await lab.underlay.plug(2, "down");
      await lab.node(1).ipsec.startMonitor();
      await told(lab.node(1), /node "n2" at 172\.30\.0\.2: it does not answer at UDP 500 and 4500/);
      await lab.underlay.plug(2, "up");
      // Else it asks ever more rarely.
      await lab.node(1).ipsec.startMonitor();
      await reached();
      await lab.node(2).agent.end();
      const { encryption: _, ...without } = JSON.parse(right);
      await etcdctl(lab, ["put", key, JSON.stringify(without)]);
      await told(lab.node(1), /node "n2": it does not encrypt, wanted "ovs.encryption: ipsec" there/);
      await expectNothingBetween();
      await lab.node(2).startAgent();
      await reached();
      expectNothingClear();
    });
  },
);

function commandLine(pid: string): string[] {
  try {
    return /^\d+$/.test(pid) ? [readFileSync(`/proc/${pid}/cmdline`, "utf8")] : [];
  } catch {
    return [];
  }
}
