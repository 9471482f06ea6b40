import { afterAll, beforeAll, expect, test } from "vitest";
import type { DataPath } from "../../agent/datapath/datapath.ts";
import { EtherType, ethernet, ipv4, ipv6, Protocol, udp } from "../support/frames/frame.ts";
import type { Party } from "../support/frames/pod-frames.ts";
import type { RawLink } from "../support/frames/raw-link.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { describeWith } from "../support/requires.ts";
import { bridgeName, cidr, openDataPath } from "./bridge-fixture.ts";
import { gatewayOf, type WiredPod, wireOf, wirePod } from "./bridge-pods.ts";

const many = 1000;
const hex = (value: number): string => value.toString(16).padStart(2, "0");
const nth = (i: number): string => `${hex(i >> 8)}:${hex(i & 255)}`;

describeWith("what a pod floods a kernel bridge with", ["root", "nft"], () => {
  let sandbox: NetworkSandbox;
  let dataPath: DataPath;
  let pod: WiredPod;
  let victim: WiredPod;
  let gateway: Party & { readonly wire: RawLink };

  beforeAll(async () => {
    sandbox = await NetworkSandbox.enter("pt-fl-");
    dataPath = openDataPath({ subnets: [cidr("10.77.0.0/16"), cidr("fd77::/64")] });
    await dataPath.start();
    pod = await wirePod(sandbox, dataPath, "mallory", 66);
    victim = await wirePod(sandbox, dataPath, "victim", 10);
    gateway = await gatewayOf(sandbox);
  });
  afterAll(async () => {
    for (const { wire } of [pod, victim, gateway]) wire[Symbol.dispose]();
    await dataPath[Symbol.asyncDispose]();
    await sandbox[Symbol.asyncDispose]();
  });

  /** Neighbours that nobody has. */
  const asked = async (): Promise<number> => {
    const lines = (await sandbox.node(`ip neigh show dev ${bridgeName} nud all`)).split("\n");
    return lines.filter((line) => /INCOMPLETE|FAILED|PROBE/.test(line)).length;
  };
  /** To addresses of the pods' subnets that no pod has, by way of the node. */
  function packetsToNobody(from: Party, to: string): readonly Uint8Array[] {
    const own = { from: from.mac, to };
    return Array.from({ length: many }, (_, i) => {
      const ends4 = { from: from.ip4, to: `10.77.${10 + (i >> 8)}.${i & 255}` };
      const ends6 = { from: from.ip6, to: `fd77::dead:${hex(i >> 8)}${hex(i & 255)}` };
      const data = (ends: typeof ends4) => udp(ends, { from: 1, to: 9 }, [1]);
      return [
        ethernet(own, EtherType.ipv4, ipv4(ends4, Protocol.udp, data(ends4))),
        ethernet(own, EtherType.ipv6, ipv6(ends6, Protocol.udp, data(ends6))),
      ];
    }).flat();
  }

  test("packets to addresses that no pod has leave nothing in the node's table of neighbours", async () => {
    for (const frame of packetsToNobody(pod, gateway.mac)) pod.wire.send(frame);
    expect(await sandbox.ping(pod.netns, gateway.ip4)).toBe(true);
    expect(await asked()).toBe(0);
    expect(await sandbox.ping(pod.netns, victim.ip4)).toBe(true);
    expect(await sandbox.ping(pod.netns, victim.ip6)).toBe(true);
  });

  test("nor do they when they come from outside, or from a program of the node", async () => {
    const outside = await sandbox.addPod("outside");
    const name = outside.slice(outside.lastIndexOf("/") + 1);
    await sandbox.node(`ip link add up0 type veth peer name up1 netns ${name}`);
    for (const line of ["addr add 192.0.2.1/24 dev up0", "addr add fd99::1/64 dev up0 nodad", "link set up0 up"])
      await sandbox.node(`ip ${line}`);
    for (const line of ["addr add 192.0.2.2/24 dev up1", "addr add fd99::2/64 dev up1 nodad", "link set up1 up"])
      await sandbox.pod(outside, `ip ${line}`);
    for (const line of ["route add 10.77.0.0/16 via 192.0.2.1", "route add fd77::/64 via fd99::1"])
      await sandbox.pod(outside, `ip ${line}`);
    // It knows the node then, and pods are reached.
    expect(await sandbox.ping(outside, pod.ip4)).toBe(true);
    expect(await sandbox.ping(outside, pod.ip6)).toBe(true);
    const ends = async (where: Promise<string>): Promise<string> => /"address":"([^"]+)"/.exec(await where)?.[1] ?? "";
    const from = await ends(sandbox.pod(outside, "ip -j link show up1"));
    const to = await ends(sandbox.node("ip -j link show up0"));
    using wire = await wireOf(outside, "up1");
    const stranger = { mac: from, ip4: "192.0.2.2", ip6: "fd99::2", linkLocal: "" };
    for (const frame of packetsToNobody(stranger, to)) wire.send(frame);
    expect(await sandbox.ping(outside, pod.ip4)).toBe(true);
    // Told at once that there is no such host, as after three seconds of asking without these rules.
    const answers = wire.received();
    const tells = (at: number, ...numbers: readonly number[]): boolean =>
      answers.some((frame) => numbers.every((number, i) => frame[at + i] === number));
    expect([tells(34, 3, 1), tells(54, 1, 3)]).toEqual([true, true]);
    expect(await asked()).toBe(0);
    for (const address of ["10.77.9.9", "fd77::9:9"]) expect(await sandbox.ping(undefined, address)).toBe(false);
    expect(await asked()).toBe(0);
    expect(await sandbox.ping(undefined, pod.ip4)).toBe(true);
    await sandbox.node("ip link del up0");
  });

  const macs = async (): Promise<readonly string[]> =>
    (await sandbox.node(`bridge fdb show br ${bridgeName}`)).split("\n").filter((line) => !line.includes("permanent"));
  const floodMacs = async (): Promise<void> => {
    for (let i = 0; i < many; i++) {
      const from = `02:00:00:00:${nth(i)}`;
      pod.wire.send(ethernet({ from, to: gateway.mac }, EtherType.ipv4, new Uint8Array(46)));
    }
    for (const from of [victim.mac, gateway.mac])
      pod.wire.send(ethernet({ from, to: "01:80:c2:00:00:0e" }, 0x88cc, new Uint8Array(46)));
    expect(await sandbox.ping(pod.netns, victim.ip4)).toBe(true);
  };
  const flags = (...words: readonly string[]): Promise<string> =>
    sandbox.node(`bridge link set dev ${pod.host} ${words.join(" ")}`);

  test("a bridge learns none of a thousand MACs, and not that another's is here", async () => {
    const before = await macs();
    expect(before.filter((line) => line.startsWith(victim.mac))).toEqual([
      expect.stringContaining(`${victim.mac} dev ${victim.host} `),
    ]);
    await floodMacs();
    expect(await macs()).toEqual(before);
    // Kernels before 5.18 lock no ports.
    await flags("locked off");
    await floodMacs();
    expect(await macs()).toEqual(before);
    // And where somebody has taken the rules away, the ports.
    await flags("locked on");
    await sandbox.node("nft flush ruleset");
    await floodMacs();
    expect(await macs()).toEqual(before);
    // Even one that somebody lets learn leaves the victim where it is.
    await flags("locked off learning on");
    await floodMacs();
    expect((await macs()).find((line) => line.startsWith(victim.mac))).toContain(victim.host);
  });
});
