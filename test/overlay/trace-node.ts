import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ClusterNode } from "../../agent/cluster/node-registry.ts";
import { traceCommand } from "../../agent/commands/trace/trace-command.ts";
import { formatIdentity, roleIds } from "../../agent/datapath/ovs/database/port-identity.ts";
import type { PipelineContext } from "../../agent/datapath/ovs/pipeline/context.ts";
import { Category, cookieOf } from "../../agent/datapath/ovs/pipeline/cookie.ts";
import { baseFlows, peerFlows, podFlows } from "../../agent/datapath/ovs/pipeline/mod.ts";
import { servedPort } from "../../agent/datapath/ovs/services/served-port.ts";
import { serviceFlowSet } from "../../agent/datapath/ovs/services/service-flows.ts";
import type { ServicePort } from "../../agent/datapath/services.ts";
import { addFlow, deleteFlows, type Flow, type OpenFlowClient } from "../../agent/protocols/openflow/mod.ts";
import { type Cidr, type Ip, parseCidr, parseIp } from "../../shared/net/ip.ts";
import { addGroup, deleteAllGroups } from "../fakes/openflow/requests.ts";
import { runAt, type TerminalRun } from "../fakes/terminal-run.ts";
import { OpenFlowBridge } from "./openflow-bridge.ts";

export const ip = (text: string): Ip => parseIp(text) as Ip;
const cidr = (text: string): Cidr => parseCidr(text) as Cidr;

const gateway = { ofport: 3, mac: "0e:00:0a:0a:01:01", addresses: [ip("10.10.1.1"), ip("fd00:1::1")] };
const tunnel = { ofport: 4, type: "geneve" } as const;

/** Two pods of a node, as the agent's ports in the database name them; internal ports stand for their interfaces. */
const pods = [
  { port: "p1", ofport: 1, mac: "0a:00:0a:0a:01:02", ips: ["10.10.1.2", "fd00:1::2"], name: "default/web" },
  { port: "p2", ofport: 2, mac: "0a:00:0a:0a:01:03", ips: ["10.10.1.3", "fd00:1::3"], name: "shop/db" },
] as const;

/** What the flows of the node are to be. */
export interface Pipeline {
  readonly mode?: PipelineContext["mode"];
  readonly peers?: readonly ClusterNode[];
  readonly services?: readonly ServicePort[];
  /** VNIDs of the two pods; absent: projects are not kept apart. */
  readonly vnids?: readonly [number, number];
}

export const peer: ClusterNode = {
  name: "node2",
  uid: "2",
  addresses: [ip("172.30.0.2")],
  subnets: [cidr("10.10.2.0/24"), cidr("fd00:2::/64")],
};

/** A node's switch with the flows of the real pipeline, for the command that follows packets through it. */
export class TraceNode implements AsyncDisposable {
  readonly #bridge: OpenFlowBridge;

  private constructor(bridge: OpenFlowBridge) {
    this.#bridge = bridge;
  }

  static async start(): Promise<TraceNode> {
    const bridge = await OpenFlowBridge.start();
    try {
      const node = new TraceNode(bridge);
      await node.#addPorts();
      return node;
    } catch (caught) {
      await bridge[Symbol.asyncDispose]();
      throw caught;
    }
  }

  get vswitch(): OpenFlowBridge["vswitch"] {
    return this.#bridge.vswitch;
  }

  get configuration(): string {
    return join(this.vswitch.directory, "agent.yaml");
  }

  /** Replaces all flows. */
  async program({ mode = "encap", peers = [], services = [], vnids }: Pipeline): Promise<void> {
    const context: PipelineContext = {
      mode,
      gateway,
      tunnel,
      nodeAddresses: [cidr("172.30.0.1/24")],
      podSubnets: [cidr("10.10.1.0/24"), cidr("fd00:1::/64")],
      multitenant: vnids !== undefined,
    };
    const marked = (flows: readonly Flow[], category: Category, object: number): readonly Flow[] =>
      flows.map((flow) => ({ ...flow, cookie: cookieOf(1, category, object) }));
    const flows = [
      ...marked(baseFlows(context), Category.base, 0),
      ...pods.flatMap(({ ofport, mac, ips }, i) =>
        marked(podFlows(context, { ofport, mac, ips: ips.map(ip), vnid: vnids?.[i] ?? 0 }), Category.pod, ofport),
      ),
      ...peers.flatMap((each, i) => marked(peerFlows(context, each), Category.node, i)),
    ];
    const parts = services.map((service, i) => serviceFlowSet(servedPort(service, true), () => i + 1, context));
    using client = await this.#connect();
    await client.bundle([
      deleteFlows(),
      deleteAllGroups(),
      ...parts.flatMap(({ groups = [] }) => groups.map(addGroup)),
      ...[...flows, ...parts.flatMap((part) => marked(part.flows, part.category, 0))].map(addFlow),
    ]);
    writeFileSync(this.configuration, this.#yaml(mode));
  }

  /** The command's run on this node. */
  trace(...args: readonly string[]): Promise<TerminalRun> {
    return this.traceBy(this.configuration, this.vswitch.control, ...args);
  }

  /** The same with another configuration or another socket of ovs-vswitchd; with none, it is to be found. */
  traceBy(configuration: string, control: string | undefined, ...args: readonly string[]): Promise<TerminalRun> {
    const where = control === undefined ? [] : ["--control", control];
    return runAt("pipette trace", traceCommand, [...args, "--config", configuration, ...where]);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#bridge[Symbol.asyncDispose]();
  }

  /** A switch that was just started may not listen yet. */
  async #connect(): Promise<OpenFlowClient> {
    const until = performance.now() + 10_000;
    for (;;) {
      try {
        return await this.#bridge.connect();
      } catch (caught) {
        if (performance.now() > until) throw caught;
        await Bun.sleep(20);
      }
    }
  }

  async #addPorts(): Promise<void> {
    const { vswitch } = this;
    await this.#bridge.addPort("gw0", gateway.ofport);
    await vswitch.vsctl("set", "Interface", "gw0", `mac="${gateway.mac}"`);
    const settings = ["type=geneve", `ofport_request=${tunnel.ofport}`, "options:remote_ip=flow", "options:key=flow"];
    await vswitch.vsctl("add-port", "br-int", "tun0", "--", "set", "Interface", "tun0", ...settings);
    const identities = pods.map(({ port, mac, ips, name }): [string, Readonly<Record<string, string>>] => {
      const [namespace = "", own = ""] = name.split("/");
      const owner = { network: "pods", sandboxId: own, ifname: "eth0" };
      const pod = { namespace, name: own, uid: "" };
      return [port, formatIdentity({ owner, mac, ips: ips.map(ip), pod, netns: "", ownLease: true, vnid: 0 })];
    });
    const roles: [string, Readonly<Record<string, string>>][] = [
      ["gw0", roleIds("gateway")],
      ["tun0", roleIds("tunnel")],
    ];
    for (const [port, ids] of [...identities, ...roles])
      await vswitch.vsctl(
        "set",
        "Port",
        port,
        ...Object.entries(ids).map(([key, value]) => `external_ids:${key}="${value}"`),
      );
    // What the tunnel goes out by: the switch in user space looks at the node's routes.
    await vswitch.vsctl("add-br", "br-phy", "--", "set", "Bridge", "br-phy", "datapath_type=netdev");
    await vswitch.run("ip", "addr", "add", "172.30.0.1/24", "dev", "br-phy");
    await vswitch.run("ip", "link", "set", "br-phy", "up");
  }

  #yaml(mode: string): string {
    return `dataPath: ovs
dataDir: ${this.vswitch.directory}
networks: [{ name: pods, subnets: [10.10.1.0/24, "fd00:1::/64"], bridge: br-int }]
ovs:
  database: unix:${this.vswitch.socket}
  datapath: netdev
  mode: ${mode}
  gateway: gw0
  tunnelName: tun0
`;
  }
}
