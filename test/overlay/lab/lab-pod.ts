import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { type CniEnded, callPlugin, runPlugin } from "../../support/cni-call.ts";
import { NetworkNamespace } from "../../support/network-namespace.ts";
import type { LabNode } from "./lab-node.ts";

export interface PodRequest {
  /** The Kubernetes namespace that it belongs to. */
  readonly project?: string;
  /** Addresses that it asks for. */
  readonly ips?: readonly string[];
  /** The MAC that it asks for. */
  readonly mac?: string;
}

/** As far as a pod's test needs it. */
interface AddResult {
  readonly interfaces: readonly { readonly name: string; readonly mac: string; readonly sandbox?: string }[];
  readonly ips: readonly { readonly address: string; readonly gateway?: string }[];
}

/** A pod as its container runtime has it: a namespace, an identifier, and what ADD answered. */
export class LabPod {
  readonly name: string;
  readonly project: string;
  readonly #asked: Readonly<Record<string, unknown>>;
  readonly node: LabNode;
  readonly namespace = NetworkNamespace.create();
  readonly containerId = randomBytes(32).toString("hex");
  #result: AddResult | undefined;

  constructor(node: LabNode, name: string, { project = "default", ips = [], mac }: PodRequest) {
    this.#asked = { ...(ips.length === 0 ? {} : { ips }), ...(mac === undefined ? {} : { mac }) };
    this.node = node;
    this.name = name;
    this.project = project;
  }

  get result(): AddResult {
    if (this.#result === undefined) throw new Error(`Pod ${this.name} has not been added`);
    return this.#result;
  }

  /** One per family, without prefix length. */
  get addresses(): readonly string[] {
    return this.result.ips.map(({ address }) => address.replace(/\/.*/, ""));
  }

  get gateways(): readonly string[] {
    return this.result.ips.flatMap(({ gateway }) => gateway ?? []);
  }

  /** The first address of a family; the pod must have one. */
  address(family: 4 | 6): string {
    const found = this.addresses.find((address) => address.includes(":") === (family === 6));
    if (found === undefined) throw new Error(`Pod ${this.name} has no IPv${family} address`);
    return found;
  }

  /** @throws with what the plugin said */
  async add(): Promise<void> {
    await this.namespace.ip("link set lo up");
    this.#result = JSON.parse((await callPlugin(this.#call("ADD"))).stdout);
  }

  async check(): Promise<void> {
    await callPlugin(this.#call("CHECK", { prevResult: this.result }));
  }

  /** DEL, and the end of its namespace. */
  async remove(): Promise<void> {
    await callPlugin(this.#call("DEL"));
    this.node.pods.delete(this);
    this.namespace[Symbol.dispose]();
  }

  /** Any verb, whatever comes of it. */
  cni(verb: string): Promise<CniEnded> {
    return runPlugin(this.#call(verb));
  }

  #call(verb: string, extra: object = {}): Parameters<typeof callPlugin>[0] {
    const { home, executables, namespace } = this.node;
    const list = JSON.parse(readFileSync(home.conflist, "utf8"));
    const asked = Object.keys(this.#asked).length === 0 ? {} : { runtimeConfig: this.#asked };
    const names = `K8S_POD_NAMESPACE=${this.project};K8S_POD_NAME=${this.name}`;
    return {
      executable: `${executables}/pipette`,
      prefix: ["nsenter", `--net=${namespace.path}`],
      env: {
        CNI_COMMAND: verb,
        CNI_PATH: executables,
        CNI_CONTAINERID: this.containerId,
        CNI_NETNS: this.namespace.path,
        CNI_IFNAME: "eth0",
        CNI_ARGS: `IgnoreUnknown=1;${names};K8S_POD_UID=${this.containerId.slice(0, 12)}`,
      },
      conf: { ...list.plugins[0], name: list.name, cniVersion: "1.1.0", ...asked, ...extra },
    };
  }
}
