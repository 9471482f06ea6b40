import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { AgentProcess } from "../support/agent-process.ts";
import { expectAgreement, type RuntimePod } from "../support/agreement.ts";
import { Podman } from "./podman.ts";
import { bridgeName, networkName, RuntimeNode } from "./runtime-node.ts";

export const secondNetwork = "second";
const second = { name: secondNetwork, subnets: ["10.93.0.0/24"], bridge: "pipette1" };

/** The interface that tests give each network: podman does not say which it was. */
const ifnames: Readonly<Record<string, string>> = { [networkName]: "eth0", [secondNetwork]: "eth1" };

/** A node with podman, an agent that serves two networks, and both of their files. */
export class PodmanNode implements AsyncDisposable {
  readonly base: RuntimeNode;
  readonly podman: Podman;
  agent: AgentProcess;

  private constructor(base: RuntimeNode, podman: Podman, agent: AgentProcess) {
    this.base = base;
    this.podman = podman;
    this.agent = agent;
  }

  static async start(): Promise<PodmanNode> {
    const base = await RuntimeNode.start([second]);
    try {
      const agent = await base.home.start();
      writeSecondConflist(base.confDir);
      return new PodmanNode(base, await Podman.start(base.node, base, networkName), agent);
    } catch (caught) {
      await base[Symbol.asyncDispose]();
      throw caught;
    }
  }

  async agrees(): Promise<void> {
    const options = {
      node: this.base.node,
      home: this.base.home,
      executables: this.base.wholeDir,
      fixedLinks: ["lo", "uplink", bridgeName, second.bridge],
      fixedNamespaces: ["outside"],
    };
    await expectAgreement(options, () => this.#attachments());
  }

  async #attachments(): Promise<readonly RuntimePod[]> {
    const containers = await this.podman.running();
    return containers.flatMap(({ id: containerId, netns, networks }) =>
      [...networks].map(([network, addresses]) => {
        return { network, containerId, ifname: ifnames[network] ?? "", addresses, netns };
      }),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.base[Symbol.asyncDispose]();
  }
}

/** The agent writes the first network's file only; a person adds the others. */
function writeSecondConflist(confDir: string): void {
  const list = JSON.parse(readFileSync(join(confDir, "10-pipette.conflist"), "utf8"));
  const [ours] = list.plugins;
  const ipam = { ...ours.ipam, ranges: second.subnets.map((subnet) => [{ subnet }]), routes: [] };
  const plugins = [{ ...ours, ipam }];
  writeFileSync(join(confDir, "20-second.conflist"), JSON.stringify({ ...list, name: second.name, plugins }));
}
