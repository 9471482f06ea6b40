import type { NetworkSandbox } from "../support/network-sandbox.ts";
import { OpenFlowBridge } from "./openflow-bridge.ts";
import { ports } from "./pipeline-bridge.ts";
import { addressOf, macs } from "./pipeline-node.ts";

/** The node's kernel sees the frames of pods' interfaces too, and must not answer them past the flows. */
const guard = `table inet guard { chain pre { type filter hook prerouting priority raw; iifname != { "lo", "gw0" } drop; }; };
  table arp guard { chain in { type filter hook input priority 0; iifname != { "lo", "gw0" } drop; }; };`;

type Host = "gateway" | "pod1" | "pod2";

/** A real switch with a gateway and two pods that have kernels of their own behind them; no flows. */
export class PodBridge implements AsyncDisposable {
  readonly bridge: OpenFlowBridge;
  /** Of the pods' namespaces. */
  readonly paths = { pod1: "", pod2: "" };

  private constructor(bridge: OpenFlowBridge) {
    this.bridge = bridge;
  }

  static async start(): Promise<PodBridge> {
    const made = new PodBridge(await OpenFlowBridge.start());
    try {
      await made.#build();
      return made;
    } catch (caught) {
      await made[Symbol.asyncDispose]();
      throw caught;
    }
  }

  get sandbox(): NetworkSandbox {
    return this.bridge.sandbox;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.bridge[Symbol.asyncDispose]();
  }

  async #build(): Promise<void> {
    const { sandbox } = this;
    const { vswitch } = this.bridge;
    await vswitch.vsctl("del-port", "p1", "--", "del-port", "p2");
    await this.bridge.addPort("gw0", ports.gw0);
    await vswitch.run("nft", guard);
    await addresses((command) => sandbox.node(command), "gw0", "gateway");
    for (const name of ["pod1", "pod2"] as const) {
      const path = await sandbox.addPod(name);
      this.paths[name] = path;
      const inside = path.slice(path.lastIndexOf("/") + 1);
      await sandbox.node(`ip link add v-${name} type veth peer name eth0 netns ${inside}`);
      await sandbox.node(`sysctl -qw net.ipv6.conf.v-${name}.disable_ipv6=1`);
      await sandbox.node(`ip link set v-${name} up`);
      await addresses((command) => sandbox.pod(path, command), "eth0", name);
      const settings = ["--", "set", "Interface", `v-${name}`, `ofport_request=${ports[name]}`];
      await vswitch.vsctl("add-port", "br-int", `v-${name}`, ...settings);
    }
  }
}

async function addresses(run: (command: string) => Promise<string>, link: string, host: Host): Promise<void> {
  await run(`ip link set ${link} address ${macs[host]} up`);
  await run(`ip addr add ${addressOf(host, 4)}/24 dev ${link}`);
  await run(`ip addr add ${addressOf(host, 6)}/64 dev ${link} nodad`);
}
