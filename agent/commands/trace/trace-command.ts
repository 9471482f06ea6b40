import { CniCode, CniError } from "../../../shared/errors.ts";
import { type Ip, parseIp } from "../../../shared/net/ip.ts";
import { paths } from "../../../shared/os/paths.ts";
import { defineCommand, type OptionSpec } from "../../../shared/terminal/command.ts";
import { exitStatus } from "../../../shared/terminal/exit-status.ts";
import { formatJson, printable, printableLines } from "../../../shared/terminal/printable.ts";
import type { TerminalIo } from "../../../shared/terminal/terminal-io.ts";
import { parseAddress } from "../../protocols/ovsdb/mod.ts";
import { controlPlaces, openControl } from "../../protocols/switch-control/mod.ts";
import { type KnownNodes, knownNodesIn, readConfig, type TraceConfig } from "./agent-files.ts";
import type { Protocol } from "./packet.ts";
import { type End, type Journey, packetOf } from "./packet.ts";
import { agentsPolicies, withPolicyNames } from "./policy-names.ts";
import { type Report, reportObject, reportText } from "./report.ts";
import { findPod, readPorts, type SwitchPort } from "./switch-ports.ts";
import { trace } from "./tracer.ts";
import { nextCommand, stepsOf, type Verdict, verdictOf } from "./verdict.ts";

const action = "trace the packet";

const portRule = {
  wrong: (text: string) =>
    /^\d{1,5}$/.test(text) && Number(text) >= 1 && Number(text) <= 65_535 ? undefined : `"${text}"`,
  wanted: "a port from 1 to 65535",
};
const addressRule = {
  wrong: (text: string) => (parseIp(text) === undefined ? `"${text}"` : undefined),
  wanted: "an address",
};
const macRule = {
  wrong: (text: string) => (/^([0-9a-f]{2}:){5}[0-9a-f]{2}$/i.test(text) ? undefined : `"${text}"`),
  wanted: "a MAC address such as 0a:00:0a:0a:01:02",
};
const keyRule = {
  wrong: (text: string) => (/^\d{1,8}$/.test(text) && Number(text) < 2 ** 24 ? undefined : `"${text}"`),
  wanted: "a number below 2^24",
};

const options = {
  tcp: { value: "PORT", rule: portRule, help: "a TCP connection to this port" },
  udp: { value: "PORT", rule: portRule, help: "UDP to this port" },
  icmp: { help: "an echo request, which is the default" },
  reply: { help: "what the second pod answers, in a connection that stands" },
  "from-tunnel": {
    value: "NODE",
    rule: addressRule,
    help: "how a packet goes on that came through the tunnel from the node of this address; its sender is told by address",
  },
  "tunnel-key": { value: "VNID", rule: keyRule, help: "with which key it came through the tunnel (default 0)" },
  "as-ip": { value: "ADDRESS", rule: addressRule, help: "as if the sender took this address for its own" },
  "as-mac": { value: "MAC", rule: macRule, help: "as if the sender took this MAC address for its own" },
  json: { help: "the steps and the verdict as one JSON object" },
  raw: { help: "what Open vSwitch itself says of it" },
  control: {
    value: "PATH",
    of: "file",
    help: "where ovs-vswitchd takes commands (default ovs-vswitchd.PID.ctl beside its database)",
  },
  config: { value: "FILE", of: "file", help: `the agent's configuration (default ${paths.agentConfig})` },
} as const satisfies Readonly<Record<string, OptionSpec>>;

export const traceCommand = defineCommand({
  action,
  about: `Shows the way that a packet from one pod to another would take through the tables of Open vSwitch: which flow
it would meet in each, what that decides, and where it ends. No packet is sent. For "dataPath: ovs".`,
  operands: [
    { name: "FROM", of: { ask: "pods" }, help: "a pod of this node: namespace/name, its name alone, or its address" },
    { name: "TO", help: "a pod of this node, or any address: another node's pod, a service, the world outside" },
  ],
  options,
  exits: {
    0: "the packet gets as far as this node can bring it",
    1: "it is dropped, or could not be traced",
    3: "this node has no such pod",
    4: "several pods have the name",
  },
  run: async ({ options: given, operands: [from = "", to = ""] }, io) => {
    const config = await readConfig(given.config ?? paths.agentConfig);
    const ports = await readPorts(config.ovs.database, config.bridge);
    const client = endOf(ports, from, io);
    const server = typeof client === "number" ? client : endOf(ports, to, io);
    if (typeof client === "number") return client;
    if (typeof server === "number") return server;
    const journey: Journey = {
      client,
      server,
      protocol: protocolOf(given.tcp, given.udp, given.icmp),
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
    if (!given.raw) io.stdout(given.json ? formatJson(reportObject(report)) : printableLines(reportText(report)));
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

function protocolOf(tcp: string | undefined, udp: string | undefined, icmp: boolean): Protocol {
  const several = [tcp !== undefined, udp !== undefined, icmp].filter(Boolean).length > 1;
  if (several) {
    const is = "there is more than one of --tcp, --udp and --icmp";
    throw new CniError(CniCode.invalidConfig, `Cannot ${action}: ${is}`);
  }
  if (tcp !== undefined) return { t: "tcp", port: Number(tcp) };
  return udp === undefined ? { t: "icmp" } : { t: "udp", port: Number(udp) };
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
