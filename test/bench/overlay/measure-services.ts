import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { OpenFlowProgram } from "../../../agent/datapath/ovs/program/mod.ts";
import type { Service, ServiceSource } from "../../../agent/datapath/ovs/services/service.ts";
import { serviceFlowSet } from "../../../agent/datapath/ovs/services/service-flows.ts";
import { ServiceReconciler } from "../../../agent/datapath/ovs/services/service-reconciler.ts";
import { deleteFlows, flowText, groupText, OpenFlowClient } from "../../../agent/protocols/openflow/mod.ts";
import { LiveValue } from "../../../shared/async/live-value.ts";
import { createLogger } from "../../../shared/log.ts";
import { formatIp, ipOf } from "../../../shared/net/ip.ts";
import { deleteAllGroups } from "../../fakes/openflow/requests.ts";
import type { OpenVswitch } from "../../overlay/open-vswitch.ts";
import { AgentHome, eventually } from "../../support/agent-process.ts";
import { overlayBudgets } from "../budgets.ts";
import { compare, type Row } from "../row.ts";
import type { OverlaySetting } from "./measure-overlay.ts";

const bridge = "bench-services";
const protocol = ["-O", "OpenFlow15"] as const;
/** Of the peer, apart from all that follow from names. */
const peerGroup = 0xffff_0000;

export interface ServicesSize {
  readonly count: number;
  /** Of each. */
  readonly endpoints: number;
}

/** Services with endpoints all over the cluster, as a file has them. */
export function manyServices({ count, endpoints }: ServicesSize): readonly Service[] {
  return Array.from({ length: count }, (_, i) => ({
    key: `bench/service${i}:http`,
    clusterIp: ipOf(4, 0x0a60_0001n + BigInt(i)),
    protocol: "tcp",
    port: 80,
    endpoints: Array.from({ length: endpoints }, (_, k) => endpoint(i * endpoints + k)),
  }));
}

const endpoint = (number: number) => ({ ip: ipOf(4, 0x0a80_0002n + BigInt(number)), port: 8080, weight: 100 });

/** All services into an empty switch, then one endpoint of one of them, against ovs-ofctl; and what the agent holds. */
export async function measureServices(vswitch: OpenVswitch, setting: OverlaySetting): Promise<Row[]> {
  const columns = ["datapath_type=netdev", "fail_mode=secure", "protocols=OpenFlow10,OpenFlow13,OpenFlow15"];
  await vswitch.vsctl("add-br", bridge, "--", "set", "Bridge", bridge, ...columns);
  const rows = [await measureAll(vswitch, setting), await measureOne(vswitch, setting)];
  await vswitch.vsctl("del-br", bridge);
  return [...rows, await measureMemory(vswitch, setting)];
}

async function measureAll(vswitch: OpenVswitch, setting: OverlaySetting): Promise<Row> {
  const services = manyServices(setting.services);
  const text = textOf(setting);
  setting.progress(text);
  const file = join(setting.scratch, "services.txt");
  const parts = services.map((service, i) => serviceFlowSet(service, i + 1));
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

async function measureOne(vswitch: OpenVswitch, setting: OverlaySetting): Promise<Row> {
  const text = textOf(setting);
  setting.progress(`${text}, one endpoint`);
  const [first, ...others] = manyServices(setting.services);
  if (first === undefined) throw new Error("There is no service to change");
  await empty(vswitch);
  await using kept = await Kept.start(vswitch);
  await kept.timed([first, ...others]);
  const changed = (round: number): Service => ({
    ...first,
    endpoints: [...first.endpoints.slice(1), endpoint(1_000_000 + (round % 2))],
  });
  const file = join(setting.scratch, "endpoint.txt");
  const elsewhere = { clusterIp: ipOf(4, 0x0a60_fffen) };
  return await compare({
    measure: `${text}, one endpoint changes`,
    ...overlayBudgets.service,
    rounds: setting.rounds,
    ours: (round) => kept.timed([changed(round), ...others]),
    peer: (round) => {
      const before = serviceFlowSet({ ...changed(round + 1), ...elsewhere }, peerGroup);
      const after = serviceFlowSet({ ...changed(round), ...elsewhere }, peerGroup);
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
async function measureMemory(vswitch: OpenVswitch, setting: OverlaySetting): Promise<Row> {
  const text = textOf(setting);
  setting.progress(`an agent with ${text}`);
  const file = join(setting.scratch, "services.json");
  const services = manyServices(setting.services).map(({ key, clusterIp, endpoints, ...others }) => ({
    name: key,
    clusterIp: formatIp(clusterIp),
    endpoints: endpoints.map(({ ip, port }) => ({ ip: formatIp(ip), port })),
    ...others,
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
  return { measure: `agent's resident memory, ${text}`, unit: "MB", value, ...overlayBudgets.servicesMb };
}

/** A program of the switch and a reconciler of services on it, without an agent around. */
class Kept implements AsyncDisposable {
  readonly #program: OpenFlowProgram;
  readonly #reconciler: ServiceReconciler;
  readonly #services = new LiveValue<ReadonlyMap<string, Service>>(new Map());

  private constructor(program: OpenFlowProgram, management: string) {
    this.#program = program;
    const source: ServiceSource = {
      current: undefined,
      subscribe: (listener) => this.#services.subscribe(listener),
      [Symbol.asyncDispose]: async () => undefined,
    };
    const logger = createLogger("error", console.error);
    const context = { podSubnets: [{ ip: ipOf(4, 0x0a80_0000n), prefix: 23 }] };
    this.#reconciler = new ServiceReconciler({ source, program, context, cidrs: [], management, logger });
  }

  static async start(vswitch: OpenVswitch): Promise<Kept> {
    const rounds = { loadRound: async () => undefined, saveRound: async () => undefined };
    const program = await OpenFlowProgram.start({ management: target(vswitch), rounds });
    const kept = new Kept(program, target(vswitch));
    await kept.#reconciler.synced();
    return kept;
  }

  /** Milliseconds until the switch has these. */
  timed(services: readonly Service[]): Promise<number> {
    const byKey = new Map(services.map((service) => [service.key, service]));
    return timed(async () => {
      this.#services.set(byKey);
      await Promise.resolve();
      await this.#reconciler.synced();
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#reconciler[Symbol.asyncDispose]();
    await this.#program[Symbol.asyncDispose]();
  }
}

const textOf = ({ services: { count, endpoints } }: OverlaySetting): string =>
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
