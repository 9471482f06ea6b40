import { AgentHome } from "../../support/agent-process.ts";
import { budgets } from "../budgets.ts";
import { readFromEndToEnd } from "../page-cache.ts";
import { runTimed, verbEnv } from "../plugin-process.ts";
import { type CrowdOutcome, crowd, makeNamespaces, type Namespace, removeNamespaces, type Side } from "../pods.ts";
import { compare, type Row } from "../row.ts";
import type { Setting } from "../setting.ts";
import { summarize } from "../stats.ts";

const network = "bench";
const cniVersion = "1.0.0";

/** Whole pods, as a runtime sees them: plugin, allocator, agent, kernel; against `bridge` with host-local. */
export async function measurePods(setting: Setting): Promise<Row[]> {
  const networks = [{ name: network, subnets: ["10.66.0.0/16"], bridge: "bench-ours", masquerade: false }];
  await using home = new AgentHome({ networks, logLevel: "info" }, setting.dist);
  const agent = await home.start();
  const list = JSON.parse(await Bun.file(home.conflist).text());
  const logFile = `${setting.scratch}/plugin.log`;
  const ours: Side = {
    executable: `${setting.dist}/pipette`,
    conf: { ...list.plugins[0], name: network, cniVersion },
    path: setting.peers,
  };
  const peer = bridgeSide(setting, network);
  const rows = [
    await measureOnePod(setting, ours, peer),
    ...(await measureCrowds(setting, ours, peer)),
    await measureRoundTrip(
      setting,
      { ...ours, conf: { ...ours.conf, logFile, logLevel: "debug" } },
      logFile,
      agent.lines,
    ),
  ];
  return [...rows, await measureMemory(setting, ours, () => agent.residentMb())];
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

async function measureOnePod(setting: Setting, ours: Side, peer: Side): Promise<Row> {
  setting.progress("a whole pod, ADD and DEL");
  await readFromEndToEnd([ours.executable, peer.executable, `${setting.peers}/host-local`]);
  const pods = {
    ours: await makeNamespaces("one-ours", setting.rounds + 1),
    peer: await makeNamespaces("one-peer", setting.rounds + 1),
  };
  const both =
    (side: Side, namespaces: readonly Namespace[]) =>
    (round: number): number =>
      timedVerb(side, "ADD", namespaces[round]) + timedVerb(side, "DEL", namespaces[round]);
  const row = await compare({
    measure: "whole pod, ADD + DEL",
    ...budgets.pod,
    rounds: setting.rounds,
    ours: both(ours, pods.ours),
    peer: both(peer, pods.peer),
    peerName: "bridge + host-local",
  });
  await removeNamespaces([...pods.ours, ...pods.peer]);
  return row;
}

/** One call, in milliseconds. */
export function timedVerb({ executable, conf, path }: Side, verb: string, namespace: Namespace | undefined): number {
  if (namespace === undefined) throw new Error("Cannot measure a pod: there are fewer namespaces than rounds");
  return runTimed({ executable, conf: JSON.stringify(conf), env: verbEnv(verb, namespace.id, namespace.path, path) })
    .ms;
}

async function measureCrowds(setting: Setting, ours: Side, peer: Side): Promise<Row[]> {
  setting.progress(`${setting.pods} pods at once`);
  await readFromEndToEnd([ours.executable, peer.executable, `${setting.peers}/host-local`]);
  const lost: number[] = [];
  const doubled: number[] = [];
  let round = 0;
  const once = async (name: string, side: Side): Promise<CrowdOutcome> => {
    const namespaces = await makeNamespaces(`crowd-${name}-${round++}`, setting.pods);
    const added = await crowd(side, "ADD", namespaces);
    const gone = await crowd(side, "DEL", namespaces);
    await removeNamespaces(namespaces);
    return { ms: added.ms + gone.ms, lost: added.lost + gone.lost, doubled: added.doubled };
  };
  const row = await compare({
    measure: `${setting.pods} pods at once, ADD + DEL`,
    ...budgets.crowd,
    rounds: Math.max(1, Math.floor(setting.rounds / 4)),
    ours: async () => {
      const result = await once("ours", ours);
      lost.push(result.lost);
      doubled.push(result.doubled);
      return result.ms;
    },
    peer: async () => (await once("peer", peer)).ms,
    peerName: "bridge + host-local",
  });
  const count = (measure: string, values: readonly number[]): Row => ({
    measure,
    unit: "count",
    value: values.reduce((sum, value) => sum + value, 0),
    ...budgets.none,
  });
  return [row, count("calls lost in the crowd", lost), count("addresses doubled in the crowd", doubled)];
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
  for (const namespace of namespaces) timedVerb(ours, "ADD", namespace);
  for (const namespace of namespaces) timedVerb(ours, "DEL", namespace);
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
  for (const namespace of namespaces) timedVerb(ours, "ADD", namespace);
  const value = residentMb();
  for (const namespace of namespaces) timedVerb(ours, "DEL", namespace);
  await removeNamespaces(namespaces);
  return { measure: `agent's resident memory, ${setting.residentPods} pods`, unit: "MB", value, ...budgets.residentMb };
}
