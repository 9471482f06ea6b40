import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { compileExecutables } from "../conformance/plugin.ts";
import { eventually } from "../support/agent-process.ts";
import { RawLink } from "../support/frames/raw-link.ts";
import { describeWith } from "../support/requires.ts";
import { datagram, forbiddenFrames, taggedFrames } from "./forbidden-frames.ts";
import { external, nodeMac } from "./lab/addresses.ts";
import { forgedPing, sendForgedPing } from "./lab/forged-tunnel.ts";
import { Lab, type LabOptions } from "./lab/lab.ts";
import type { LabPod } from "./lab/lab-pod.ts";
import { macOf, openRawPod, type RawPod, read } from "./lab/raw-pod.ts";
import { answers, pingsHeard } from "./lab/reach.ts";

const families = [4, 6] as const;
/** Of datagrams to the world outside, which nobody else sends. */
const port = 4242;

const modes: readonly (readonly [string, LabOptions])[] = [
  ["in tunnels", { nodes: ["a", "a"] }],
  ["in tunnels, with the uplink on the bridge", { nodes: ["a", "a"], nic: "uplink" }],
  ["without tunnels", { nodes: ["a", "a"], ovs: { mode: "noEncap" } }],
  ["without tunnels, with the uplink on the bridge", { nodes: ["a", "a"], nic: "uplink", ovs: { mode: "noEncap" } }],
  ["with tunnels between links only", { nodes: ["a", "a", "b"], ovs: { mode: "hybrid" } }],
  ["on a kernel bridge", { nodes: ["a", "a"], dataPath: "bridge" }],
  [
    "with tunnels between links only, with the uplink on the bridge",
    { nodes: ["a", "a", "b"], nic: "uplink", ovs: { mode: "hybrid" } },
  ],
];

describeWith("a pod with root and raw sockets against other nodes", ["root", "openvswitch", "nft", "etcd"], () => {
  beforeAll(compileExecutables);

  describe.each(modes)("%s", (_name, options) => {
    let lab: Lab;
    let hostile: LabPod;
    let others: readonly LabPod[];
    let raw: RawPod;
    let wire: RawLink;
    let macs: readonly string[];

    beforeAll(async () => {
      lab = await Lab.start(options);
      const [first, ...rest] = lab.nodes;
      hostile = await first!.addPod("hostile");
      others = await Promise.all([first!.addPod("near"), ...rest.map((node) => node.addPod("far"))]);
      raw = await openRawPod(hostile);
      wire = await RawLink.open(lab.underlay.namespace, "node1");
      const router = await macOf(lab.underlay.namespace, "link-a");
      // Of a node on the link, of one behind the router, of the router, of the node itself, of its gateway.
      macs = [nodeMac(2), nodeMac(3), router, nodeMac(1), raw.gatewayMac, await macOf(others[0]!.namespace, "eth0")];
    });
    afterAll(async () => {
      raw?.[Symbol.dispose]();
      wire?.[Symbol.dispose]();
      await lab?.[Symbol.asyncDispose]();
    });

    const own = (to: string): string => raw[to.includes(":") ? 6 : 4];
    const send = (to: string, mac: string, to_port: number, data: Uint8Array | readonly number[] = [1]): void =>
      raw.link.send(datagram({ from: raw.mac, to: mac }, { from: own(to), to }, [40_000, to_port], data));

    test("what it sends to the world outside has its node's address, whichever MAC it names", async () => {
      wire.received();
      for (const to of external) for (const mac of macs) send(to, mac, port);
      const seen: string[] = [];
      await eventually(async () => {
        seen.push(
          ...wire
            .received()
            .map(read)
            .flatMap((one) => (one?.port === port ? [one.source] : [])),
        );
        // A kernel bridge passes nothing on to a MAC that it does not know.
        const passed = options.dataPath === "bridge" ? [raw.gatewayMac] : macs;
        return seen.length >= external.length * passed.length;
      }, "the datagrams on the wire");
      expect([...new Set(seen)].sort()).toEqual([...hostile.node.addresses].sort());
    });

    test("nobody hears what it says as a tunnel's end, whichever MAC it names", async () => {
      const heard = () => Promise.all(others.map(({ namespace }) => pingsHeard(namespace)));
      const before = await heard();
      for (const victim of others) {
        const ends = [...victim.node.addresses, ...victim.gateways, ...hostile.node.addresses];
        for (const end of ends) for (const mac of macs) send(end, mac, 6081, forgedPing(victim.address(4)));
      }
      // A node is believed, where there are tunnels: what was sent before has come by now, if it comes at all.
      const last = others.at(-1)!;
      const isTunnelled = options.dataPath !== "bridge" && options.ovs?.mode !== "noEncap";
      if (isTunnelled) {
        await sendForgedPing(hostile.node.namespace, last.node.addresses[0], last.address(4));
        await eventually(async () => (await pingsHeard(last.namespace)) > before.at(-1)!, "the ping of the node");
      } else await answers(hostile.namespace, last.address(4));
      const expected = before.with(-1, before.at(-1)! + 1);
      expect(await heard()).toEqual(expected);
    });

    test("no frame with a tag leaves it, and nothing else that it may not send gets to pods", async () => {
      using stack = new DisposableStack();
      const links = await Promise.all(
        others.map(async ({ namespace }) => stack.use(await RawLink.open(namespace, "eth0"))),
      );
      wire.received();
      const targets = [...macs, ...(await Promise.all(others.map(({ namespace }) => macOf(namespace, "eth0"))))];
      for (const victim of others)
        for (const mac of targets)
          for (const { frames } of taggedFrames(raw, { mac, 4: victim.address(4), 6: victim.address(6) }))
            for (const frame of frames) raw.link.send(frame);
      for (const victim of others) {
        const party = { mac: await macOf(victim.namespace, "eth0"), 4: victim.address(4), 6: victim.address(6) };
        for (const { frames } of forbiddenFrames(raw, party)) for (const frame of frames) raw.link.send(frame);
      }
      for (const victim of others)
        for (const family of families) expect(await answers(hostile.namespace, victim.address(family))).toBe(true);
      // Pings and what goes with them; the frames above are neither.
      const isHostile = (frame: Uint8Array): boolean => {
        const one = read(frame);
        return one !== undefined && own(one.source) === one.source && one.protocol !== 1 && one.protocol !== 58;
      };
      for (const link of [wire, ...links]) expect(link.received().filter(isHostile).map(read)).toEqual([]);
    });
  });
});
