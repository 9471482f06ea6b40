import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { linkLocalOf } from "../../agent/datapath/addresses.ts";
import { addFlow, deleteFlows, type Flow, type OpenFlowClient, setConfig } from "../../agent/protocols/openflow/mod.ts";
import { formatIp } from "../../shared/net/ip.ts";
import { forgetNeighbours } from "../support/forget-neighbours.ts";
import { fragments } from "../support/frames/fragments.ts";
import {
  address,
  arp,
  bytes,
  EtherType,
  ethernet,
  icmp6,
  ipv6,
  mac,
  type Part,
  Protocol,
  u32,
} from "../support/frames/frame.ts";
import { RawLink } from "../support/frames/raw-link.ts";
import { NetworkNamespace } from "../support/network-namespace.ts";
import type { NetworkSandbox } from "../support/network-sandbox.ts";
import { describeWith } from "../support/requires.ts";
import { addressOf, contexts, macs, nodeFlows, pods } from "./pipeline-node.ts";
import { PodBridge } from "./pipeline-pods.ts";

const { pod1, pod2, gateway, virtual } = macs;
const everybody = "ff:ff:ff:ff:ff:ff";
/** What one pod would have another read, in whatever is not looked at. */
const secret = [...new TextEncoder().encode("a word between projects")];
const linkLocal = (of: string): string => formatIp(linkLocalOf(of));

const solicitation = 135;
const advertisement = 136;
const solicited = 0x40000000;
const override = 0x20000000;
const router = 0x80000000;

interface Question {
  readonly from: string;
  readonly target: string;
  /** MAC that the frame goes to. */
  readonly to: string;
  readonly options?: Part;
}

/** Of `pod1`, with what it has to say besides. */
const arpRequest = (target: string, to = everybody): Uint8Array =>
  ethernet(
    { from: pod1, to },
    EtherType.arp,
    bytes(arp({ operation: 1, senderMac: pod1, sender: addressOf("pod1", 4), target }), secret),
  );

function discovery(type: number, flags: number, to: { mac: string; ip: string }, q: Question): Uint8Array {
  const ends = { from: q.from, to: to.ip };
  const body = bytes(u32(flags), address(q.target), q.options ?? [1, 1, ...mac(pod1)]);
  return ethernet({ from: pod1, to: to.mac }, EtherType.ipv6, ipv6(ends, Protocol.icmp6, icmp6(ends, type, body), 255));
}

/** To the group of its target, or to one MAC. */
const solicit = (q: Question): Uint8Array => discovery(solicitation, 0, { mac: q.to, ip: groupOf(q.target) }, q);

const groupOf = (target: string): string => {
  const [a = 0, b = 0, c = 0] = address(target).slice(13);
  const pair = (value: number): string => value.toString(16).padStart(2, "0");
  return `ff02::1:ff${pair(a)}:${pair(b)}${pair(c)}`;
};

/** An option of neighbour discovery that no kernel reads (RFC 4727), padded to eights of bytes. */
const strange = (data: readonly number[]): readonly number[] => {
  const eights = Math.ceil((data.length + 2) / 8);
  return [253, eights, ...data, ...Array.from({ length: eights * 8 - 2 - data.length }, () => 0)];
};

describeWith("questions about neighbours", ["linux", "root", "openvswitch"], () => {
  const open = new AsyncDisposableStack();
  let sandbox: NetworkSandbox;
  let client: OpenFlowClient;
  let links: { readonly pod1: RawLink; readonly pod2: RawLink; readonly node: RawLink };
  let paths: PodBridge["paths"];

  beforeAll(async () => {
    const made = open.use(await PodBridge.start());
    ({ sandbox, paths } = made);
    client = open.use(await made.bridge.connect());
    const at = async (path: string, ifname: string): Promise<RawLink> => {
      const namespace = open.use(path === "" ? NetworkNamespace.current() : NetworkNamespace.at(path));
      return open.use(await RawLink.open(namespace, ifname));
    };
    links = { pod1: await at(paths.pod1, "eth0"), pod2: await at(paths.pod2, "eth0"), node: await at("", "gw0") };
  });
  afterAll(() => open.disposeAsync());

  const install = (flows: readonly Flow[]) => client.bundle([deleteFlows(), ...flows.map(addFlow)]);
  /** Of what has come since the last time, whatever is not one's own kernel's doing. */
  const heard = (link: RawLink): string[] => link.received().map((frame) => Buffer.from(frame).toString("hex"));

  /** Sends these; answers what `pod1` and the others heard until a ping to the node that came after was answered. */
  async function send(...frames: readonly Uint8Array[]): Promise<{ own: Uint8Array[]; others: string[] }> {
    await sandbox.pod(paths.pod1, `ip neigh replace ${addressOf("gateway", 4)} lladdr ${gateway} dev eth0`);
    for (const link of Object.values(links)) link.received();
    for (const frame of frames) links.pod1.send(frame);
    expect(await sandbox.ping(paths.pod1, addressOf("gateway", 4), "one")).toBe(true);
    return { own: links.pod1.received(), others: [...heard(links.pod2), ...heard(links.node)] };
  }

  const isArp = (frame: Uint8Array): boolean => frame[12] === 8 && frame[13] === 6;
  const isAdvertisement = (frame: Uint8Array): boolean => frame[12] === 0x86 && frame[54] === advertisement;
  const carriesSecret = (frames: readonly string[]): readonly string[] =>
    frames.filter((frame) => frame.includes(Buffer.from(secret).toString("hex")));

  describe.each(["encap", "multitenant", "networkPolicyOnly"] as const)("%s", (mode) => {
    beforeEach(() => install(nodeFlows(contexts[mode])));
    /** Where another plugin routes all are behind the virtual MAC. */
    const holder = (own: string): string => (mode === "networkPolicyOnly" ? virtual : own);

    test("ARP is answered by the switch with the holder's MAC, and nobody else hears of it", async () => {
      for (const [host, own] of [
        ["pod2", pod2],
        ["gateway", gateway],
      ] as const) {
        for (const to of [everybody, own, gateway]) {
          const { own: heardBack, others } = await send(arpRequest(addressOf(host, 4), to));
          expect(carriesSecret(others)).toEqual([]);
          const answers = heardBack.filter(isArp);
          const wanted = {
            operation: 2,
            senderMac: holder(own),
            sender: addressOf(host, 4),
            targetMac: pod1,
            target: addressOf("pod1", 4),
          } as const;
          const answer = ethernet({ from: holder(own), to: pod1 }, EtherType.arp, arp(wanted));
          expect(answers.map((frame) => Buffer.from(frame.subarray(0, 42)).toString("hex"))).toEqual([
            Buffer.from(answer).toString("hex"),
          ]);
        }
      }
    });

    test("ARP's answers and announcements get to nobody", async () => {
      const said = { senderMac: pod1, sender: addressOf("pod1", 4) };
      const frames = [
        arp({ ...said, operation: 2, targetMac: pod2, target: addressOf("pod2", 4) }),
        arp({ ...said, operation: 2, targetMac: gateway, target: addressOf("gateway", 4) }),
        arp({ ...said, operation: 2, target: said.sender }),
        arp({ ...said, operation: 1, target: said.sender }),
      ].flatMap((packet) =>
        [pod2, gateway, everybody].map((to) => ethernet({ from: pod1, to }, EtherType.arp, bytes(packet, secret))),
      );
      const { own, others } = await send(...frames);
      expect(carriesSecret(others)).toEqual([]);
      expect(own.filter(isArp)).toEqual([]);
    });

    test("solicitations are answered by the switch, with the right flags, MAC and checksum, and without a word to others", async () => {
      const targets = [
        [addressOf("pod2", 6), pod2, 0],
        [linkLocal(pod2), pod2, 0],
        [addressOf("gateway", 6), gateway, router],
        [linkLocal(gateway), gateway, router],
      ] as const;
      for (const [target, own, flag] of targets)
        for (const from of [addressOf("pod1", 6), linkLocal(pod1)]) {
          // Behind the option that is wanted, or behind one that nobody reads, and beyond the packet's end.
          for (const options of [[1, 1, ...mac(pod1)], bytes([1, 1, ...mac(pod1)], strange(secret))]) {
            const asked = bytes(solicit({ from, target, to: own, options }), secret);
            const { own: heardBack, others } = await send(asked);
            expect(carriesSecret(others)).toEqual([]);
            const [answer, ...more] = heardBack.filter(isAdvertisement);
            expect(more).toEqual([]);
            if (answer === undefined) throw new Error(`No answer about ${target} to ${from}`);
            const flags = (mode === "networkPolicyOnly" ? router : flag) + solicited + override;
            const ends = { from: target, to: from };
            const message = bytes(u32(flags), address(target), [2, 1, ...mac(holder(own))], options.slice(8));
            const packet = ipv6(ends, Protocol.icmp6, icmp6(ends, advertisement, message), 255);
            const wanted = ethernet({ from: holder(own), to: pod1 }, EtherType.ipv6, packet);
            expect(Buffer.from(answer.subarray(0, wanted.length)).toString("hex")).toBe(
              Buffer.from(wanted).toString("hex"),
            );
          }
        }
    });

    test("advertisements get to nobody, whatever they carry and whomever they are for", async () => {
      const about = [addressOf("pod1", 6), linkLocal(pod1)];
      const receivers = [
        { mac: pod2, ip: addressOf("pod2", 6) },
        { mac: pod2, ip: linkLocal(pod2) },
        { mac: gateway, ip: addressOf("gateway", 6) },
        { mac: "33:33:00:00:00:01", ip: "ff02::1" },
      ];
      const frames = about.flatMap((target) =>
        receivers.flatMap((to) =>
          [[2, 1, ...mac(pod1)], bytes([2, 1, ...mac(pod1)], strange(secret)), strange(secret), []].map((options) =>
            discovery(advertisement, solicited + override, to, { from: target, target, to: to.mac, options }),
          ),
        ),
      );
      const { own, others } = await send(...frames, ...frames.map((frame) => bytes(frame, secret)));
      expect(others.filter((frame) => frame.slice(24, 28) === "86dd" && frame.slice(108, 110) === "88")).toEqual([]);
      expect(carriesSecret(others)).toEqual([]);
      expect(own.filter(isAdvertisement)).toEqual([]);
    });

    test("who tries its own address out, or asks for itself, hears nobody; nor who asks in another's name", async () => {
      const own = addressOf("pod1", 6);
      const { own: heardBack, others } = await send(
        solicit({ from: "::", target: own, to: "33:33:ff:00:00:02", options: [] }),
        solicit({ from: "::", target: linkLocal(pod1), to: "33:33:ff:00:00:02", options: strange(secret) }),
        solicit({ from: own, target: own, to: "33:33:ff:00:00:02" }),
        solicit({ from: addressOf("absentPod", 6), target: addressOf("pod2", 6), to: pod2 }),
        solicit({ from: own, target: addressOf("pod2", 6), to: pod2, options: [1, 1, ...mac(pod2)] }),
        arpRequest(addressOf("pod1", 4)),
      );
      expect(heardBack.filter((frame) => isAdvertisement(frame) || isArp(frame))).toEqual([]);
      expect(carriesSecret(others)).toEqual([]);
    });

    test("nor who asks by ARP under a MAC or an address that is another's, in the frame or in the question", async () => {
      const said = { operation: 1, target: addressOf("pod2", 4) } as const;
      const own = { senderMac: pod1, sender: addressOf("pod1", 4) };
      const { own: heardBack, others } = await send(
        ...[
          { from: pod1, ...own, senderMac: pod2 },
          { from: pod1, ...own, senderMac: gateway },
          { from: pod1, ...own, sender: addressOf("absentPod", 4) },
          { from: pod2, ...own },
        ].map(({ from, senderMac, sender }) =>
          ethernet({ from, to: everybody }, EtherType.arp, bytes(arp({ ...said, senderMac, sender }), secret)),
        ),
      );
      expect(heardBack.filter(isArp)).toEqual([]);
      expect(carriesSecret(others)).toEqual([]);
    });

    test("kernels take the answers: a pod's and the node's neighbours are there, under the holder's MAC", async () => {
      await install(nodeFlows(contexts[mode], [pods.pod1, { ...pods.pod2, vnid: pods.pod1.vnid }]));
      for (const path of Object.values(paths))
        await forgetNeighbours({ run: (command) => sandbox.pod(path, command) }, "all");
      await forgetNeighbours({ run: (command) => sandbox.node(command) }, "all");
      for (const family of [4, 6] as const) {
        expect(await sandbox.ping(paths.pod1, addressOf("pod2", family), "one")).toBe(true);
        expect(await sandbox.ping(undefined, addressOf("pod2", family), "one")).toBe(true);
      }
      const known = async (run: (command: string) => Promise<string>, of: string): Promise<unknown> =>
        JSON.parse(await run(`ip -j neigh show to ${of}`)).map((one: { lladdr?: string }) => one.lladdr);
      for (const family of [4, 6] as const) {
        const of = addressOf("pod2", family);
        expect(await known((command) => sandbox.pod(paths.pod1, command), of)).toEqual([holder(pod2)]);
        expect(await known((command) => sandbox.node(command), of)).toEqual([holder(pod2)]);
      }
    });
  });

  test("a question in fragments is none, though the first of them has all that is asked", async () => {
    await install(nodeFlows(contexts.encap));
    // As the agent has the switch read them.
    await client.do(setConfig("nx-match", 0));
    const ends = { from: addressOf("pod1", 6), to: addressOf("pod2", 6) };
    const asked = bytes(u32(0), address(ends.to), [1, 1, ...mac(pod1)]);
    const message = icmp6(ends, solicitation, bytes(asked, strange(secret)));
    const macsOf = { from: pod1, to: pod2 };
    const pieces = fragments(ends, Protocol.icmp6, message, 32).map((packet) =>
      ethernet(macsOf, EtherType.ipv6, packet),
    );
    const { own, others } = await send(...pieces);
    expect(own.filter((frame) => frame[12] === 0x86)).toEqual([]);
    expect(carriesSecret(others)).toEqual([]);
    await client.do(setConfig("normal", 0));
  });

  test("a pod's own address that is gone is nobody's: the question ends in the switch", async () => {
    await install(nodeFlows(contexts.encap));
    const absent = { 4: addressOf("absentPod", 4), 6: addressOf("absentPod", 6) };
    const { own, others } = await send(
      arpRequest(absent[4]),
      solicit({ from: addressOf("pod1", 6), target: absent[6], to: "33:33:ff:00:00:99", options: strange(secret) }),
    );
    expect(own.filter((frame) => isAdvertisement(frame) || isArp(frame))).toEqual([]);
    expect(carriesSecret(others)).toEqual([]);
  });
});
