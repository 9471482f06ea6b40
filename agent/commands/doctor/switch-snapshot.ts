import { isWindows } from "../../../shared/os/platform.ts";
import { reasonOf } from "../../../shared/reason.ts";
import type { OvsConfig } from "../../config/agent-config.ts";
import {
  bridgeNamed,
  interfaceNamed,
  openDatabase,
  ownerOf,
  parseIdentity,
  portsOf,
} from "../../datapath/ovs/database/mod.ts";
import { Category, readCookie, tables } from "../../datapath/ovs/pipeline/vocabulary.ts";
import { OpenFlowClient, parseAddress } from "../../protocols/openflow/mod.ts";
import type { Finding } from "./finding.ts";
import type { SeenPort, SeenSwitch } from "./node-snapshot.ts";

const timeoutMs = 3_000;

/** What Open vSwitch has of ours, and what is wrong with it itself. Changes nothing. */
export async function switchSnapshot(
  { database, management }: OvsConfig,
  bridge: string,
): Promise<{ readonly seen?: SeenSwitch; readonly findings: readonly Finding[] }> {
  using client = openDatabase(database);
  try {
    await client.ready(timeoutMs);
  } catch (caught) {
    return { findings: [unreachable("the database of Open vSwitch", database, caught, "ovsdb-server")] };
  }
  const { view } = client;
  if (bridgeNamed(view, bridge) === undefined) return { findings: [noBridge(bridge)] };
  const ports: SeenPort[] = [];
  const numbers = new Set<number>();
  for (const { name, _uuid, external_ids } of portsOf(view, bridge)) {
    const { ofport, error } = interfaceNamed(view, name) ?? {};
    const isMade = ofport !== undefined && ofport >= 0;
    if (isMade) numbers.add(ofport);
    const owner = ownerOf(external_ids);
    if (owner === undefined) continue;
    const ips = parseIdentity(external_ids)?.ips ?? [];
    const problem = error === undefined ? {} : { problem: error };
    ports.push({ owner, name, uuid: _uuid, ips, ...(isMade ? { ofport } : {}), ...problem });
  }
  try {
    return { seen: { ports, numbers, flowPorts: await portsWithFlows(management) }, findings: [] };
  } catch (caught) {
    const findings = [unreachable("the switch", management, caught, "ovs-vswitchd")];
    return { seen: { ports, numbers, flowPorts: undefined }, findings };
  }
}

/** The ports from which the switch takes packets as a pod's. */
async function portsWithFlows(management: string): Promise<ReadonlySet<number>> {
  using client = await OpenFlowClient.connect(parseAddress(management, isWindows), { connectMs: timeoutMs });
  const flows = await client.flows({ table: tables.Classifier });
  const ofPods = flows.filter(({ flow }) => readCookie(flow.cookie).category === Category.pod);
  const inPorts = ofPods.map(({ flow }) => flow.match.fields.find(({ field }) => field.name === "in_port")?.value);
  return new Set(inPorts.filter((port) => port !== undefined).map(Number));
}

const unreachable = (what: string, address: string, caught: unknown, daemon: string): Finding => ({
  severity: "error",
  code: "switch-unreachable",
  what: `${what} at "${address}" does not answer`,
  why: `No pod can be connected (${reasonOf(caught)})`,
  todo: `see that ${daemon} runs, and that section "ovs" of agent.yaml names its address`,
  evidence: address,
});

const noBridge = (bridge: string): Finding => ({
  severity: "error",
  code: "bridge-missing",
  what: `Open vSwitch has no bridge "${bridge}"`,
  why: "No pod can be connected",
  todo: "have the agent make it, as it does at its start",
  repair: { t: "node" },
  evidence: bridge,
});
