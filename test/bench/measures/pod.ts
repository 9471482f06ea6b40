import { AgentHome } from "../../support/agent-process.ts";
import { budgets } from "../budgets.ts";
import { compileFront } from "../front.ts";
import { asInstalled, type CrowdOutcome, crowd, makeNamespaces, removeNamespaces, type Side } from "../pods.ts";
import { compareInBothStates, type Row } from "../row.ts";
import type { Setting } from "../setting.ts";
import { summarize } from "../stats.ts";
import { measureVerbs, timedVerb } from "./verbs.ts";

const network = "bench";
const cniVersion = "1.0.0";

/** Whole pods, as a runtime sees them: plugin, allocator, agent, kernel; against `bridge` with host-local. */
export async function measurePods(setting: Setting): Promise<Row[]> {
  const { dist, peers, scratch } = setting;
  const networks = [{ name: network, subnets: ["10.66.0.0/16"], bridge: "bench-ours", masquerade: false }];
  await using home = new AgentHome({ ...asInstalled, networks }, dist);
  const agent = await home.start();
  const list = JSON.parse(await Bun.file(home.conflist).text());
  const logFile = `${scratch}/plugin.log`;
  const wholeProgram = `${dist}/pipette`;
  const front = await compileFront(`${scratch}/front-pods`, dist, { agentSocket: home.socket, wholeProgram });
  const whole: Side = {
    executable: wholeProgram,
    conf: { ...list.plugins[0], name: network, cniVersion },
    path: peers,
  };
  const ours: Side = { ...whole, executable: front.pipette };
  const peer = bridgeSide(setting, network);
  const logged = { ...whole, conf: { ...whole.conf, logFile, logLevel: "debug" } };
  return [
    ...(await measureOnePod(setting, ours, whole, peer)),
    await measureRoundTrip(setting, logged, logFile, agent.lines),
    ...(await measureCrowds(setting, ours, peer)),
    await measureMemory(setting, ours, () => agent.residentMb()),
    ...(await measureLaterPod(setting, ours, peer)),
  ];
}

/** Debian's plugins, on a bridge of their own. */
export function bridgeSide(setting: Pick<Setting, "peers" | "scratch">, network: string): Side {
  const ipam = { type: "host-local", dataDir: `${setting.scratch}/bridge`, ranges: [[{ subnet: "10.67.0.0/16" }]] };
  return {
    executable: `${setting.peers}/bridge`,
    conf: {
      cniVersion,
      name: network,
      type: "bridge",
      bridge: "bench-peer",
      isGateway: true,
      ipam: { ...ipam, routes: [{ dst: "0.0.0.0/0" }] },
    },
    path: setting.peers,
  };
}

async function measureOnePod(setting: Setting, ours: Side, whole: Side, peer: Side): Promise<Row[]> {
  setting.progress("a whole pod, ADD and DEL");
  const started = [`${setting.peers}/host-local`];
  let peakKb = 0;
  const rows = await measureVerbs(
    setting,
    { measure: "whole pod, ADD + DEL", ours, peer, both: budgets.pod, add: budgets.podAdd, started },
    (call) => {
      peakKb = Math.max(peakKb, call.peakKb);
    },
  );
  rows.push({ measure: "peak memory of a call", unit: "MB", value: peakKb / 1024, ...budgets.callMb });
  setting.progress("a whole pod by the whole program");
  const measure = "whole pod by the whole program";
  const alone = { measure, ours: whole, peer, both: budgets.wholePod, heldIn: ["read"], started } as const;
  return [...rows, ...(await measureVerbs(setting, alone))];
}

/** The same of an agent that has served for some time: the first pods of one find less of its code compiled. */
async function measureLaterPod(setting: Setting, ours: Side, peer: Side): Promise<Row[]> {
  setting.progress("a whole pod, after many others");
  const measure = "whole pod, after many others";
  const started = [`${setting.peers}/host-local`];
  return await measureVerbs(setting, { measure, ours, peer, both: budgets.pod, add: budgets.podAdd, started });
}

async function measureCrowds(setting: Setting, ours: Side, peer: Side): Promise<Row[]> {
  const { launcher, pods, rounds, progress } = setting;
  progress(`${pods} pods at once`);
  const lost: number[] = [];
  const doubled: number[] = [];
  const adds = { ours: [] as number[], peer: [] as number[] };
  let round = 0;
  const once = async (who: "ours" | "peer", side: Side): Promise<CrowdOutcome> => {
    const namespaces = await makeNamespaces(`crowd-${who}-${round++}`, pods);
    const added = crowd(launcher, side, "ADD", namespaces);
    const gone = crowd(launcher, side, "DEL", namespaces);
    await removeNamespaces(namespaces);
    adds[who].push(...added.each);
    return { ...added, ms: added.ms + gone.ms, lost: added.lost + gone.lost };
  };
  const slowest = (): Row => {
    const [own, others] = [summarize(adds.ours.splice(0)), summarize(adds.peer.splice(0))];
    const value = own.p99 / others.p99;
    return { measure: `  p99 of an ADD: ${own.p99.toFixed(0)} and ${others.p99.toFixed(0)} ms`, unit: "ratio", value };
  };
  const rows = await compareInBothStates(
    {
      measure: `${pods} pods at once, ADD + DEL`,
      ...budgets.crowd,
      rounds: Math.max(1, Math.floor(rounds / 4)),
      ours: async () => {
        const result = await once("ours", ours);
        lost.push(result.lost);
        doubled.push(result.doubled);
        return result.ms;
      },
      peer: async () => (await once("peer", peer)).ms,
      peerName: "bridge + host-local",
      executables: [ours.executable, peer.executable, `${setting.peers}/host-local`],
    },
    () => [slowest()],
  );
  const count = (measure: string, values: readonly number[]): Row => ({
    measure,
    unit: "count",
    value: values.reduce((sum, value) => sum + value, 0),
    ...budgets.none,
  });
  return [...rows, count("calls lost in the crowd", lost), count("addresses doubled in the crowd", doubled)];
}

/** What the call costs beyond the agent's work: the plugin's time from request to answer, less the agent's own. */
async function measureRoundTrip(
  setting: Setting,
  ours: Side,
  logFile: string,
  agentLines: readonly Readonly<Record<string, unknown>>[],
): Promise<Row> {
  setting.progress("round trip inside the call");
  const namespaces = await makeNamespaces("trip", setting.rounds);
  for (const namespace of namespaces) timedVerb(setting.launcher, ours, "ADD", namespace);
  for (const namespace of namespaces) timedVerb(setting.launcher, ours, "DEL", namespace);
  await removeNamespaces(namespaces);
  const served = new Map<string, number>();
  for (const line of agentLines) {
    if (line["message"] === "served" && line["verb"] === "ADD")
      served.set(String(line["container"]), Number(line["durationMs"]));
  }
  const trips: number[] = [];
  for (const text of (await Bun.file(logFile).text()).trim().split("\n")) {
    const line = JSON.parse(text);
    const work = served.get(line.containerId);
    if (line.message === "The agent answered" && line.verb === "ADD" && work !== undefined) trips.push(line.ms - work);
  }
  if (trips.length < namespaces.length)
    throw new Error(`Cannot measure the round trip: ${trips.length} of ${namespaces.length} calls are in both logs`);
  const summary = summarize(trips);
  return {
    measure: "plugin to agent and back",
    unit: "ms",
    value: summary.median,
    ...budgets.roundTripMs,
    ours: summary,
  };
}

async function measureMemory(setting: Setting, ours: Side, residentMb: () => number): Promise<Row> {
  setting.progress(`the agent's memory with ${setting.residentPods} pods`);
  const namespaces = await makeNamespaces("memory", setting.residentPods);
  for (const namespace of namespaces) timedVerb(setting.launcher, ours, "ADD", namespace);
  const value = residentMb();
  for (const namespace of namespaces) timedVerb(setting.launcher, ours, "DEL", namespace);
  await removeNamespaces(namespaces);
  return { measure: `agent's resident memory, ${setting.residentPods} pods`, unit: "MB", value, ...budgets.residentMb };
}
