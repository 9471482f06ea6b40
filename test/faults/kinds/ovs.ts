import type { DaemonName } from "../../overlay/open-vswitch.ts";
import { eventually } from "../../support/agent-process.ts";
import { type OvsNode, requireOvs } from "../node/ovs-node.ts";
import { hostEnd } from "../node/runtime-call.ts";
import type { StressPod } from "../node/stress-node.ts";
import type { Fault, Struck } from "../workload/fault.ts";

/** Where the switch is away: an ADD is to come again, a CHECK says what it lacks or that it cannot look. */
const switchAway = { ADD: [11], CHECK: [11, 103], STATUS: [50, 51] } as const;

type Random = (bound: number) => number;
type Harm = (node: OvsNode, pods: readonly StressPod[], random: Random) => Promise<Harmed>;
interface Harmed {
  readonly what: string;
  /** Ends it. */
  heal(): Promise<void>;
}

/** User space forwards nothing without its daemon, and with another database nothing for a while. */
const ofSwitch = (name: string, harm: Harm): Fault => ({
  name,
  on: ["ovs"],
  refusals: switchAway,
  interrupts: true,
  strike: async (node, pods, random): Promise<Struck> => {
    const { what, heal } = await harm(requireOvs(node), pods, random);
    return { what, lost: [], [Symbol.asyncDispose]: heal };
  },
});

const start = (node: OvsNode, daemon: DaemonName): Promise<void> =>
  daemon === "ovs-vswitchd" ? node.vswitch.startSwitch() : node.vswitch.startDatabase();

const killed = (daemon: DaemonName): Fault =>
  ofSwitch(`${daemon} is killed`, async (node) => {
    await node.vswitch.stop(daemon, "SIGKILL");
    return { what: daemon, heal: () => start(node, daemon) };
  });

const frozen = (daemon: DaemonName): Fault =>
  ofSwitch(`${daemon} is frozen`, async (node) => {
    await node.vswitch.stop(daemon, "SIGSTOP");
    return { what: daemon, heal: () => node.vswitch.stop(daemon, "SIGCONT") };
  });

const exits = ofSwitch("ovs-vswitchd exits", async (node) => {
  await node.vswitch.switchControl("exit");
  await node.vswitch.stop("ovs-vswitchd");
  return { what: "ovs-vswitchd", heal: () => node.vswitch.startSwitch() };
});

const bothKilled = ofSwitch("ovs-vswitchd and ovsdb-server are killed", async (node) => {
  await Promise.all([node.vswitch.stop("ovs-vswitchd", "SIGKILL"), node.vswitch.stop("ovsdb-server", "SIGKILL")]);
  return {
    what: "both",
    heal: async () => {
      await node.vswitch.startDatabase();
      await node.vswitch.startSwitch();
    },
  };
});

const bothFrozen = ofSwitch("ovs-vswitchd and ovsdb-server are frozen", async (node) => {
  const all = async (signal: "SIGSTOP" | "SIGCONT"): Promise<void> => {
    for (const daemon of ["ovs-vswitchd", "ovsdb-server"] as const) await node.vswitch.stop(daemon, signal);
  };
  await all("SIGSTOP");
  return { what: "both", heal: () => all("SIGCONT") };
});

const podPorts = async (node: OvsNode): Promise<readonly string[]> => {
  const pods = ["find", "Port", "external_ids:pipette-type=pod"];
  return (await node.vswitch.vsctl("--bare", "--columns=name", ...pods)).split("\n").filter((name) => name !== "");
};

/** The agent makes them again by itself, for pods that still stand; until then a CHECK rightly misses them. */
const portsBack = async (node: OvsNode, pods: readonly StressPod[]): Promise<void> => {
  await eventually(async () => {
    const [ports, links] = [await podPorts(node), await node.machine.run("ip -br link")];
    const names = pods.map(({ result }) => hostEnd(result));
    return names.every((name) => ports.includes(name) || !links.includes(`${name}@`));
  }, "the ports of the pods that stand");
};

const emptied = ofSwitch("Open vSwitch's database is emptied", async (node, pods) => {
  await node.vswitch.stop("ovsdb-server", "SIGKILL");
  await node.vswitch.startNewDatabase();
  return { what: "every bridge and port", heal: () => portsBack(node, pods) };
});

const bridgeDeleted = ofSwitch("the pods' bridge is deleted", async (node, pods) => {
  await node.vswitch.vsctl("--no-wait", "--if-exists", "del-br", "br-int");
  return { what: "br-int", heal: () => portsBack(node, pods) };
});

const portDeleted = ofSwitch("the port of a pod is deleted", async (node, pods, random) => {
  const names = await podPorts(node);
  const name = names[random(Math.max(1, names.length))];
  if (name !== undefined) await node.vswitch.vsctl("--no-wait", "--if-exists", "del-port", "br-int", name);
  return { what: name ?? "none", heal: () => portsBack(node, pods) };
});

const flowsDeleted = ofSwitch("flows are deleted", async (node, _pods, random) => {
  const tables = [["table=0"], ["table=30"], ["table=180"], ["table=240"], []];
  const which = tables[random(tables.length)] ?? [];
  await node.ofctl("del-flows", ...which);
  return { what: which[0] ?? "all of them", heal: () => node.repair() };
});

const flowsAdded = ofSwitch("another controller adds flows", async (node) => {
  await node.ofctl("add-flow", "table=0,priority=65535,actions=drop");
  await node.ofctl("add-flow", "cookie=0x1010000000000,table=30,priority=190,in_port=60000,actions=drop");
  return { what: "one that drops everything, and one of a pod that is none", heal: () => node.repair() };
});

export const ovsFaults: readonly Fault[] = [
  killed("ovs-vswitchd"),
  killed("ovsdb-server"),
  frozen("ovs-vswitchd"),
  frozen("ovsdb-server"),
  exits,
  bothKilled,
  bothFrozen,
  emptied,
  bridgeDeleted,
  portDeleted,
  flowsDeleted,
  flowsAdded,
];
