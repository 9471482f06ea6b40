import { AgentHome } from "../../support/agent-process.ts";
import { loopbackGet } from "../../support/loopback-get.ts";
import { budgets } from "../budgets.ts";
import { compileFront } from "../front.ts";
import { asInstalled, makeNamespaces, removeNamespaces, type Side } from "../pods.ts";
import { compare, type Row } from "../row.ts";
import type { Setting } from "../setting.ts";
import { timedVerb } from "./verbs.ts";

const port = 10_352;

type MeasuredSetting = Pick<
  Setting,
  "dist" | "peers" | "launcher" | "scratch" | "rounds" | "residentPods" | "progress"
>;

/** What numbers cost: an agent with the section `metrics` against one without, side by side on one node. */
export async function measureMetrics(setting: MeasuredSetting): Promise<Row[]> {
  const network = (name: string, second: number) => ({
    networks: [{ name, subnets: [`10.${second}.0.0/16`], bridge: `bench-${name}`, masquerade: false }],
  });
  const metrics = { metrics: { listen: `127.0.0.1:${port}`, plain: true } };
  await using on = new AgentHome({ ...asInstalled, ...network("on", 66), ...metrics }, setting.dist);
  await using off = new AgentHome({ ...asInstalled, ...network("off", 67) }, setting.dist);
  const [withNumbers, without] = [await on.start(), await off.start()];
  const [sideOn, sideOff] = [await sideOf(setting, on, "on"), await sideOf(setting, off, "off")];
  setting.progress("ADD with and without numbers");
  const timed = (side: Side, name: string) => async (round: number) => {
    const namespaces = await makeNamespaces(`metrics-${name}-${round}`, 1);
    const [namespace = { id: "", path: "" }] = namespaces;
    const { ms } = timedVerb(setting.launcher, side, "ADD", namespace);
    timedVerb(setting.launcher, side, "DEL", namespace);
    await removeNamespaces(namespaces);
    return ms;
  };
  const row = await compare({
    measure: "ADD with metrics",
    ...budgets.metrics,
    rounds: setting.rounds,
    ours: timed(sideOn, "on"),
    peer: timed(sideOff, "off"),
    peerName: "without metrics",
  });
  return [row, ...(await measureMemory(setting, [sideOn, withNumbers], [sideOff, without]))];
}

type Measured = readonly [Side, { residentMb(): number }];

async function measureMemory(setting: MeasuredSetting, ...[on, off]: readonly [Measured, Measured]): Promise<Row[]> {
  const { residentPods, launcher, progress } = setting;
  progress(`the agents' memory with ${residentPods} pods each`);
  const rows: Row[] = [];
  const read = (what: string): void => {
    for (const [name, [, agent]] of [["with", on] as const, ["without", off] as const])
      rows.push({ measure: `resident memory ${name} metrics, ${what}`, unit: "MB", value: agent.residentMb() });
  };
  read("before");
  const all = [];
  for (const [name, [side]] of [["on", on] as const, ["off", off] as const]) {
    const namespaces = await makeNamespaces(`memory-${name}`, residentPods);
    for (const namespace of namespaces) timedVerb(launcher, side, "ADD", namespace);
    all.push({ side, namespaces });
  }
  for (let i = 0; i < 5; i++) {
    await loopbackGet(port, "/metrics");
    // Each is another text.
    await Bun.sleep(1_100);
  }
  read(`${residentPods} pods`);
  for (const { side, namespaces } of all) {
    for (const namespace of namespaces) timedVerb(launcher, side, "DEL", namespace);
    await removeNamespaces(namespaces);
  }
  return rows;
}

async function sideOf({ dist, peers, scratch }: MeasuredSetting, home: AgentHome, name: string): Promise<Side> {
  const list = JSON.parse(await Bun.file(home.conflist).text());
  const wholeProgram = `${dist}/pipette`;
  const front = await compileFront(`${scratch}/front-${name}`, dist, { agentSocket: home.socket, wholeProgram });
  return { executable: front.pipette, conf: { ...list.plugins[0], name, cniVersion: "1.0.0" }, path: peers };
}
