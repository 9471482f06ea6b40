import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { OpenFlowProgram } from "../../../agent/datapath/ovs/program/mod.ts";
import { OvsServices } from "../../../agent/datapath/ovs/services/ovs-services.ts";
import { servedPort } from "../../../agent/datapath/ovs/services/served-port.ts";
import { type ServiceContext, serviceFlowSet } from "../../../agent/datapath/ovs/services/service-flows.ts";
import type { ServicePort } from "../../../agent/datapath/services.ts";
import { deleteFlows, flowText, groupText, OpenFlowClient } from "../../../agent/protocols/openflow/mod.ts";
import { createLogger } from "../../../shared/log.ts";
import { formatIp, ipOf } from "../../../shared/net/ip.ts";
import { deleteAllGroups } from "../../fakes/openflow/requests.ts";
import { endpointAt, servicePort } from "../../fakes/service-port.ts";
import type { OpenVswitch } from "../../overlay/open-vswitch.ts";
import { AgentHome, eventually } from "../../support/agent-process.ts";
import { overlayBudgets } from "../budgets.ts";
import { compare, type Row } from "../row.ts";
import type { OverlaySetting } from "./measure-overlay.ts";

const bridge = "bench-services";
const protocol = ["-O", "OpenFlow15"] as const;
/** Endpoints up to which the budget of the agent's memory holds. */
const budgeted = 10_000;
/** Of the peer, apart from all that follow from names. */
const peerGroup = 0xffff_0000;

type ServicesSetting = Pick<OverlaySetting, "services" | "scratch" | "rounds" | "dist" | "progress">;

export interface ServicesSize {
  readonly count: number;
  /** Of each. */
  readonly endpoints: number;
}

/** Services with endpoints all over the cluster, as a file has them. */
export function manyServices({ count, endpoints }: ServicesSize): readonly ServicePort[] {
  return Array.from({ length: count }, (_, i) =>
    servicePort({
      key: `b/${i}:h`,
      clusterIp: ipOf(4, 0x0a60_0001n + BigInt(i)),
      endpoints: Array.from({ length: endpoints }, (_, k) => endpoint(i * endpoints + k)),
    }),
  );
}

/** As short as that: a file has 4 MiB. */
const endpoint = (number: number) => endpointAt(ipOf(4, 0x0a01_0002n + BigInt(number)), 80);

const context: ServiceContext = {
  podSubnets: [{ ip: ipOf(4, 0x0a01_0000n), prefix: 23 }],
  gateway: { ofport: 2, mac: "02:00:00:00:00:01", addresses: [] },
  nodeAddresses: [],
};

const flowSetOf = (service: ServicePort, number: number) =>
  serviceFlowSet(servedPort(service, true), () => number, context);

/** All services into an empty switch, then one endpoint of one of them, against ovs-ofctl; and what the agent holds. */
export async function measureServices(vswitch: OpenVswitch, setting: ServicesSetting): Promise<Row[]> {
  const columns = ["datapath_type=netdev", "fail_mode=secure", "protocols=OpenFlow10,OpenFlow13,OpenFlow15"];
  await vswitch.vsctl("add-br", bridge, "--", "set", "Bridge", bridge, ...columns);
  const rows = [await measureAll(vswitch, setting), await measureOne(vswitch, setting)];
  await vswitch.vsctl("del-br", bridge);
  return [...rows, await measureMemory(vswitch, setting)];
}

async function measureAll(vswitch: OpenVswitch, setting: ServicesSetting): Promise<Row> {
  const services = manyServices(setting.services);
  const text = textOf(setting);
  setting.progress(text);
  const file = join(setting.scratch, "services.txt");
  const parts = services.map((service, i) => flowSetOf(service, i + 1));
  const groups = parts.flatMap((part) => part.groups ?? []).map((each) => `group add ${groupText(each)}\n`);
  const flows = parts.flatMap((part) => part.flows).map((each) => `flow add ${flowText(each)}\n`);
  writeFileSync(file, [...groups, ...flows].join(""));
  return compare({
    measure: `${text}, into an empty switch`,
    ...overlayBudgets.services,
    rounds: setting.rounds,
    ours: async () => {
      await empty(vswitch);
      await using kept = await Kept.start(vswitch);
      return await kept.timed(services);
    },
    peer: async () => {
      await empty(vswitch);
      return timed(() => vswitch.run("ovs-ofctl", ...protocol, "bundle", target(vswitch), file));
    },
    peerName: "ovs-ofctl bundle",
  });
}

async function measureOne(vswitch: OpenVswitch, setting: ServicesSetting): Promise<Row> {
  const text = textOf(setting);
  setting.progress(`${text}, one endpoint`);
  const [first, ...others] = manyServices(setting.services);
  if (first === undefined) throw new Error("There is no service to change");
  await empty(vswitch);
  await using kept = await Kept.start(vswitch);
  await kept.timed([first, ...others]);
  const { key, clusterIp, internal } = first;
  const changed = (round: number, at = clusterIp): ServicePort =>
    servicePort({ key, clusterIp: at, endpoints: [...internal.slice(1), endpoint(1_000_000 + (round % 2))] });
  const file = join(setting.scratch, "endpoint.txt");
  const elsewhere = ipOf(4, 0x0a60_fffen);
  return await compare({
    measure: `${text}, one endpoint changes`,
    ...overlayBudgets.service,
    rounds: setting.rounds,
    ours: (round) => kept.timed([changed(round), ...others]),
    peer: (round) => {
      const before = flowSetOf(changed(round + 1, elsewhere), peerGroup);
      const after = flowSetOf(changed(round, elsewhere), peerGroup);
      const [is, was] = [after.flows.map(flowText), before.flows.map(flowText)];
      const gone = was.filter((flow) => !is.includes(flow)).map((flow) => flow.replace(/ actions=.*/, ""));
      const lines = [
        ...(after.groups ?? []).map((each) => `group add_or_mod ${groupText(each)}`),
        ...gone.map((each) => `flow delete_strict ${each}`),
        ...is.filter((flow) => round === 0 || !was.includes(flow)).map((each) => `flow add ${each}`),
      ];
      writeFileSync(file, `${lines.join("\n")}\n`);
      return timed(() => vswitch.run("ovs-ofctl", ...protocol, "bundle", target(vswitch), file));
    },
    peerName: "ovs-ofctl bundle",
  });
}

/** From the file to the switch, in the agent as it is delivered. */
async function measureMemory(vswitch: OpenVswitch, setting: ServicesSetting): Promise<Row> {
  const text = textOf(setting);
  setting.progress(`an agent with ${text}`);
  const file = join(setting.scratch, "services.json");
  const services = manyServices(setting.services).map(({ key, clusterIp, protocol, port, internal }) => ({
    name: key,
    clusterIp: formatIp(clusterIp),
    protocol,
    port,
    endpoints: internal.map(({ ip, port }) => ({ ip: formatIp(ip), port })),
  }));
  writeFileSync(file, JSON.stringify({ services }));
  const name = "bench-int";
  const config = {
    dataPath: "ovs",
    networks: [{ name: "bench", subnets: ["10.66.0.0/16"], bridge: name, masquerade: false }],
    ovs: {
      database: `unix:${vswitch.socket}`,
      datapath: "netdev",
      nodeAddresses: ["192.0.2.1"],
      services: { file, cidrs: ["10.96.0.0/16"] },
    },
  };
  await using home = new AgentHome(config, setting.dist);
  const agent = await home.start();
  using client = await OpenFlowClient.connect({ t: "path", path: vswitch.management(name) });
  await eventually(async () => (await client.groups()).length === services.length, "all services");
  const value = agent.residentMb();
  const { count, endpoints } = setting.services;
  const budget = count * endpoints > budgeted ? {} : overlayBudgets.servicesMb;
  return { measure: `agent's resident memory, ${text}`, unit: "MB", value, ...budget };
}

/** A program of the switch and its services, without an agent around. */
class Kept implements AsyncDisposable {
  readonly #program: OpenFlowProgram;
  readonly #services: OvsServices;

  private constructor(program: OpenFlowProgram, management: string) {
    this.#program = program;
    const logger = createLogger("error", console.error);
    this.#services = new OvsServices({ cidrs: [], proxyAll: true, nodePortAddresses: [], management, logger });
    this.#services.begin(program, context, { open: async () => new Map(), complete: async () => undefined });
  }

  static async start(vswitch: OpenVswitch): Promise<Kept> {
    const rounds = { loadRound: async () => undefined, saveRound: async () => undefined };
    const program = await OpenFlowProgram.start({ management: target(vswitch), rounds });
    const kept = new Kept(program, target(vswitch));
    await kept.timed([]);
    return kept;
  }

  /** Milliseconds until the switch has these. */
  timed(services: readonly ServicePort[]): Promise<number> {
    const byKey = new Map(services.map((service) => [service.key, service]));
    return timed(() => this.#services.apply(byKey, new AbortController().signal));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#services[Symbol.asyncDispose]();
    await this.#program[Symbol.asyncDispose]();
  }
}

const textOf = ({ services: { count, endpoints } }: ServicesSetting): string =>
  `${count} services with ${endpoints} endpoints each`;

const target = (vswitch: OpenVswitch): string => `unix:${vswitch.management(bridge)}`;

async function empty(vswitch: OpenVswitch): Promise<void> {
  using client = await OpenFlowClient.connect({ t: "path", path: vswitch.management(bridge) });
  await client.run([deleteFlows(), deleteAllGroups()]);
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}
