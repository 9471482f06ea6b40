import { RpcChannel } from "../../../shared/channel/rpc-channel.ts";
import { limits } from "../../../shared/limits.ts";
import { formatIp, type Ip, parseIp } from "../../../shared/net/ip.ts";
import { paths } from "../../../shared/os/paths.ts";
import { balancingService, type TraceServiceResponse } from "../../../shared/proto/daemon-services.ts";
import { reasonOf } from "../../../shared/reason.ts";
import { defineCommand } from "../../../shared/terminal/command.ts";
import { exitStatus } from "../../../shared/terminal/exit-status.ts";
import { formatJson, printable, printableLines } from "../../../shared/terminal/printable.ts";
import { formatTable } from "../../../shared/terminal/table.ts";
import { protocols } from "../../datapath/services.ts";

interface Target {
  readonly ip: Ip;
  readonly port: number;
}

export const traceCommand = defineCommand({
  action: "trace the service",
  about: `Shows to which endpoints the first packet of a connection to this address and port would go, and why: by what the
agent wants, not by flows or rules. "pipette doctor" says where these differ, and "pipette trace" what flows of Open vSwitch do.`,
  operands: [
    {
      name: "ADDRESS:PORT",
      help: "a cluster IP, external IP, load balancer's or node's address: 10.96.0.10:53, [fd00:96::a]:53",
    },
  ],
  options: {
    from: {
      value: "SENDER",
      help: '"pod" (the default), "host", "outside", a pod of this node as namespace/name, or an address of any of these',
    },
    protocol: { value: "PROTOCOL", of: protocols, help: "tcp unless it is another" },
    socket: { value: "PATH", of: "file", help: `where the agent listens (default ${paths.agentSocket})` },
    json: { help: "one JSON object, for programs" },
  },
  exits: {
    0: "it goes to an endpoint",
    1: "it is refused or dropped, or the agent cannot be asked",
    3: "no service has it",
  },
  run: async ({ options: { from = "pod", protocol = "tcp", socket = paths.agentSocket, json }, operands }, io) => {
    const [written = ""] = operands;
    const target = readTarget(written);
    if (target === undefined) {
      const is = `"${written}" is no address with a port, wanted such as "10.96.0.10:53" or "[fd00:96::a]:53"`;
      io.stderr(`${printableLines(`Cannot trace the service: ${is}`)}\n`);
      return exitStatus.wrongArguments;
    }
    using agent = new RpcChannel(socket);
    try {
      const request = { address: formatIp(target.ip), port: target.port, protocol, sender: from };
      const traced = await agent.unary(balancingService.trace, request, { timeoutMs: limits.statusTimeoutMs });
      io.stdout(json ? formatJson({ trace: traced }) : traceText(traced));
      return exitOf(traced);
    } catch (caught) {
      const is = `${reasonOf(caught)}, wanted an answer of the agent at "${socket}"`;
      io.stderr(`${printableLines(`Cannot trace the service: ${is}`)}\n`);
      return exitStatus.failed;
    }
  },
});

function readTarget(text: string): Target | undefined {
  const [, six, four, digits = ""] = /^(?:\[([^\]]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(text) ?? [];
  const [ip, port] = [parseIp(six ?? four ?? ""), Number(digits)];
  return ip !== undefined && (ip.family === 6) === (six !== undefined) && port >= 1 && port <= 65_535
    ? { ip, port }
    : undefined;
}

function exitOf({ outcome, key }: TraceServiceResponse): number {
  if (outcome === "balanced") return exitStatus.done;
  return key === "" ? exitStatus.notThere : exitStatus.failed;
}

function traceText({ outcome, key, reasons, endpoints }: TraceServiceResponse): string {
  const head = key === "" ? outcome : `${key}: ${outcome}`;
  const lines = [head, ...reasons.map((reason) => `- ${reason}`)].map((line) => `${printable(line)}\n`).join("");
  if (endpoints.length === 0) return lines;
  const rows = endpoints.map(({ address, local, percent }) => [
    ...[address, local ? "this node" : "elsewhere", `${percent} %`],
  ]);
  return `${lines}${formatTable([["ENDPOINT", "WHERE", "SHARE"], ...rows])}`;
}
