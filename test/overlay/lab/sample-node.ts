import { join } from "node:path";
import { executables } from "../../conformance/plugin.ts";
import { AgentProcess, eventually } from "../../support/agent-process.ts";
import { callPlugin } from "../../support/cni-call.ts";
import { NetworkNamespace } from "../../support/network-namespace.ts";
import { PrivateNode } from "../../support/private-node.ts";
import { withoutChecksumOffload } from "./checksum-offload.ts";

const samples = new URL("../../../conf/samples", import.meta.url).pathname;
const schema = "/usr/share/openvswitch/vswitch.ovsschema";

/** What the node has of /etc is written to memory. */
const prepare = `set -e
mkdir /run/upper /run/work
mount -t overlay overlay -o lowerdir=/etc,upperdir=/run/upper,workdir=/run/work /etc
mkdir -p /etc/pipette /etc/cni /run/openvswitch
mount -t tmpfs cni /etc/cni
ip addr add "$1" dev eth0
ip link set eth0 up
ip route add default via 192.168.1.1
cp "$2"/* /etc/pipette
cp "/etc/pipette/$3.yaml" /etc/pipette/agent.yaml
ovsdb-tool create /run/openvswitch/conf.db ${schema}
cd /run/openvswitch
ovsdb-server conf.db --remote=punix:/run/openvswitch/db.sock --detach --no-chdir --pidfile -vconsole:off -vsyslog:off
ovs-vsctl --no-wait init
ovs-vswitchd unix:/run/openvswitch/db.sock --detach --no-chdir --pidfile --disable-system -vconsole:off -vsyslog:off`;

/** A machine of its own with Open vSwitch, and the files of conf/samples where they say that they lie. */
export class SampleNode implements AsyncDisposable {
  readonly node: PrivateNode;
  readonly name: string;
  #agent: AgentProcess | undefined;

  private constructor(node: PrivateNode, name: string) {
    this.node = node;
    this.name = name;
  }

  /** @param kind directory below conf/samples @param link where it is plugged in: a namespace with the bridge `lan` */
  static async start(kind: string, number: number, link: NetworkNamespace): Promise<SampleNode> {
    const node = await PrivateNode.start();
    const [end, name] = [`node${number}`, `node-${number}`];
    using namespace = NetworkNamespace.at(`/proc/${node.firstPid}/ns/net`);
    await link.ip(`link add ${end} type veth peer name eth0 netns ${namespace.path}`, `link set ${end} master lan up`);
    // Wires carry whole checksums.
    withoutChecksumOffload(link, end);
    withoutChecksumOffload(namespace, "eth0");
    await node.runWords(["sh", "-c", prepare, "sh", `192.168.1.1${number}/24`, join(samples, kind), name]);
    return new SampleNode(node, name);
  }

  /** As the service starts it. */
  async startAgent(): Promise<void> {
    this.#agent = new AgentProcess([...this.node.prefix, `${executables}/pipette`, "agent"]);
    await this.#agent.logged((line) => line["message"] === "ready");
  }

  /** Nodes that start in the same moment know each other some seconds later: the agent has the switch ask again. */
  async knowsOthers(count: number): Promise<void> {
    await eventually(async () => {
      const known = await this.node.run("ovs-appctl -t ovs-vswitchd tnl/neigh/show");
      return (known.match(/^192\.168\.1\.1\d /gm) ?? []).length === count;
    }, `${count} other nodes in the switch of ${this.name}`);
  }

  /** ADD of a pod, with the file that the agent has written. @returns its IPv4 address */
  async addPod(name: string): Promise<string> {
    await this.node.run(`ip netns add ${name}`);
    const list = JSON.parse(await this.node.run("cat /etc/cni/net.d/10-pipette.conflist"));
    const { stdout } = await callPlugin({
      executable: `${executables}/pipette`,
      prefix: this.node.prefix,
      env: {
        CNI_COMMAND: "ADD",
        CNI_PATH: executables,
        CNI_CONTAINERID: `${this.name}-${name}`,
        CNI_NETNS: `/run/netns/${name}`,
        CNI_IFNAME: "eth0",
      },
      conf: { ...list.plugins[0], name: list.name, cniVersion: list.cniVersion },
    });
    return JSON.parse(stdout).ips[0].address.split("/")[0];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#agent?.end("SIGKILL");
    await this.node[Symbol.asyncDispose]();
  }
}
