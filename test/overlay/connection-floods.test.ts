import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { compileExecutables } from "../conformance/plugin.ts";
import { EtherType, ethernet, ipv4, ipv6, Protocol, udp } from "../support/frames/frame.ts";
import { RawLink } from "../support/frames/raw-link.ts";
import { syn } from "../support/frames/syn.ts";
import { describeWith } from "../support/requires.ts";
import { UdpEar } from "../support/udp-ear.ts";
import type { LabPod } from "./lab/lab-pod.ts";
import { call, NamedServer } from "./named-server.ts";
import { SingleNode } from "./single-node.ts";

/** For the test the switch has room for so many only: a flood has filled that within a second. */
const room = 20_000;
/** What the pipeline lets a pod have at once, and in a second. */
const burst = 5_000;
const perSecond = 1_000;
/** Each from a port of its own; more than there is room for. */
const connections = 30_000;
/** Of TCP, which asks again after 1, 3 and 7 s on a busy machine. What keeps room would keep it for longer. */
const patienceMs = 15_000;

const flood = {
  udp: [4, Protocol.udp],
  udp6: [6, Protocol.udp],
  tcp: [4, Protocol.tcp],
  tcp6: [6, Protocol.tcp],
} as const;
type Flood = keyof typeof flood;

describeWith("a pod that opens connections without end", ["root", "openvswitch", "nft"], () => {
  const stack = new AsyncDisposableStack();
  let single: SingleNode;
  let [greedy, victim, server]: LabPod[] = [];

  beforeAll(async () => {
    compileExecutables();
    single = stack.use(await SingleNode.start());
    [greedy, victim, server] = await Promise.all(
      ["greedy", "victim", "server"].map((name) => single.node.addPod(name)),
    );
    stack.use(await NamedServer.start(server!.namespace, "server", 8080));
    stack.use(await NamedServer.start(single.node.namespace, "node", 8080));
  });
  afterAll(() => stack.disposeAsync());

  const control = (...words: readonly string[]): Promise<string> => single.node.vswitch.switchControl(...words);
  const held = async (): Promise<number> => Number(await control("dpctl/ct-get-nconns"));
  const makeRoom = (most: number): Promise<string> => control("dpctl/ct-set-maxconns", String(most));
  beforeEach(async () => {
    await control("dpctl/flush-conntrack");
    await makeRoom(room);
  });

  /** As fast as the interface takes them: each frame of a connection of its own, to pod or node. */
  async function send(kind: Flood, to: "server" | "node"): Promise<void> {
    const [family, protocol] = flood[kind];
    const i = family === 4 ? 0 : 1;
    const target = to === "server" ? server!.addresses[i] : server!.gateways[i];
    const ends = { from: greedy!.address(family), to: target ?? "" };
    const own = greedy!.result.interfaces.find(({ sandbox }) => sandbox !== undefined)?.mac ?? "";
    const gateway = await gatewayMac();
    const type = family === 4 ? EtherType.ipv4 : EtherType.ipv6;
    const packet = family === 4 ? ipv4 : ipv6;
    using link = await RawLink.open(greedy!.namespace, "eth0");
    for (let n = 0; n < connections; n++) {
      const ports = { from: 1024 + n, to: 9 };
      const payload = protocol === Protocol.tcp ? syn(ends, ports) : udp(ends, ports, []);
      const frame = ethernet({ from: own, to: gateway }, type, packet(ends, protocol, payload));
      while (!taken(link, frame)) await Bun.sleep(1);
      // The switch gets its turn on the machine, and so does the rest of the test.
      if (n % 256 === 0) await Bun.sleep(1);
    }
  }

  /** A full queue refuses. */
  function taken(link: RawLink, frame: Uint8Array): boolean {
    try {
      link.send(frame);
      return true;
    } catch {
      return false;
    }
  }

  async function gatewayMac(): Promise<string> {
    const [link] = JSON.parse(await single.node.namespace.run("ip -j link show pipette-gw0")) as { address: string }[];
    return link?.address ?? "";
  }

  describe.each(Object.keys(flood) as Flood[])("by %s", (kind) => {
    test.each(kind === "udp" ? (["server", "node"] as const) : (["server"] as const))(
      "to the %s: others connect all the while, and after",
      async (to) => {
        const began = performance.now();
        const flooding = send(kind, to);
        let over = false;
        const ended = flooding.finally(() => {
          over = true;
        });
        const [family] = flood[kind];
        const calls = { answered: 0, others: 0 };
        do {
          for (const of of [server!.address(family), victim!.gateways[family === 4 ? 0 : 1] ?? ""]) {
            const answer = await call(victim!.namespace, of, 8080, patienceMs);
            if (answer === undefined) calls.others++;
            else calls.answered++;
          }
        } while (!over);
        await ended;
        const entries = await held();
        const seconds = (performance.now() - began) / 1000;
        expect(calls.others).toBe(0);
        expect(calls.answered).toBeGreaterThan(0);
        // The flood was one, also where the bucket was still empty from the last.
        expect(entries).toBeGreaterThan(500);
        // What the victim had, and what the meter was late by.
        expect(entries).toBeLessThan(burst + perSecond * (seconds + 1) + 1_000);
      },
    );
  });

  test("datagrams of one connection that nobody answers are counted once, however many they are", async () => {
    const { vswitch } = single.node;
    const counted = async (): Promise<number> => {
      const bridge = `unix:${vswitch.management("br-int")}`;
      const stats = await vswitch.run("ovs-ofctl", "-O", "OpenFlow15", "meter-stats", bridge);
      return [...stats.matchAll(/packet_in_count:(\d+)/g)].reduce((sum, [, packets]) => sum + Number(packets), 0);
    };
    const before = await counted();
    using ear = await UdpEar.open(server!.namespace, server!.address(4), 9);
    const socket = await greedy!.namespace.within(() => Bun.udpSocket({}));
    for (let n = 0; n < 10_000; n++) {
      socket.send("x", 9, server!.address(4));
      if (n % 100 === 0) await Bun.sleep(1);
    }
    socket.close();
    // Those of the first moment, until the connection is remembered, and what kernels say besides.
    expect((await counted()) - before).toBeLessThan(500);
    await expect.poll(() => ear.heard).toBeGreaterThan(0);
  });

  test("connections at once, and then as many as a second allows, are opened by a pod that asks for no more", async () => {
    const all = await Promise.all(
      Array.from({ length: 200 }, () => call(victim!.namespace, server!.address(4), 8080, 10_000)),
    );
    expect(all.filter((answer) => answer?.name === "server")).toHaveLength(200);
  });

  test("what is counted is counted again after the switch was killed, and after somebody took the meters away", async () => {
    const { vswitch, home } = single.node;
    const ofctl = (command: string): Promise<string> =>
      vswitch.run("ovs-ofctl", "-O", "OpenFlow15", command, `unix:${vswitch.management("br-int")}`);
    const connects = async (): Promise<string | undefined> =>
      (await call(victim!.namespace, server!.address(6), 8080, 1_000))?.name;
    const counted = async (): Promise<readonly number[]> => {
      const [meters, flows] = [await ofctl("dump-meters"), await ofctl("dump-flows")];
      return [meters.split("rate=1000 burst_size=5000").length - 1, flows.split("actions=meter:").length - 1];
    };
    expect(await counted()).toEqual([3, 3]);
    await vswitch.stop("ovs-vswitchd", "SIGKILL");
    await vswitch.startSwitch();
    await expect.poll(connects, { timeout: 30_000 }).toBe("server");
    expect(await counted()).toEqual([3, 3]);
    {
      using _ = await single.node.agent.held();
      await ofctl("del-meters");
      expect(await counted()).toEqual([0, 0]);
    }
    await single.node.pipette("doctor", "--repair", "--config", home.configFile);
    expect(await counted()).toEqual([3, 3]);
    expect(await connects()).toBe("server");
  });

  test("a table that is nearly full is told by `pipette status`, and one that is not is not", async () => {
    const { directory, control: socket } = single.node.vswitch;
    // Where a switch that is installed has it.
    symlinkSync(socket, join(directory, "ovs-vswitchd.7.ctl"));
    const status = (): Promise<string> => single.node.pipette("status", "--socket", single.node.home.socket);
    await makeRoom(3_000_000);
    expect(await status()).not.toContain("connection tracking");
    await call(victim!.namespace, server!.address(4), 8080);
    await makeRoom(1);
    expect(await status()).toMatch(/shortcoming: connection tracking of the switch .* holds \d+ of 1 connections/);
  });
});
