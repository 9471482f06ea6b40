import { compileExecutables } from "../../conformance/plugin.ts";
import { OpenVswitch } from "../../overlay/open-vswitch.ts";
import { EtcdCluster } from "../../registry/etcd-cluster.ts";
import { networkName } from "../../support/agent-process.ts";
import { NetworkNamespace } from "../../support/network-namespace.ts";
import { PrivateNode } from "../../support/private-node.ts";
import { BridgeNode, type BridgeNodeOptions } from "./bridge-node.ts";
import { type StressNode, type StressPod, withAgent } from "./stress-node.ts";

const bridge = "br-int";
const nodeAddress = "192.0.2.1";
const members = ["127.0.0.1", "127.0.0.2", "127.0.0.3"];
const clusterNetworks = [
  { cidr: "10.92.0.0/14", hostBits: 14 },
  { cidr: "fd92::/48", hostBits: 64 },
];

/** What a node's switch and registry are made of, for faults to get at. */
interface Daemons {
  readonly vswitch: OpenVswitch;
  readonly etcd: EtcdCluster;
  readonly namespace: NetworkNamespace;
}

/**
 * A machine inside the machine with Open vSwitch in user space and, as its registry, an etcd of three members: its
 * subnets are leased from there. It has no peers; what several nodes do the lab of `test/overlay` shows.
 */
export class OvsNode extends BridgeNode {
  readonly vswitch: OpenVswitch;
  readonly etcd: EtcdCluster;
  readonly #namespace: NetworkNamespace;

  private constructor(machine: PrivateNode, options: BridgeNodeOptions, daemons: Daemons) {
    const agent = {
      dataPath: "ovs",
      networks: [{ name: networkName, bridge, masquerade: true }],
      ovs: { database: `unix:${daemons.vswitch.socket}`, datapath: "netdev" },
      nodes: {
        name: "n1",
        addresses: [nodeAddress],
        registry: { type: "etcd", endpoints: daemons.etcd.endpoints, networks: clusterNetworks },
      },
      ...options.agent,
    };
    const links = ["lo", "eth0", "cable", "ovs-netdev", bridge, "pipette-gw0"];
    super(machine, { ...options, agent }, { kind: "ovs", links });
    this.vswitch = daemons.vswitch;
    this.etcd = daemons.etcd;
    this.#namespace = daemons.namespace;
  }

  /** The agent does not run yet. */
  static override async make(options: BridgeNodeOptions = {}): Promise<OvsNode> {
    if (options.executables === undefined) compileExecutables();
    await using made = new AsyncDisposableStack();
    const machine = made.use(await PrivateNode.start());
    await machine.run("ip link add eth0 type veth peer name cable");
    await machine.run("ip link set cable up");
    await machine.run(`ip addr add ${nodeAddress}/24 dev eth0`);
    await machine.run("ip link set eth0 up");
    const namespace = made.use(NetworkNamespace.at(`/proc/${machine.firstPid}/ns/net`));
    const { within } = namespace;
    const place = { within, parent: machine.directory };
    const vswitch = made.use(await OpenVswitch.start("both", place));
    const places = members.map((address) => ({ address, within }));
    const etcd = made.use(await EtcdCluster.start({ members: places, parent: machine.directory }));
    const node = new OvsNode(machine, options, { vswitch, etcd, namespace });
    await node.equip(options);
    made.move();
    return node;
  }

  /** With an agent that is ready. */
  static override async start(options: BridgeNodeOptions = {}): Promise<OvsNode> {
    return withAgent(await OvsNode.make(options));
  }

  /** Runs ovs-ofctl on the pods' bridge. */
  ofctl(command: string, ...args: readonly string[]): Promise<string> {
    return this.vswitch.run("ovs-ofctl", "-OOpenFlow15", command, `unix:${this.vswitch.management(bridge)}`, ...args);
  }

  /** Why pods may not be reached: whom they know, what flows have counted, and what the switch has cached of those. */
  async evidence(pods: readonly StressPod[]): Promise<readonly string[]> {
    const known = ["-4", "-6"].flatMap((family) =>
      pods.map(({ netns }) => this.machine.runIn(netns, `ip ${family} -s neigh`)),
    );
    const flows = this.ofctl("dump-flows").then((text) => text.replaceAll(/^.* n_packets=0, .*\n/gm, ""));
    const all = [...known, flows, this.vswitch.switchControl("dpctl/dump-flows", "-m", "netdev@ovs-netdev")];
    return (await Promise.allSettled(all)).map((each) =>
      each.status === "fulfilled" ? each.value : String(each.reason),
    );
  }

  /** What a person does who has read what the doctor says. */
  async repair(): Promise<void> {
    const words = [`${this.executables}/pipette`, "doctor", "--repair", "--config", this.home.configFile];
    await this.machine.runWords(words);
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    await this.home[Symbol.asyncDispose]();
    await this.vswitch[Symbol.asyncDispose]();
    await this.etcd[Symbol.asyncDispose]();
    this.#namespace[Symbol.dispose]();
    await super[Symbol.asyncDispose]();
  }
}

/** @throws where it is none: faults of a switch are on "ovs" */
export function requireOvs(node: StressNode): OvsNode {
  if (node instanceof OvsNode) return node;
  throw new Error(`Cannot harm the switch: the node's data path is "${node.kind}", wanted "ovs"`);
}
