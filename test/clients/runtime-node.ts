import { copyFileSync, mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { compileExecutables, debianPlugins, executables } from "../conformance/plugin.ts";
import { AgentHome } from "../support/agent-process.ts";
import { isInFront, smallPrograms } from "../support/in-front.ts";
import { PrivateNode } from "../support/private-node.ts";

export const networkName = "pods";
export const bridgeName = "pipette0";
export const gateway = "10.92.0.1";
export const subnets = ["10.92.0.0/16", "fd92::/64"];

/** Where the node is seen from its neighbour, a machine that knows nothing of pods. */
export const nodeAddress = "192.0.2.1";

/** What a runtime under test runs on: a node of its own with Pipette's agent, and a neighbour outside. */
export class RuntimeNode implements AsyncDisposable {
  readonly node: PrivateNode;
  /** Every CNI executable that the runtime may start. */
  readonly pluginDir: string;
  /** Where the agent's executable lies: there as well, or of its own where the small program is what runtimes start. */
  readonly wholeDir: string;
  /** Where the agent writes the network configuration, and where the runtime looks for it. */
  readonly confDir: string;
  readonly home: AgentHome;
  /** Network namespace of the neighbour. */
  readonly outside = "/run/netns/outside";

  private constructor(node: PrivateNode, moreNetworks: readonly object[]) {
    this.node = node;
    this.pluginDir = join(node.directory, "bin");
    this.confDir = join(node.directory, "net.d");
    mkdirSync(this.confDir);
    // As installed: an agent that runs from there finds the others beside it.
    this.wholeDir = isInFront ? join(node.directory, "libexec") : this.pluginDir;
    fill(this.wholeDir, executables);
    const changes = {
      cni: { confDir: this.confDir, plugins: undefined },
      networks: [{ name: networkName, subnets, bridge: bridgeName, hairpin: true, masquerade: true }, ...moreNetworks],
    };
    this.home = new AgentHome(changes, this.wholeDir, node.prefix);
    if (isInFront) {
      const { socket: agentSocket, directory } = this.home;
      fill(this.pluginDir, smallPrograms({ agentSocket, ipamSocket: join(directory, "ipam.sock") }));
    }
  }

  /** @param moreNetworks that the agent serves beside the first, as in `agent.yaml` */
  static async start(moreNetworks: readonly object[] = []): Promise<RuntimeNode> {
    compileExecutables();
    const node = await PrivateNode.start();
    try {
      await node.run("ip netns add outside");
      await node.run("ip link add uplink type veth peer name eth0 netns outside");
      await node.run(`ip addr add ${nodeAddress}/24 dev uplink`);
      await node.run("ip link set uplink up");
      await node.run("ip -n outside addr add 192.0.2.2/24 dev eth0");
      await node.run("ip -n outside link set eth0 up");
      return new RuntimeNode(node, moreNetworks);
    } catch (caught) {
      await node[Symbol.asyncDispose]();
      throw caught;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.home[Symbol.asyncDispose]();
    await this.node[Symbol.asyncDispose]();
  }
}

/** Lays our executables into a directory, and beside them the others that pods need. */
function fill(directory: string, ours: string): void {
  mkdirSync(directory);
  for (const name of ["pipette", "pipette-ipam"]) copyFileSync(join(ours, name), join(directory, name));
  for (const name of ["loopback", "portmap", "bandwidth"])
    symlinkSync(join(debianPlugins, name), join(directory, name));
}
