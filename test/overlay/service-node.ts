import { packetRules } from "../../agent/datapath/linux/packet-rules.ts";
import type { PodOnSwitch } from "../../agent/datapath/ovs/applied-pods.ts";
import { LinuxHost } from "../../agent/datapath/ovs/linux/linux-host.ts";
import { ServiceSets, switchedServices } from "../../agent/datapath/ovs/linux/service-sets.ts";
import { serviceRoutes, virtualHosts } from "../../agent/datapath/ovs/node-routes.ts";
import type { PipelineContext } from "../../agent/datapath/ovs/pipeline/context.ts";
import { Category } from "../../agent/datapath/ovs/pipeline/cookie.ts";
import { baseFlows, podFlows } from "../../agent/datapath/ovs/pipeline/mod.ts";
import { OvsPolicies } from "../../agent/datapath/ovs/policies/ovs-policies.ts";
import type { FlowSet } from "../../agent/datapath/ovs/program/flow-set.ts";
import { OpenFlowProgram } from "../../agent/datapath/ovs/program/mod.ts";
import { OvsServices } from "../../agent/datapath/ovs/services/ovs-services.ts";
import type { NodePolicies, Verdict } from "../../agent/datapath/policies.ts";
import type { RefusedService, ServicePort } from "../../agent/datapath/services.ts";
import { Kernel, type NetlinkSocket } from "../../agent/protocols/netlink/mod.ts";
import { ownerKey } from "../../shared/cni/owner-key.ts";
import type { Owner } from "../../shared/cni/types.ts";
import { createLogger } from "../../shared/log.ts";
import { type Ip, parseCidr, parseIp } from "../../shared/net/ip.ts";
import { NetworkNamespace } from "../support/network-namespace.ts";
import { withoutChecksumOffload } from "./lab/checksum-offload.ts";
import { leaveToSwitch } from "./leave-to-switch.ts";
import { OpenVswitch } from "./open-vswitch.ts";

const ip = (text: string) => parseIp(text)!;
const cidr = (text: string) => parseCidr(text)!;

const gateway = { name: "pipette-gw0", ofport: 2, mac: "0e:00:0a:0a:01:01" };
const serviceCidrs = [cidr("10.96.0.0/16"), cidr("fd00:96::/112")];

/** Where the node itself is met, and a host beyond it that knows nothing of pods and services. */
export const nodeAddress = { 4: "172.30.0.1", 6: "fd00:30::1" } as const;
export const outside = { 4: "198.51.100.2", 6: "fd00:51::2" } as const;
/** Addresses that the world has the node for the way to. */
const beyondNode = { 4: "203.0.113.0/24", 6: "fd00:113::/64" } as const;
export const gatewayAddress = { 4: "10.10.1.1", 6: "fd00:10:1::1" } as const;

const pipeline: PipelineContext = {
  mode: "encap",
  gateway: { ...gateway, addresses: [ip(gatewayAddress[4]), ip(gatewayAddress[6])] },
  nodeAddresses: [cidr(`${nodeAddress[4]}/24`), cidr(`${nodeAddress[6]}/64`)],
  podSubnets: [cidr("10.10.1.0/24"), cidr("fd00:10:1::/64")],
  nodePorts: { addresses: [ip(nodeAddress[4]), ip(nodeAddress[6])], refuses: true },
  multitenant: false,
};

/** As the agent has the node's kernel do it. */
const rules = packetRules({
  bridge: gateway.name,
  subnets: [],
  masquerade: false,
  nodeLocal: virtualHosts(serviceCidrs),
  services: switchedServices(gateway.name, []),
});

interface Agent {
  readonly policies: OvsPolicies;
  readonly program: OpenFlowProgram;
  readonly services: OvsServices;
}

/** A pod with an address of each family. */
export interface TestPod {
  readonly namespace: NetworkNamespace;
  readonly owner: Owner;
  readonly 4: string;
  readonly 6: string;
}

/**
 * One node with the real flows, packet rules and routes of services on an Open vSwitch of its own, with as many pods as
 * are asked for and a host outside: without agent and plugin, so that a test says what the services are.
 */
export class ServiceNode implements AsyncDisposable {
  readonly namespace: NetworkNamespace;
  readonly outside: NetworkNamespace;
  readonly vswitch: OpenVswitch;
  readonly pods: TestPod[] = [];
  readonly log: string[] = [];
  readonly #stack: AsyncDisposableStack;
  readonly #host: LinuxHost;
  #services: ReadonlyMap<string, ServicePort> | undefined;
  readonly #podParts = new Map<string, FlowSet>();
  readonly #interfaces = new Map<string, PodOnSwitch>();
  #round: number | undefined;
  #agent: Agent | undefined;

  static async start(pods: number): Promise<ServiceNode> {
    await using stack = new AsyncDisposableStack();
    const namespace = stack.use(NetworkNamespace.create());
    const beyond = stack.use(NetworkNamespace.create());
    const vswitch = stack.use(await OpenVswitch.start("both", { within: namespace.within }));
    await makeBridge(vswitch);
    await makeNode(namespace, beyond);
    const sockets = namespace.within(() => {
      const kernel = new Kernel();
      return { kernel, links: kernel.openSocket(), filters: kernel.openPacketFilterSocket() };
    });
    for (const one of Object.values(sockets)) stack.use(one);
    const node = new ServiceNode(namespace, beyond, vswitch, sockets, stack.move());
    for (let i = 0; i < pods; i++) await node.#addPod(i);
    await node.startAgent();
    return node;
  }

  private constructor(
    namespace: NetworkNamespace,
    beyond: NetworkNamespace,
    vswitch: OpenVswitch,
    { links, filters }: { readonly links: NetlinkSocket; readonly filters: NetlinkSocket },
    stack: AsyncDisposableStack,
  ) {
    this.namespace = namespace;
    this.outside = beyond;
    this.vswitch = vswitch;
    this.#stack = stack;
    const sets = new ServiceSets(filters, gateway.name);
    const logger = createLogger("warn", (line) => void this.log.push(line));
    this.#host = new LinuxHost(links, gateway.name, vswitch.directory, logger, undefined, sets);
  }

  /**
   * What an agent does that starts, for the first time or again: all flows anew, then the ones of before away.
   * @param wanted what it knows of policies by then
   * @param services whether it knows the services too, or does not until it is told
   * @param told is to hear of all verdicts
   */
  async startAgent(
    wanted?: NodePolicies,
    services: "known" | "until it is told" = "known",
    told?: (verdict: Verdict) => void,
  ): Promise<void> {
    const context = { ...pipeline, metered: told !== undefined };
    await this.#agent?.policies[Symbol.asyncDispose]();
    await this.#agent?.services[Symbol.asyncDispose]();
    await this.#agent?.program[Symbol.asyncDispose]();
    const management = `unix:${this.vswitch.management("br-int")}`;
    const rounds = {
      loadRound: async () => this.#round,
      saveRound: async (round: number) => {
        this.#round = round;
      },
    };
    const program = await OpenFlowProgram.start({ management, rounds });
    const logger = createLogger("warn", (line) => void this.log.push(line));
    const balanced = new OvsServices({
      proxyAll: true,
      nodePortAddresses: [],
      cidrs: serviceCidrs,
      management,
      logger,
    });
    const policies = new OvsPolicies(management);
    if (told !== undefined) policies.report("all", told);
    if (wanted !== undefined) await policies.enforce(wanted).catch(() => undefined);
    policies.begin(program, context, () => this.vswitch.forgetCachedFlows());
    this.#agent = { program, services: balanced, policies };
    await program.set(
      new Map([
        ...policies.alongside(this.#interfaces),
        ["base", { category: Category.base, flows: baseFlows(context) }],
        ...this.#podParts,
      ]),
    );
    balanced.begin(program, context, {
      open: async ({ ips, ...ways }) => {
        await this.#host.serve(ways);
        return this.#lead(ips);
      },
      complete: () => program.finishRound(),
    });
    await program.finishRound(Category.service);
    if (this.#services !== undefined && services === "known") await this.serve(...this.#services.values());
  }

  async #lead(ips: readonly Ip[]): Promise<ReadonlyMap<string, string>> {
    const refused = await this.#host.setRoutes(serviceRoutes(serviceCidrs, ips));
    if (refused.length > 0) throw new Error(`A route is refused: ${JSON.stringify(refused[0]?.why)}`);
    return new Map();
  }

  /** Has these services, and no others. Answers when packets go by them: the switch lags behind its flows for a moment. */
  async serve(...services: readonly ServicePort[]): Promise<readonly RefusedService[]> {
    this.#services = new Map(services.map((service) => [service.key, service]));
    const refused = await this.#agent?.services.apply(this.#services, new AbortController().signal);
    await this.vswitch.forgetCachedFlows();
    return refused ?? [];
  }

  get policies(): OvsPolicies {
    if (this.#agent === undefined) throw new Error("No agent runs");
    return this.#agent.policies;
  }

  pod(number: number): TestPod {
    const pod = this.pods[number];
    if (pod === undefined) throw new Error(`There is no pod ${number}`);
    return pod;
  }

  /** Runs ovs-ofctl on the bridge; answers its lines without the blanks around them. */
  async ofctl(command: string, ...args: readonly string[]): Promise<string[]> {
    const target = `unix:${this.vswitch.management("br-int")}`;
    const output = await this.vswitch.run("ovs-ofctl", "-O", "OpenFlow15", command, target, ...args);
    return output.split("\n").map((line) => line.trim());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#agent?.services[Symbol.asyncDispose]();
    await this.#agent?.program[Symbol.asyncDispose]();
    for (const { namespace } of this.pods) namespace[Symbol.dispose]();
    await this.#stack.disposeAsync();
  }

  async #addPod(number: number): Promise<void> {
    const host = number + 2;
    const owner = { network: "pods", sandboxId: `pod${number}`, ifname: "eth0" };
    const pod = {
      namespace: NetworkNamespace.create(),
      owner,
      4: `10.10.1.${host}`,
      6: `fd00:10:1::${host.toString(16)}`,
    };
    this.pods.push(pod);
    const [port, ofport, mac] = [`p${number}`, 10 + number, `0a:00:0a:0a:01:${host.toString(16).padStart(2, "0")}`];
    await this.namespace.ip(
      `link add ${port} type veth peer name eth0 address ${mac} netns ${pod.namespace.path}`,
      `link set ${port} up`,
    );
    pod.namespace.sysctl({ "ipv6/conf/eth0/accept_dad": 0 });
    await pod.namespace.ip(
      "link set lo up",
      "link set eth0 up",
      `addr add ${pod[4]}/24 dev eth0`,
      `addr add ${pod[6]}/64 dev eth0 nodad`,
      `route add default via ${gatewayAddress[4]}`,
      `route add default via ${gatewayAddress[6]}`,
    );
    withoutChecksumOffload(pod.namespace, "eth0");
    await this.vswitch.vsctl("add-port", "br-int", port, "--", "set", "Interface", port, `ofport_request=${ofport}`);
    leaveToSwitch(
      this.namespace,
      this.pods.map((_pod, i) => `p${i}`),
    );
    const onSwitch = { ofport, mac, ips: [ip(pod[4]), ip(pod[6])], vnid: 0 };
    this.#podParts.set(`pod/${number}`, { category: Category.pod, flows: podFlows(pipeline, onSwitch) });
    this.#interfaces.set(ownerKey(owner), onSwitch);
  }
}

async function makeBridge(vswitch: OpenVswitch): Promise<void> {
  const { name, ofport, mac } = gateway;
  const bridge = ["datapath_type=netdev", "fail_mode=secure", "protocols=OpenFlow15"];
  const port = ["type=internal", `ofport_request=${ofport}`, `mac="${mac}"`];
  await vswitch.vsctl(
    ...["add-br", "br-int", "--", "set", "Bridge", "br-int", ...bridge],
    ...["--", "add-port", "br-int", name, "--", "set", "Interface", name, ...port],
  );
}

/** What the agent's host network does, and a host beyond the node that takes no packets of pods. */
async function makeNode(namespace: NetworkNamespace, beyond: NetworkNamespace): Promise<void> {
  namespace.sysctl({ "ipv4/ip_forward": 1, "ipv6/conf/all/forwarding": 1, "ipv4/conf/all/rp_filter": 0 });
  const { name } = gateway;
  await namespace.ip("link set lo up", `link add nic type veth peer name eth0 netns ${beyond.path}`);
  // It asks for pods by the gateway's address, the only one that the switch lets it ask by.
  namespace.sysctl({ [`ipv4/conf/${name}/arp_announce`]: 1 });
  for (const device of ["nic", name]) namespace.sysctl({ [`ipv6/conf/${device}/accept_dad`]: 0 });
  beyond.sysctl({ "ipv6/conf/eth0/accept_dad": 0 });
  await beyond.ip(
    "link set lo up",
    "link set eth0 up",
    `addr add ${outside[4]}/24 dev eth0`,
    `addr add ${outside[6]}/64 dev eth0 nodad`,
    `route add ${nodeAddress[4]}/32 via 198.51.100.1`,
    `route add ${nodeAddress[6]}/128 via fd00:51::1`,
    `route add ${beyondNode[4]} via 198.51.100.1`,
    `route add ${beyondNode[6]} via fd00:51::1`,
  );
  await namespace.ip(
    "link set nic up",
    "addr add 198.51.100.1/24 dev nic",
    "addr add fd00:51::1/64 dev nic nodad",
    `addr add ${nodeAddress[4]}/32 dev lo`,
    `addr add ${nodeAddress[6]}/128 dev lo`,
    `link set ${name} up`,
    `addr add ${gatewayAddress[4]}/24 dev ${name}`,
    `addr add ${gatewayAddress[6]}/64 dev ${name} nodad`,
  );
  withoutChecksumOffload(beyond, "eth0");
  await namespace.run("nft -f -", rules);
  await namespace.run(
    "nft -f -",
    `table inet out { chain post { type nat hook postrouting priority 100; oifname "nic" masquerade; }; }`,
  );
}
