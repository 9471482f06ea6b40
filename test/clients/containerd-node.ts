import { type AgentProcess, eventually } from "../support/agent-process.ts";
import { expectAgreement, type RuntimePod } from "../support/agreement.ts";
import { Containerd } from "./containerd.ts";
import { bridgeName, networkName, RuntimeNode } from "./runtime-node.ts";

/** A node with containerd and a ready agent, and what tests ask of it. */
export class ContainerdNode implements AsyncDisposable {
  readonly base: RuntimeNode;
  readonly containerd: Containerd;
  agent: AgentProcess;

  private constructor(base: RuntimeNode, containerd: Containerd, agent: AgentProcess) {
    this.base = base;
    this.containerd = containerd;
    this.agent = agent;
  }

  static async start(): Promise<ContainerdNode> {
    const base = await RuntimeNode.start();
    try {
      const containerd = await Containerd.start(base.node, base);
      const agent = await base.home.start();
      const node = new ContainerdNode(base, containerd, agent);
      await node.networkReady();
      return node;
    } catch (caught) {
      await base[Symbol.asyncDispose]();
      throw caught;
    }
  }

  get cri() {
    return this.containerd.cri;
  }

  async networkReady(): Promise<void> {
    await eventually(async () => (await this.cri.networkProblem()) === undefined, "containerd to find its network");
  }

  async startAgent(): Promise<void> {
    this.agent = await this.base.home.start();
  }

  /** The runtime's own list of pods that are alive. */
  async livePods(): Promise<readonly RuntimePod[]> {
    const ready = [...(await this.cri.pods())].filter(([, state]) => state === "SANDBOX_READY");
    return Promise.all(
      ready.map(async ([containerId]) => {
        const { addresses, netns } = await this.cri.podStatus(containerId);
        return { network: networkName, containerId, ifname: "eth0", addresses, netns };
      }),
    );
  }

  async agrees(): Promise<void> {
    const options = {
      node: this.base.node,
      home: this.base.home,
      executables: this.base.wholeDir,
      fixedLinks: ["lo", "uplink", bridgeName],
      fixedNamespaces: ["outside"],
    };
    await expectAgreement(options, () => this.livePods());
  }

  /** Ends every pod that a test left, so that the next one begins with none; a failed test leaves some. */
  async clear(): Promise<void> {
    for (const id of (await this.cri.pods()).keys()) await this.cri.endPod(id);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.containerd[Symbol.asyncDispose]();
    await this.base[Symbol.asyncDispose]();
  }
}
