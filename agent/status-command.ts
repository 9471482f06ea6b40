import { parseArgs } from "node:util";
import { type Client, credentials, makeGenericClientConstructor, type ServiceError, status } from "@grpc/grpc-js";
import type { LeaseState } from "../ipam/mod.ts";
import { limits } from "../shared/limits.ts";
import { paths } from "../shared/paths.ts";
import { ipamService } from "../shared/proto/daemon-services.ts";
import type { LeaseMessage } from "../shared/proto/ipam-messages.ts";
import type { NodeInterface, StatusResponse } from "../shared/proto/pipette-messages.ts";
import { type Method, nodeService } from "../shared/proto/services.ts";
import type { CommandIo } from "./agent-command.ts";

const usage = `Usage: pipette status [--json] [--socket PATH]

What the agent of this node says: networks, leases, interfaces, problems.

  --socket PATH   where it listens (default ${paths.agentSocket})
  --json          everything, as one JSON object
  --help          this text
`;

const leaseStates = ["allocated", "releasing", "cooling"] as const satisfies readonly LeaseState[];

interface NodeReport {
  readonly status: StatusResponse;
  readonly leases: readonly LeaseMessage[];
  readonly interfaces: readonly NodeInterface[];
}

/**
 * `pipette status`.
 * @returns exit status: 0 no problem, 1 problems or no agent, 2 wrong arguments
 */
export async function runStatusCommand(args: readonly string[], io: CommandIo): Promise<number> {
  const options = readOptions(args);
  if (typeof options === "string") {
    io.stderr(`Cannot show the status: ${options}\n\n${usage}`);
    return 2;
  }
  if (options.help) {
    io.stdout(usage);
    return 0;
  }
  try {
    const report = await ask(options.socket);
    io.stdout(options.json ? `${JSON.stringify(report, null, 2)}\n` : asText(report, Date.now()));
    return report.status.problems.length === 0 ? 0 : 1;
  } catch (caught) {
    io.stderr(`${explain(caught, options.socket)}\n`);
    return 1;
  }
}

function readOptions(args: readonly string[]): { socket: string; json: boolean; help: boolean } | string {
  const options = {
    socket: { type: "string", default: paths.agentSocket },
    json: { type: "boolean", default: false },
    help: { type: "boolean", short: "h", default: false },
  } as const;
  try {
    const { values } = parseArgs({ args: [...args], options, allowPositionals: false });
    return { socket: values.socket, json: values.json, help: values.help };
  } catch (caught) {
    return caught instanceof Error ? caught.message : String(caught);
  }
}

async function ask(socket: string): Promise<NodeReport> {
  const client = new (makeGenericClientConstructor({}, "Node"))(`unix:${socket}`, credentials.createInsecure());
  try {
    const [answer] = await collect(client, nodeService.status, { network: "" });
    if (answer === undefined) throw new Error("the agent's answer is empty");
    const [interfaces] = await collect(client, nodeService.listInterfaces, {});
    const leases = await collect(client, ipamService.list, { network: "" });
    return { status: answer, leases, interfaces: interfaces?.interfaces ?? [] };
  } finally {
    client.close();
  }
}

/** Every response of one call: on the wire a unary method is a streaming one that answers once. */
function collect<Req, Res>(client: Client, method: Method<Req, Res>, request: Req): Promise<Res[]> {
  const encode = (value: Req): Buffer => Buffer.from(method.request.encode(value));
  const decode = (bytes: Buffer): Res => method.response.decode(bytes);
  const deadline = { deadline: Date.now() + limits.statusTimeoutMs };
  return new Promise((resolve, reject) => {
    const responses: Res[] = [];
    const call = client.makeServerStreamRequest(method.path, encode, decode, request, deadline);
    call.on("data", (response: Res) => responses.push(response));
    call.on("end", () => resolve(responses));
    call.on("error", reject);
  });
}

function explain(caught: unknown, socket: string): string {
  const { code, details } = caught as Partial<ServiceError>;
  const text = details ?? (caught instanceof Error ? caught.message : String(caught));
  if (code === status.UNAVAILABLE)
    return `Cannot reach the agent: nobody serves "${socket}" (${text}), wanted a running "pipette agent"`;
  if (code === status.DEADLINE_EXCEEDED)
    return `Cannot reach the agent: "${socket}" gives no answer within ${limits.statusTimeoutMs} ms, wanted one`;
  if (code === status.UNIMPLEMENTED)
    return `Cannot show the status: "${socket}" is served by an agent of another make, wanted "pipette agent"`;
  return `Cannot show the status: ${text}, wanted an answer of the agent at "${socket}"`;
}

function asText({ status: answer, leases, interfaces }: NodeReport, nowMs: number): string {
  const out = [
    `pipette agent ${answer.version}, process ${answer.pid}, up ${duration(nowMs - answer.startedAtMs)}, data path ${answer.dataPath}`,
    `calls in flight ${answer.callsInFlight}, attachments being taken away ${answer.departing}`,
    "",
    ...table(networkRows(answer, leases, interfaces)),
    "",
    ...table(interfaceRows(leases, interfaces)),
    "",
    ...(answer.problems.length === 0
      ? ["no problems"]
      : answer.problems.map((problem) => `problem ${problem.code}: ${problem.message}`)),
  ];
  return `${out.join("\n")}\n`;
}

function networkRows(
  answer: StatusResponse,
  leases: readonly LeaseMessage[],
  interfaces: readonly NodeInterface[],
): string[][] {
  // Leases of networks that the agent does not serve are in its store all the same.
  const names = [...new Set([...answer.networks, ...leases.map((lease) => lease.network)])];
  const count = (name: string, state: string): string =>
    String(leases.filter((lease) => lease.network === name && lease.state === state).length);
  return [
    ["NETWORK", ...leaseStates.map((state) => state.toUpperCase()), "INTERFACES"],
    ...names.map((name) => [
      answer.networks.includes(name) ? name : `${name} (not served)`,
      ...leaseStates.map((state) => count(name, state)),
      String(interfaces.filter((entry) => entry.network === name).length),
    ]),
  ];
}

function interfaceRows(leases: readonly LeaseMessage[], interfaces: readonly NodeInterface[]): string[][] {
  return [
    ["INTERFACE", "NETWORK", "CONTAINER", "IFNAME", "ADDRESSES", "POD"],
    ...interfaces.map((entry) => {
      const own = leases.filter(
        (lease) =>
          lease.state === "allocated" &&
          lease.network === entry.network &&
          lease.containerId === entry.containerId &&
          lease.ifname === entry.ifname,
      );
      const [first] = own;
      const pod = first === undefined || first.podName === "" ? "" : `${first.podNamespace}/${first.podName}`;
      const addresses =
        own.length > 0 ? own.map((lease) => lease.address).join(",") : entry.ownLease ? "-" : "(delegated)";
      return [entry.hostIfname, entry.network, entry.containerId.slice(0, 13), entry.ifname, addresses, pod];
    }),
  ];
}

function table(rows: readonly string[][]): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd(),
  );
}

function duration(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min`;
  return `${Math.floor(seconds / 3600)} h`;
}
