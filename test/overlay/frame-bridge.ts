import { readFragments } from "../../agent/datapath/ovs/program/switch-state.ts";
import { addFlow, deleteFlows, type Flow, OpenFlowClient } from "../../agent/protocols/openflow/mod.ts";
import { bytes, EtherType, ethernet, ipv4, Protocol, udp } from "../support/frames/frame.ts";
import { RawLink } from "../support/frames/raw-link.ts";
import { NetworkNamespace } from "../support/network-namespace.ts";
import { OpenVswitch } from "./open-vswitch.ts";
import { ports } from "./pipeline-bridge.ts";
import { addressOf, macs } from "./pipeline-node.ts";

/** Where frames go in and come out: the ports of the pods' bridge, its own among them. */
export type Place = "pod1" | "pod2" | "gw0" | "ul0" | "tun0" | "LOCAL";

const geneve = 6081;
/** Of the bridge that the tunnel leads out by, and of who is at the other end. */
const ends = { node: { mac: "02:00:00:00:01:01" }, peer: { mac: "02:00:00:00:01:02" } } as const;
const geneveHeader = [0, 0, 0x65, 0x58, 0, 0, 0, 0];
/** Bytes of Ethernet, IPv4, UDP and Geneve before the frame inside. */
const outerBytes = 14 + 20 + 8 + geneveHeader.length;
/** A frame passes in milliseconds; the machine may be busy. */
const patienceMs = 10_000;

/** A frame that is known to get somewhere: whatever was sent before it has got there too, or nowhere. */
export interface Sentinel {
  readonly frame: Uint8Array;
  readonly arrivesAt: Place;
}

/**
 * A real switch with every kind of port that a node has, and nobody behind them: what is seen at a port is what the
 * flows let out there, and nothing else.
 */
export class FrameBridge implements AsyncDisposable {
  readonly #stack: AsyncDisposableStack;
  readonly #client: OpenFlowClient;
  readonly #links: ReadonlyMap<Place, RawLink>;
  readonly #vswitch: OpenVswitch;

  private constructor(
    stack: AsyncDisposableStack,
    vswitch: OpenVswitch,
    client: OpenFlowClient,
    links: ReadonlyMap<Place, RawLink>,
  ) {
    this.#stack = stack;
    this.#vswitch = vswitch;
    this.#client = client;
    this.#links = links;
  }

  static async start(): Promise<FrameBridge> {
    await using stack = new AsyncDisposableStack();
    const node = stack.use(silent());
    const wire = stack.use(silent());
    const vswitch = stack.use(await OpenVswitch.start("both", { within: node.within }));
    await addBridges(vswitch);
    await addCables(node, wire, vswitch);
    const open = async (namespace: NetworkNamespace, name: string) => stack.use(await RawLink.open(namespace, name));
    const links = new Map<Place, RawLink>([
      ["pod1", await open(wire, "pod1")],
      ["pod2", await open(wire, "pod2")],
      ["ul0", await open(wire, "ul0")],
      ["tun0", await open(wire, "phy0")],
      ["gw0", await open(node, "gw0")],
      ["LOCAL", await open(node, "br-int")],
    ]);
    const client = stack.use(await OpenFlowClient.connect({ t: "path", path: vswitch.management("br-int") }));
    return new FrameBridge(stack.move(), vswitch, client, links);
  }

  /** Puts these flows in place of all others; connections are forgotten. */
  async install(flows: readonly Flow[]): Promise<void> {
    await this.#client.do(readFragments);
    await this.#client.bundle([deleteFlows(), ...flows.map(addFlow)]);
    await this.#vswitch.forgetCachedFlows();
    await this.appctl("dpctl/flush-conntrack");
  }

  appctl(...command: readonly string[]): Promise<string> {
    return this.#vswitch.run("ovs-appctl", "-t", this.#vswitch.control, ...command);
  }

  /** Sends frames in by a port; answers what came out, by port, once the sentinel has passed. */
  async send(
    from: Place,
    frames: readonly Uint8Array[],
    sentinel: Sentinel,
  ): Promise<ReadonlyMap<Place, Uint8Array[]>> {
    for (const place of this.#links.keys()) this.#received(place);
    for (const frame of frames) this.#link(from).send(wrapped(from, frame));
    this.#link(from).send(wrapped(from, sentinel.frame));
    const seen = new Map<Place, Uint8Array[]>();
    const until = performance.now() + patienceMs;
    while (performance.now() < until) {
      for (const place of this.#links.keys()) {
        const came = this.#received(place);
        if (came.length > 0) seen.set(place, [...(seen.get(place) ?? []), ...came]);
      }
      const passed = seen.get(sentinel.arrivesAt)?.findIndex((frame) => isSame(frame, sentinel.frame)) ?? -1;
      if (passed >= 0) {
        seen.get(sentinel.arrivesAt)?.splice(passed, 1);
        return new Map([...seen].filter(([, came]) => came.length > 0));
      }
      await Bun.sleep(1);
    }
    throw new Error(`The sentinel from ${from} has not come to ${sentinel.arrivesAt}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }

  #link(place: Place): RawLink {
    const link = this.#links.get(place);
    if (link === undefined) throw new Error(`There is no port "${place}"`);
    return link;
  }

  /** Of the tunnel, what is inside. */
  #received(place: Place): Uint8Array[] {
    const frames = this.#link(place).received();
    if (place !== "tun0") return frames;
    const isTunnelled = (frame: Uint8Array): boolean =>
      frame[23] === Protocol.udp && frame[36] === geneve >> 8 && frame[37] === (geneve & 0xff);
    return frames.filter(isTunnelled).map((frame) => frame.subarray(outerBytes));
  }
}

/** Whether they end alike: headers are rewritten on the way. */
const isSame = (frame: Uint8Array, sent: Uint8Array): boolean =>
  Buffer.from(frame.subarray(-16)).equals(Buffer.from(sent.subarray(-16)));

/** As it goes in: by the tunnel, from the other node. */
function wrapped(from: Place, frame: Uint8Array): Uint8Array {
  if (from !== "tun0") return frame;
  const addresses = { from: addressOf("peer", 4), to: addressOf("node", 4) };
  const datagram = udp(addresses, { from: 40_000, to: geneve }, bytes(geneveHeader, frame));
  const packet = ipv4(addresses, Protocol.udp, datagram);
  return ethernet({ from: ends.peer.mac, to: ends.node.mac }, EtherType.ipv4, packet);
}

/** A namespace whose kernel says nothing by itself. */
function silent(): NetworkNamespace {
  const namespace = NetworkNamespace.create();
  namespace.sysctl({
    "ipv6/conf/all/disable_ipv6": 1,
    "ipv6/conf/default/disable_ipv6": 1,
    "ipv4/conf/all/arp_ignore": 8,
  });
  return namespace;
}

async function addBridges(vswitch: OpenVswitch): Promise<void> {
  const bridge = (name: string, ...more: readonly string[]) => [
    ...["--", "add-br", name, "--", "set", "Bridge", name, "datapath_type=netdev", "other_config:disable-in-band=true"],
    ...more,
  ];
  const tunnel = ["type=geneve", "options:remote_ip=flow", "options:key=flow", `ofport_request=${ports.tun0}`];
  await vswitch.vsctl(
    ...bridge("br-int", "fail_mode=secure", "protocols=OpenFlow15"),
    ...bridge("br-phy", "fail_mode=standalone", `other_config:hwaddr="${ends.node.mac}"`),
    ...["--", "add-port", "br-int", "gw0", "--", "set", "Interface", "gw0", "type=internal"],
    ...[`mac="${macs.gateway}"`, `ofport_request=${ports.gw0}`],
    ...["--", "add-port", "br-int", "tun0", "--", "set", "Interface", "tun0", ...tunnel],
  );
}

async function addCables(node: NetworkNamespace, wire: NetworkNamespace, vswitch: OpenVswitch): Promise<void> {
  const bridges = { pod1: "br-int", pod2: "br-int", ul0: "br-int", phy0: "br-phy" } as const;
  const numbers: Readonly<Record<string, number>> = ports;
  for (const [name, bridge] of Object.entries(bridges)) {
    await node.ip(`link add ${name} type veth peer name ${name} netns ${wire.path}`, `link set ${name} up`);
    await wire.ip(`link set ${name} up`);
    const number = numbers[name] ?? 1;
    await vswitch.vsctl("add-port", bridge, name, "--", "set", "Interface", name, `ofport_request=${number}`);
  }
  await node.ip(
    ...["gw0", "br-int", "br-phy"].map((name) => `link set ${name} up`),
    `addr add ${addressOf("node", 4)}/24 dev br-phy`,
    "route add 172.31.0.0/16 via 172.30.0.254",
  );
  for (const address of [addressOf("peer", 4), "172.30.0.254"]) {
    await vswitch.run("ovs-appctl", "-t", vswitch.control, "tnl/neigh/set", "br-phy", address, ends.peer.mac);
  }
}
