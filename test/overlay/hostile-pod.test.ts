import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeAll, describe, expect, test } from "vitest";
import { compileExecutables } from "../conformance/plugin.ts";
import { Protocol } from "../support/frames/frame.ts";
import { RawLink } from "../support/frames/raw-link.ts";
import { addHostPort } from "../support/host-port.ts";
import { describeWith } from "../support/requires.ts";
import { UdpEar } from "../support/udp-ear.ts";
import { datagram } from "./forbidden-frames.ts";
import { routerOn } from "./lab/addresses.ts";
import type { LabPod } from "./lab/lab-pod.ts";
import { openRawPod, type RawPod, read } from "./lab/raw-pod.ts";
import { scratchUntilEnd } from "./lab/scratch-until-end.ts";
import { seenBy, TcpServer, tcpPort } from "./lab/tcp.ts";
import { SingleNode } from "./single-node.ts";

/** Blocks with room for a flood. */
const wide = { networks: [{ name: "pods", bridge: "br-int", subnets: ["10.10.0.0/20", "fd10:0:0:1::/64"] }] };
const families = [4, 6] as const;
/** Where nothing but a tunnel listens, and where anything may. */
const [tunnelPort, freePort] = [6081, 6090] as const;

describeWith("a pod with root and raw sockets against its node", ["root", "openvswitch", "nft"], () => {
  let single: SingleNode;
  let pod: LabPod;
  let raw: RawPod;

  beforeAll(compileExecutables);
  afterEach(async () => {
    raw?.[Symbol.dispose]();
    await single?.[Symbol.asyncDispose]();
  });

  async function start(ovs: object, more: object = wide): Promise<void> {
    single = await SingleNode.ground(ovs, "outer-bridge", more);
    await single.node.startAgent();
    pod = await single.node.addPod("hostile");
    raw = await openRawPod(pod);
  }

  /** By way of the gateway. */
  const send = (to: string, port: number, from = raw[to.includes(":") ? 6 : 4]): void =>
    raw.link.send(datagram({ from: raw.mac, to: raw.gatewayMac }, { from, to }, [40_000, port], [1, 2, 3]));

  /** Sends to the gateway, and waits until that has come: what was sent before has come too, or never will. */
  async function settled(): Promise<void> {
    for (const family of families) {
      const { namespace, addresses } = single.node;
      const to = addresses[family === 4 ? 0 : 1];
      using ear = await UdpEar.open(namespace, to, 7777);
      // Again and again: behind a flood a switch in user space has no room for each packet.
      await expect
        .poll(() => {
          send(to, 7777);
          return ear.heard;
        })
        .toBeGreaterThan(0);
    }
  }

  test.each(["encap", "noEncap", "networkPolicyOnly"])(
    "%s: what the node serves to itself alone stays its own",
    async (mode) => {
      await start({ mode });
      const { namespace } = single.node;
      const routed = "net.ipv4.conf.pipette-gw0.route_localnet";
      await addHostPort(namespace, {
        netns: pod.namespace.path,
        address: `${pod.address(4)}/20`,
        hostPort: 8080,
        containerPort: tcpPort,
      });
      expect((await namespace.run(`sysctl -n ${routed}`)).trim()).toBe("1");
      using ear = await UdpEar.open(namespace, "127.0.0.1", 5353);
      using ear6 = await UdpEar.open(namespace, "::1", 5353);
      const knock = async (): Promise<readonly number[]> => {
        send("127.0.0.1", 5353);
        send("::1", 5353);
        await settled();
        return [ear.heard, ear6.heard];
      };
      expect(await knock()).toEqual([0, 0]);
      // Each of both guards is enough by itself. The agent would put them back.
      await single.node.agent.end();
      await single.node.deleteFlows("table=45,ip,nw_dst=127.0.0.0/8");
      expect(await knock()).toEqual([0, 0]);
      using _server = new TcpServer(pod.namespace);
      expect(await seenBy(namespace, "127.0.0.1", { port: 8080 })).toBeDefined();
      await namespace.run("nft delete chain inet pipette-pipette-gw0 loopback");
      expect(await knock()).toEqual([1, 0]);
    },
  );

  test("of a flood of addresses that nobody has none gets into the node's table of neighbours", async () => {
    await start({});
    const { namespace } = single.node;
    const flooded = new Set<string>();
    const neighbours = async (): Promise<readonly string[]> =>
      (await namespace.run("ip neigh show nud all dev pipette-gw0"))
        .split("\n")
        .map((line) => line.split(" ")[0] ?? "");
    const other = await single.node.addPod("other");
    using neighbour = await openRawPod(other);
    await settled();
    for (let i = 0; i < 1000; i++) {
      const to = [`10.10.${8 + (i >> 8)}.${i & 0xff}`, `fd10::1:0:0:beef:${i.toString(16)}`] as const;
      for (const address of to) {
        flooded.add(address);
        send(address, 9);
        const link = { from: raw.mac, to: neighbour.mac };
        raw.link.send(datagram(link, { from: raw[address.includes(":") ? 6 : 4], to: address }, [40_000, 9], [4]));
      }
      if (i % 100 === 99) await settled();
    }
    expect((await neighbours()).filter((address) => flooded.has(address))).toEqual([]);
  });

  describe.each([
    ["geneve", {}, tunnelPort],
    ["vxlan", { tunnel: "vxlan", tunnelPort: 8472 }, 8472],
  ] as const)("%s: a service that leads to a tunnel's port", (_tunnel, ovs, port) => {
    const services = { 4: "10.96.0.50", 6: "fd96::50" } as const;
    /** Who is behind it, and with which port: this node, and one on its link. */
    const endpoints = () => ({ own: single.node.addresses, other: routerOn("a") });

    /** The ports that arrived at the own node, and on the wire to the other. */
    async function arrived(): Promise<readonly string[]> {
      const { node, underlay } = single;
      using wire = await RawLink.open(underlay.namespace, "node1");
      using stack = new DisposableStack();
      const ears = new Map<string, UdpEar>();
      for (const family of families) {
        for (const each of [port, freePort]) {
          const address = node.addresses[family === 4 ? 0 : 1];
          ears.set(`own IPv${family} ${each}`, stack.use(await UdpEar.open(node.namespace, address, each)));
          send(services[family], 1000 + each);
          send(services[family], 30_000 + each);
        }
      }
      await settled();
      const onWire = wire
        .received()
        .map(read)
        .filter((one) => one?.protocol === Protocol.udp && (one.port === port || one.port === freePort))
        .map((one) => `other IPv${one?.destination.includes(":") ? 6 : 4} ${one?.port}`);
      return [...[...ears].flatMap(([name, { heard }]) => (heard > 0 ? [name] : [])), ...onWire].sort();
    }
    const allowed = ["other IPv4 6090", "other IPv6 6090", "own IPv4 6090", "own IPv6 6090"];
    const forbidden = families.flatMap((family) => [`other IPv${family} ${port}`, `own IPv${family} ${port}`]);

    test("translated by the node's kernel, leads nowhere", async () => {
      await start(ovs);
      const { own, other } = endpoints();
      const rules = families.flatMap((family) =>
        [port, freePort].flatMap((each) =>
          (
            [
              [1000, own],
              [30_000, other],
            ] as const
          ).map(([offset, [v4, v6]]) =>
            family === 4
              ? `ip daddr ${services[4]} udp dport ${offset + each} dnat ip to ${v4}:${each};`
              : `ip6 daddr ${services[6]} udp dport ${offset + each} dnat ip6 to [${v6}]:${each};`,
          ),
        ),
      );
      const hook = "type nat hook prerouting priority dstnat;";
      await single.node.namespace.run("nft -f -", `table inet proxy { chain pre { ${hook} ${rules.join(" ")} }; }`);
      expect(await arrived()).toEqual(allowed);
      // It is the rules that keep it back, each by itself; the agent puts them back where somebody takes them away.
      const { namespace, agent } = single.node;
      const listing = "nft list chain inet pipette-pipette-gw0 tunnel-forward";
      const standing = await namespace.run(listing);
      await namespace.run("nft flush chain inet pipette-pipette-gw0 tunnel-forward");
      await expect.poll(() => namespace.run(listing)).toBe(standing);
      await agent.end();
      for (const chain of ["tunnel-input", "tunnel-forward"])
        await namespace.run(`nft flush chain inet pipette-pipette-gw0 ${chain}`);
      expect(await arrived()).toEqual([...allowed, ...forbidden.filter((name) => name.startsWith("own"))].sort());
      await namespace.run("nft flush chain inet pipette-pipette-gw0 tunnel-output");
      expect(await arrived()).toEqual([...allowed, ...forbidden].sort());
    });

    test("translated by the switch, leads nowhere", async () => {
      await using scratch = scratchUntilEnd("pt-svc-");
      const file = join(scratch.path, "services.yaml");
      writeFileSync(file, "services: []\n");
      await start({ ...ovs, services: { file, cidrs: ["10.96.0.0/16", "fd96::/112"] } });
      const { own, other } = endpoints();
      const listed = families.flatMap((family) =>
        [port, freePort].flatMap((each) =>
          (
            [
              [1000, own],
              [30_000, other],
            ] as const
          ).map(([offset, addresses]) => ({
            name: `s${family}-${offset}-${each}`,
            clusterIp: services[family],
            protocol: "udp",
            port: offset + each,
            endpoints: [{ ip: addresses[family === 4 ? 0 : 1], port: each }],
          })),
        ),
      );
      writeFileSync(file, JSON.stringify({ services: listed }));
      await expect
        .poll(async () => (await single.node.flows()).filter((flow) => flow.includes("nat(dst=")).length)
        .toBe(8);
      expect(await arrived()).toEqual(allowed);
    });
  });
});
