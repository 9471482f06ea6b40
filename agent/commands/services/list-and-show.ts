import { RpcChannel } from "../../../shared/channel/rpc-channel.ts";
import { limits } from "../../../shared/limits.ts";
import { paths } from "../../../shared/os/paths.ts";
import {
  type BalancedEndpoint,
  type BalancedService,
  balancingService,
} from "../../../shared/proto/daemon-services.ts";
import { reasonOf } from "../../../shared/reason.ts";
import { defineCommand } from "../../../shared/terminal/command.ts";
import { exitStatus } from "../../../shared/terminal/exit-status.ts";
import { formatJson, printable, printableLines } from "../../../shared/terminal/printable.ts";
import { formatTable } from "../../../shared/terminal/table.ts";
import type { TerminalIo } from "../../../shared/terminal/terminal-io.ts";

const options = {
  socket: { value: "PATH", of: "file", help: `where the agent listens (default ${paths.agentSocket})` },
  json: { help: "one JSON object, for programs" },
} as const;

export const listCommand = defineCommand({
  action: "list the services",
  about: `Shows each port of each service that this node balances: its addresses, and how many endpoints answer at the cluster
IP, how many of these are on this node, and how many answer at its other addresses to those outside of the cluster.`,
  options,
  exits: { 0: "all are in force", 1: "one is refused, or the agent cannot be asked" },
  run: async ({ options: { socket = paths.agentSocket, json } }, io) => {
    const services = await ask(socket, "list the services", io);
    if (services === undefined) return exitStatus.failed;
    if (json) io.stdout(formatJson({ services }));
    else io.stdout(services.length === 0 ? "No services\n" : listText(services));
    return services.every(({ refused }) => refused === "") ? exitStatus.done : exitStatus.failed;
  },
});

export const showCommand = defineCommand({
  action: "show the service",
  about: "Shows the ports of one service: where it is reached, by whom, and who answers.",
  operands: [{ name: "NAME", help: "namespace/name of the service, or namespace/name:port of one port" }],
  options,
  exits: { 1: "the agent cannot be asked", 3: "there is no such service" },
  run: async ({ options: { socket = paths.agentSocket, json }, operands: [name = ""] }, io) => {
    const all = await ask(socket, "show the service", io);
    if (all === undefined) return exitStatus.failed;
    const services = all.filter(({ key }) => isNamed(key, name));
    if (services.length === 0) {
      const is = `this node balances no service "${name}", wanted one of "pipette services list"`;
      io.stderr(`${printableLines(`Cannot show the service: ${is}`)}\n`);
      return exitStatus.notThere;
    }
    io.stdout(json ? formatJson({ services }) : services.map(showText).join("\n"));
    return exitStatus.done;
  },
});

/** `x/web` is all of `x/web:http`, `x/web:dns` and their IPv6 parts. */
const isNamed = (key: string, name: string): boolean =>
  key === name || key.startsWith(`${name}:`) || key === `${name}/6`;

async function ask(socket: string, action: string, io: TerminalIo): Promise<BalancedService[] | undefined> {
  using agent = new RpcChannel(socket);
  try {
    const found = await Array.fromAsync(agent.stream(balancingService.list, {}, { timeoutMs: limits.statusTimeoutMs }));
    return found.sort((a, b) => (a.key < b.key ? -1 : 1));
  } catch (caught) {
    io.stderr(
      `${printableLines(`Cannot ${action}: ${reasonOf(caught)}, wanted an answer of the agent at "${socket}"`)}\n`,
    );
    return undefined;
  }
}

const countOf = (endpoints: readonly BalancedEndpoint[], is: (one: BalancedEndpoint) => boolean): string =>
  String(endpoints.filter(is).length);

/** Where others reach it, too. */
const outsideOf = ({ nodePort, externalIps, ingressIps }: BalancedService): string =>
  [...(nodePort === 0 ? [] : [`node:${nodePort}`]), ...externalIps, ...ingressIps].join(",") || "-";

function listText(services: readonly BalancedService[]): string {
  const table = formatTable([
    ["SERVICE", "CLUSTER-IP", "PORT", "OUTSIDE", "ENDPOINTS", "HERE", "FROM OUTSIDE"],
    ...services.map((service) => [
      service.key,
      service.clusterIp,
      `${service.port}/${service.protocol}`,
      outsideOf(service),
      countOf(service.endpoints, ({ internal }) => internal),
      countOf(service.endpoints, ({ internal, local }) => internal && local),
      outsideOf(service) === "-" ? "-" : countOf(service.endpoints, ({ external }) => external),
    ]),
  ]);
  const refused = services.filter(({ refused: why }) => why !== "");
  return `${table}${refused.map(({ key, refused: why }) => `${printable(`${key} is refused: ${why}`)}\n`).join("")}`;
}

function showText(service: BalancedService): string {
  const { key, clusterIp, protocol, port, restricted, sourceRanges, affinitySeconds, endpoints } = service;
  const { keepsClient, healthCheckNodePort, ingressIps, refused } = service;
  const ranges = sourceRanges.length === 0 ? "nobody" : sourceRanges.join(", ");
  const lines = [
    `${key}: ${clusterIp} port ${port}, ${protocol}`,
    ...(outsideOf(service) === "-"
      ? []
      : [`outside: ${outsideOf(service)}${keepsClient ? ", clients keep their addresses" : ""}`]),
    ...(restricted && ingressIps.length > 0 ? [`to ${ingressIps.join(", ")} only from: ${ranges}`] : []),
    ...(affinitySeconds === 0 ? [] : [`clients keep their endpoint for ${affinitySeconds} s`]),
    ...(healthCheckNodePort === 0 ? [] : [`load balancers ask for its health at port ${healthCheckNodePort}`]),
    ...(refused === "" ? [] : [`refused: ${refused}`]),
    ...(endpoints.length === 0 ? ["nobody answers"] : []),
  ].map((line) => `${printable(line)}\n`);
  const rows = endpoints.map(({ address, local, internal, external, cluster }) => [
    ...[address, local ? "this node" : "elsewhere"],
    ...[internal, external, cluster].map((answers) => (answers ? "yes" : "no")),
  ]);
  const head = ["ENDPOINT", "WHERE", "AT THE CLUSTER IP", "TO THOSE OUTSIDE", "TO PODS AND NODE ELSEWHERE"];
  return `${lines.join("")}${rows.length === 0 ? "" : formatTable([head, ...rows])}`;
}
