import { asData, formOf } from "../../../operator/mod.ts";
import { CniCode, CniError } from "../../../shared/errors.ts";
import { type Ip, parseIp } from "../../../shared/net/ip.ts";
import { paths } from "../../../shared/os/paths.ts";
import { defineCommand } from "../../../shared/terminal/command.ts";
import { exitStatus } from "../../../shared/terminal/exit-status.ts";
import { printable, printableLines } from "../../../shared/terminal/printable.ts";
import type { TerminalIo } from "../../../shared/terminal/terminal-io.ts";
import { parseAddress } from "../../protocols/ovsdb/mod.ts";
import { controlPlaces, openControl } from "../../protocols/switch-control/mod.ts";
import { type KnownNodes, knownNodesIn, readConfig, type TraceConfig } from "./agent-files.ts";
import { type End, type Journey, packetOf } from "./packet.ts";
import { agentsPolicies, withPolicyNames } from "./policy-names.ts";
import { type Report, reportObject, reportText } from "./report.ts";
import { findPod, readPorts, type SwitchPort } from "./switch-ports.ts";
import { packetWanted, requireSimulated, simulated, traceByAgents } from "./trace-modes.ts";
import { traceOptions } from "./trace-options.ts";
import { trace } from "./tracer.ts";
import { nextCommand, stepsOf, type Verdict, verdictOf } from "./verdict.ts";

const action = "trace the packet";

export const traceCommand = defineCommand({
  action,
  about: `Shows the way of a packet from one pod to another: which tables it passes, what these decide, and where it ends.

Without more it asks the switch of this node what it would do: nothing is sent, and no agent is needed. With --inject
the sender's agent sends a packet in the pod's name, and every node on the way tells of it; it is delivered to nobody.
With --live the next real connection that matches is followed, and left as it is; FROM or TO may be "any" then. Both ask
agents: by the socket of this node its own part, by the API server all nodes. For "dataPath: ovs".`,
  operands: [
    {
      name: "FROM",
      of: { ask: "pods" },
      help: "a pod, namespace/name; without a way to agents one of this node, or its address",
    },
    { name: "TO", help: "a pod, an address, or with --inject and --live a service, namespace/name" },
  ],
  options: traceOptions,
  exits: {
    0: "the packet arrives, or gets as far as can be told from here",
    1: "it is dropped, rejected or lost, or could not be traced",
    2: "not all could be told, since a node does not answer; or wrong arguments",
    3: "there is no such pod, or no connection came that matches",
    4: "several pods of this node have the name",
  },
  run: async ({ options: given, operands: [from = "", to = ""] }, io) => {
    if (given.inject || given.live) return await traceByAgents({ from, to }, given, io);
    const packet = packetWanted(given);
    requireSimulated(given);
    const form = given.json ? "json" : formOf(given.output);
    const config = await readConfig(given.config ?? paths.agentConfig);
    const ports = await readPorts(config.ovs.database, config.bridge);
    const client = endOf(ports, from, io);
    const server = typeof client === "number" ? client : endOf(ports, to, io);
    if (typeof client === "number") return client;
    if (typeof server === "number") return server;
    const journey: Journey = {
      client,
      server,
      protocol: simulated(packet),
      isReply: given.reply,
      fromTunnel: tunnelOf(given["from-tunnel"], given["tunnel-key"]),
      as: { ip: addressOf(given["as-ip"]), mac: given["as-mac"] },
      isRoutedOnly: config.ovs.mode === "networkPolicyOnly",
    };
    const { report, text } = await traceJourney(config, journey, ports, given.control);
    if (given.raw) io.stdout(printableLines(`${text.trimEnd()}\n`));
    if (report === undefined) {
      const is = "the answer of ovs-vswitchd shows no packet's way";
      throw new CniError(CniCode.decode, `Cannot ${action}: ${is}, wanted the text of ofproto/trace`, {
        details: text,
      });
    }
    const isData = form === "json" || form === "yaml";
    if (!given.raw) io.stdout(isData ? asData(form, reportObject(report)) : printableLines(reportText(report)));
    return report.verdict.t === "dropped" ? exitStatus.failed : exitStatus.done;
  },
});

/**
 * Has Open vSwitch trace the packet.
 * @param control where ovs-vswitchd takes commands; absent: beside its database
 * @returns no report where its answer cannot be read
 * @throws {CniError}
 */
export async function traceJourney(
  config: TraceConfig,
  journey: Journey,
  ports: readonly SwitchPort[],
  control?: string,
): Promise<{ readonly report?: Report; readonly text: string }> {
  const packet = packetOf(journey, ports);
  const database = parseAddress(config.ovs.database);
  const places = control === undefined ? await controlPlaces(database) : [parseAddress(control)];
  using opened = await openControl(places, action);
  const { passes, text } = await trace(opened, config.bridge, packet);
  if (passes.length === 0) return { text };
  const portName = (ofport: number): string => ports.find((port) => port.ofport === ofport)?.name ?? String(ofport);
  const known = knownNodesIn(config.dataDir);
  const { steps, verdict } = await withPolicyNames(
    { steps: stepsOf(passes, portName), verdict: withName(verdictOf(passes, packet, ports), known) },
    { packet, passes, ports },
    agentsPolicies(config.socket),
  );
  const next = nextCommand(verdict, passes, journey, [...config.ovs.nodeAddresses, ...known.own]);
  const inPort = portName(packet.inPort);
  return { text, report: { journey, packet, inPort, steps, verdict, ...(next === undefined ? {} : { next }) } };
}

const addressOf = (text: string | undefined): Ip | undefined => (text === undefined ? undefined : parseIp(text));

function tunnelOf(node: string | undefined, key = "0"): Journey["fromTunnel"] {
  const from = addressOf(node);
  return from === undefined ? undefined : { from, key: Number(key) };
}

function withName(verdict: Verdict, known: KnownNodes): Verdict {
  const name = verdict.t === "tunnel" ? known.nameOf(verdict.node) : undefined;
  return verdict.t === "tunnel" && name !== undefined ? { ...verdict, name } : verdict;
}

/** Reports on stderr why there is none. @returns an exit status then */
function endOf(ports: readonly SwitchPort[], wanted: string, io: TerminalIo): End | number {
  const found = findPod(ports, wanted);
  if (found.t === "pod" || found.t === "address") return found;
  if (found.t === "several") {
    const names = found.names.map((name) => `"${name}"`).join(", ");
    io.stderr(printable(`Cannot ${action}: "${wanted}" is the name of ${names}, wanted one with its namespace`));
    io.stderr("\n");
    return exitStatus.several;
  }
  const near = found.near.length === 0 ? "" : ` such as ${found.near.map((name) => `"${name}"`).join(", ")}`;
  const wish = `wanted one${near}; a pod of another node is told by its address`;
  io.stderr(`${printable(`Cannot ${action}: this node has no pod "${wanted}", ${wish}`)}\n`);
  return exitStatus.notThere;
}
