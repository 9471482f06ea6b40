import { type Client, credentials, makeGenericClientConstructor, type ServiceError, status } from "@grpc/grpc-js";
import type { LeaseState } from "../ipam/mod.ts";
import { limits } from "../shared/limits.ts";
import { paths } from "../shared/paths.ts";
import { ipamService } from "../shared/proto/daemon-services.ts";
import type { LeaseMessage } from "../shared/proto/ipam-messages.ts";
import type { NodeInterface, StatusResponse } from "../shared/proto/pipette-messages.ts";
import { type Method, nodeService } from "../shared/proto/services.ts";
import { defineCommand } from "../shared/terminal/command.ts";
import { exitStatus } from "../shared/terminal/exit-status.ts";
import { formatJson } from "../shared/terminal/printable.ts";
import { formatAge, formatTable } from "../shared/terminal/table.ts";

const leaseStates = ["allocated", "releasing", "cooling"] as const satisfies readonly LeaseState[];

interface NodeReport {
  readonly status: StatusResponse;
  readonly leases: readonly LeaseMessage[];
  readonly interfaces: readonly NodeInterface[];
}

export const statusCommand = defineCommand({
  action: "show the status",
  about: "Shows what the agent of this node says: networks, leases, interfaces, problems.",
  options: {
    socket: { value: "PATH", of: "file", help: `where it listens (default ${paths.agentSocket})` },
    json: { help: "everything, as one JSON object" },
  },
  exits: { 0: "no problem", 1: "problems, or no agent" },
  run: async ({ options: { socket = paths.agentSocket, json } }, io) => {
    try {
      const report = await ask(socket);
      io.stdout(json ? formatJson(report) : asText(report, Date.now()));
      return report.status.problems.length === 0 ? exitStatus.done : exitStatus.failed;
    } catch (caught) {
      io.stderr(`${explain(caught, socket)}\n`);
      return exitStatus.failed;
    }
  },
});

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
    `pipette agent ${answer.version}, process ${answer.pid}, up ${formatAge(nowMs - answer.startedAtMs)}, data path ${answer.dataPath}`,
    `calls in flight ${answer.callsInFlight}, attachments being taken away ${answer.departing}`,
    "",
    formatTable(networkRows(answer, leases, interfaces)),
    formatTable(interfaceRows(leases, interfaces)),
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
