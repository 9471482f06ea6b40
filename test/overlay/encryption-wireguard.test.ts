import { readFileSync, statSync, utimesSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { compileExecutables } from "../conformance/plugin.ts";
import { eventually } from "../support/agent-process.ts";
import { describeWith } from "../support/requires.ts";
import { Capture } from "./lab/capture.ts";
import { Conversation } from "./lab/conversation.ts";
import { messagesOf } from "./lab/greetings.ts";
import { Lab } from "./lab/lab.ts";
import type { LabNode } from "./lab/lab-node.ts";
import type { LabPod } from "./lab/lab-pod.ts";
import { marker, says, saysDuring } from "./lab/marked-pings.ts";
import { encryptingDevice } from "./lab/own-run.ts";
import { placesOf } from "./lab/places.ts";
import { answers, unansweredPings } from "./lab/reach.ts";
import { etcdctl } from "./lab/registry-records.ts";
import { failedConnections } from "./lab/tcp.ts";

/** Of a packet of IPv4 between the nodes: its own header, UDP's, and 32 of WireGuard's. */
const largest = 1500 - 60;
/** Longer than any of the test's own: the key changes when its file looks that old. */
const rotateHours = 1000;

describeWith(
  "WireGuard between two nodes",
  ["root", "openvswitch", "nft", "etcd", "etcdctl", "wireguard-go", "tun"],
  () => {
    let lab: Lab;
    let near: LabPod;
    let far: LabPod;
    let capture: Capture;

    beforeAll(async () => {
      compileExecutables();
      lab = await Lab.start({ nodes: ["a", "a"], ovs: { encryption: "wireguard", wireguard: { rotateHours } } });
      [near, far] = (await Promise.all(lab.nodes.map((node) => node.addPod("web")))) as [LabPod, LabPod];
      capture = await Capture.start(lab.underlay, [1, 2]);
      await reached();
    });
    afterAll(async () => {
      capture?.[Symbol.dispose]();
      await lab?.[Symbol.asyncDispose]();
    });

    const reached = () =>
      eventually(() => answers(near.namespace, far.address(4), { seconds: 1 }), "an answer of the other");

    /** What the daemon of a node answers, as it is told to without an agent. */
    const control = async (node: LabNode, request = "get=1\n\n"): Promise<string> => {
      const told = Promise.withResolvers<string>();
      let text = "";
      using _ = await Bun.connect({
        unix: `/proc/${node.processes("wireguard-go")[0]}/root/run/wireguard/${encryptingDevice}.sock`,
        socket: {
          open: (socket) => void socket.write(request),
          data: (_, bytes) => {
            text += bytes.toString();
            if (text.endsWith("\n\n")) told.resolve(text);
          },
          close: () => told.resolve(text),
        },
      });
      return await told.promise;
    };

    /** Nothing that pods have said, and nothing of theirs in any tunnel, has been between the nodes. */
    const expectNothingClear = (): void => {
      expect(capture.having(marker)).toBe(0);
      const clear = [...capture.kinds().keys()].filter((kind) => kind !== "wireguard" && kind !== "other");
      expect(clear).toEqual([]);
    };

    const shortcomings = async (node: LabNode): Promise<string> => (await node.home.status()).shortcomings.join("\n");
    const keyFile = (node: LabNode): string => `${node.home.dataDir}/wireguard.key`;
    const recordKey = "/pipette/v1/nodes/n2";
    const record = async (): Promise<Record<string, unknown>> =>
      JSON.parse(await etcdctl(lab, ["get", "--print-value-only", recordKey]));

    test("pods reach each other, and nothing of it can be read between the nodes", async () => {
      const places = placesOf(lab);
      expect(await unansweredPings(places)).toEqual([]);
      expect(await failedConnections(places)).toEqual([]);
      capture.clear();
      for (const address of far.addresses) expect(await says(near, address)).toBe(true);
      expectNothingClear();
      expect(capture.kinds().get("wireguard")).toBeGreaterThanOrEqual(12);
      expect(await shortcomings(lab.node(1))).toBe("");
    });

    test("each greets the other now and then, also the one that left it to the other to begin", async () => {
      const greets = (node: LabNode) =>
        expect.poll(() => control(node)).toContain("\npersistent_keepalive_interval=25\n");
      for (const node of lab.nodes) await greets(node);
      // As where the agent was killed before it greeted.
      const node = lab.node(1);
      const key = /^public_key=.*$/m.exec(await control(node))?.[0];
      await node.agent.end("SIGKILL");
      await control(node, `set=1\n${key}\npersistent_keepalive_interval=0\n\n`);
      expect(await control(node)).toContain("\npersistent_keepalive_interval=0\n");
      await node.startAgent();
      await greets(node);
    });

    test("the largest packet fills the link, and one byte more does not pass", async () => {
      for (const address of far.addresses) {
        await eventually(() => answers(near.namespace, address, { packetBytes: largest }), "the largest packet");
        expect(await answers(near.namespace, address, { packetBytes: largest + 1, seconds: 1 })).toBe(false);
      }
    });

    test("the private key is the node's own, and nobody else's to read", async () => {
      for (const node of lab.nodes) {
        expect(statSync(keyFile(node)).mode & 0o777).toBe(0o600);
        const key = readFileSync(keyFile(node), "utf8").trim();
        const hex = Buffer.from(key, "base64").toString("hex");
        const everything = [
          node.agent.stderr,
          JSON.stringify(await node.home.status()),
          await etcdctl(lab, ["get", "--prefix", ""]),
        ];
        for (const text of everything) {
          expect(text.includes(key)).toBe(false);
          expect(text.includes(hex)).toBe(false);
        }
      }
      expect((await record())["encryption"]).toMatch(/^wireguard:[A-Za-z0-9+/]{43}=$/);
    });

    test("without the device nothing leaves; it is made again, and all goes on", async () => {
      {
        using _ = await lab.node(1).agent.held();
        await lab.node(1).namespace.ip(`link del ${encryptingDevice}`);
        capture.clear();
        expect(await says(near, far.address(4))).toBe(false);
        expect(await says(near, far.address(6))).toBe(false);
        expect(await says(far, near.address(4))).toBe(false);
        expectNothingClear();
      }
      await reached();
      expect(await shortcomings(lab.node(1))).toMatch(/\d+ packets for other nodes' pods would have left in clear/);
      expectNothingClear();
    });

    test("where the daemon is killed the agent starts another", async () => {
      const daemons = (): readonly number[] => lab.node(1).processes("wireguard-go");
      const [first, ...others] = daemons();
      expect([first !== undefined, others]).toEqual([true, []]);
      capture.clear();
      process.kill(first ?? 0, "SIGKILL");
      await eventually(() => daemons().some((pid) => pid !== first), "another daemon");
      await reached();
      expectNothingClear();
    });

    test("a killed agent changes nothing, nor does the next one", async () => {
      using conversation = await Conversation.start(near.namespace, far.namespace, far.address(4));
      await lab.node(1).agent.end("SIGKILL");
      capture.clear();
      await conversation.goesOn();
      expect(await says(near, far.address(4))).toBe(true);
      await lab.node(1).startAgent();
      await conversation.goesOn();
      expectNothingClear();
      expect(conversation.ended).toBeUndefined();
    });

    test("a new key loses no packet", async () => {
      const before = (await record())["encryption"];
      const old = readFileSync(keyFile(lab.node(2)), "utf8");
      capture.clear();
      const { answered, missing } = await saysDuring(near, far.address(4), async () => {
        utimesSync(keyFile(lab.node(2)), 0, 0);
        await eventually(async () => (await record())["encryption"] !== before, "another public key in the registry");
        await reached();
        // The change itself may take less time than a dozen packets.
        await Bun.sleep(1_000);
      });
      expect(readFileSync(keyFile(lab.node(2)), "utf8")).not.toBe(old);
      expect(missing).toEqual([]);
      expect(answered).toBeGreaterThan(10);
      expectNothingClear();
    });

    test("with a new key a node greets nobody who does not know it yet", async () => {
      const before = (await record())["encryption"];
      const greetings = (number: number) => messagesOf(capture, "greeting", lab.node(number).addresses[0]);
      const { missing } = await saysDuring(near, far.address(4), async () => {
        {
          using _ = await lab.node(1).agent.held();
          capture.clear();
          utimesSync(keyFile(lab.node(2)), 0, 0);
          await eventually(async () => (await record())["encryption"] !== before, "another public key in the registry");
          // A dozen packets come, and their answers wait.
          await Bun.sleep(300);
          expect(greetings(2)).toEqual([]);
        }
        await reached();
        await Bun.sleep(300);
      });
      expect(greetings(1)).toHaveLength(1);
      expect(missing).toEqual([]);
      expectNothingClear();
    });

    test("with a key that is not the other's, and with none, nothing passes, and the status names the node", async () => {
      const right = await record();
      const put = (value: object): Promise<string> => etcdctl(lab, ["put", recordKey, JSON.stringify(value)]);
      const { encryption, ...without } = right;
      await lab.node(2).agent.end("SIGKILL");
      const foreign = `wireguard:${Buffer.alloc(32, 9).toString("base64").replace(/.=$/, "k=")}`;
      for (const [value, told] of [
        [{ ...right, encryption: foreign }, /node "n2" at 172\.30\.0\.2: it agrees on no keys/],
        [without, /node "n2": it does not encrypt/],
      ] as const) {
        await put(value);
        await eventually(async () => told.test(await shortcomings(lab.node(1))), `${told} in the status`);
        capture.clear();
        expect(await says(near, far.address(4))).toBe(false);
        expect(await says(far, near.address(4))).toBe(false);
        expectNothingClear();
      }
      // Its next agent tells the right one again; and so does one that runs.
      await lab.node(2).startAgent();
      await reached();
      await put({ ...right, encryption: foreign });
      await eventually(async () => (await record())["encryption"] === encryption, "the right key in the registry");
      await reached();
    });

    test("a node that moves to another address is followed", async () => {
      const moved = "172.30.0.42";
      const { namespace } = lab.node(2);
      using conversation = await Conversation.start(far.namespace, near.namespace, near.address(4));
      capture.clear();
      await namespace.ip("addr del 172.30.0.2/24 dev br-phy", `addr add ${moved}/24 dev br-phy`);
      await eventually(() => capture.sentFrom(moved) > 10, "packets from the other address");
      await conversation.goesOn();
      expect(conversation.ended).toBeUndefined();
      expectNothingClear();
    });
  },
);
