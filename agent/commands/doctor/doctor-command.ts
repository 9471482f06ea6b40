import { statSync } from "node:fs";
import { openSource, type Way, wayOptions } from "../../../operator/ways.ts";
import type { FindingsDocument } from "../../../shared/documents/mod.ts";
import { CniCode, CniError } from "../../../shared/errors.ts";
import { limits } from "../../../shared/limits.ts";
import { paths } from "../../../shared/os/paths.ts";
import { defineCommand } from "../../../shared/terminal/command.ts";
import { exitStatus } from "../../../shared/terminal/exit-status.ts";
import { counted, formatJson, printable, printableLines } from "../../../shared/terminal/printable.ts";
import type { TerminalIo } from "../../../shared/terminal/terminal-io.ts";
import type { AgentConfig } from "../../config/agent-config.ts";
import { readConfig } from "../../config/read-config.ts";
import { type Diagnosis, examine, findingView } from "./examine.ts";
import { type Finding, type Severity, severities } from "./finding.ts";
import { repair as carryOut, type Repaired } from "./repair.ts";
import { parseRuntimeList, type RuntimeList } from "./runtime-list.ts";

const action = "look at the node";
/** The same status as for wrong arguments, since nothing is known about the node. */
const cannotLook = exitStatus.wrongArguments;

export const doctorCommand = defineCommand({
  action,
  about: `Compares what this node's sources say of its pods: leases, interfaces and the addresses on them, namespaces, the
agent, with Open vSwitch its ports and flows, with --runtime the container runtime. Looks at what a pod's network
needs besides: configuration, bridge or switch, forwarding, MTU, database, rights, registry. Of each disagreement it
says which source is believed, why, and what to do. Changes nothing without --repair. Pods may come and go meanwhile:
a disagreement is told only when it stays.`,
  options: {
    runtime: {
      value: "FILE",
      of: "file",
      help: 'what the runtime has, from "crictl pods -o json", or attachments as for "pipette ipam gc" ("-": standard input)',
    },
    repair: { help: "does what can be done, pods' attachments by way of the agent; then looks again" },
    once: { help: "looks only once, so that calls in flight can show as disagreements: for scripts that look again" },
    json: { help: "one JSON object, for programs" },
    config: { value: "FILE", of: "file", help: `the agent's configuration (default ${paths.agentConfig})` },
    node: { value: "NAME", help: "what this node's agent finds, by the API server or from a bundle" },
    ...wayOptions,
  },
  exits: {
    0: "all agree, apart from notes",
    1: "something disagrees, or is in the way of pods' network",
    2: "cannot look, or wrong arguments",
  },
  run: async ({ options }, io) => {
    const { node, socket, kubeconfig, context, bundle } = options;
    if ([node, socket, kubeconfig, context, bundle].some((one) => one !== undefined))
      return await findingsElsewhere(options, io);
    const config = await readConfig(options.config ?? paths.agentConfig, io);
    if (config === undefined) return cannotLook;
    try {
      const runtime = options.runtime === undefined ? {} : { runtime: await runtimeList(options.runtime, io) };
      return await examineAndTell(config, runtime, options, io);
    } catch (caught) {
      const { message, details } = CniError.from(caught, action);
      io.stderr(`${printableLines(message)}\n${details === "" ? "" : `${printableLines(details)}\n`}`);
      return cannotLook;
    }
  },
});

/** What an agent finds on its own node. */
async function findingsElsewhere(
  given: Way &
    Readonly<Record<"repair" | "once" | "json", boolean>> &
    Readonly<Record<"node" | "runtime" | "config", string | undefined>>,
  io: TerminalIo,
): Promise<number> {
  try {
    if (given.repair || given.once || given.runtime !== undefined || given.config !== undefined)
      throw new CniError(
        CniCode.invalidConfig,
        `Cannot ${action}: "--repair", "--once", "--runtime" and "--config" are for the node itself, wanted none of them with a way to an agent`,
      );
    const { documentsOfNode, theNode } = await import("../../../operator/mod.ts");
    await using source = await openSource(given, given.socket === undefined, io);
    const { signal } = new AbortController();
    const node = await theNode(source, given.node, signal);
    const { findings: document } = await documentsOfNode(source, node, ["findings"], signal);
    const { kind: _kind, version: _version, node: _node, omitted: _omitted, ...diagnosis } = document;
    io.stdout(given.json ? formatJson({ ...diagnosis, repaired: [] }) : reportText(withRepairs(diagnosis)));
    return diagnosis.findings.every(({ severity }) => severity === "note") ? exitStatus.done : exitStatus.failed;
  } catch (caught) {
    io.stderr(`${printableLines(CniError.from(caught, action).message)}\n`);
    return cannotLook;
  }
}

/** Only the node itself knows the repair; that there is one is told. */
const withRepairs = ({
  findings,
  ...counted
}: Pick<FindingsDocument, "findings" | "leases" | "interfaces">): Diagnosis => ({
  ...counted,
  findings: findings.map(({ repairable, ...finding }) => ({
    ...finding,
    evidence: "",
    ...(repairable ? { repair: { t: "node" } } : {}),
  })),
});

async function examineAndTell(
  config: AgentConfig,
  runtime: { readonly runtime?: RuntimeList },
  options: { readonly repair: boolean; readonly once: boolean; readonly json: boolean },
  io: TerminalIo,
): Promise<number> {
  const how = { ...runtime, once: options.once };
  let diagnosis = await examine(config, how);
  const repaired = options.repair ? await carryOut(config, diagnosis.findings) : undefined;
  if (repaired !== undefined && repaired.length > 0) diagnosis = await examine(config, how);
  io.stdout(options.json ? reportJson(diagnosis, repaired) : reportText(diagnosis, repaired));
  return diagnosis.findings.every(({ severity }) => severity === "note") ? exitStatus.done : exitStatus.failed;
}

async function runtimeList(file: string, io: TerminalIo): Promise<RuntimeList> {
  // Taken before it is read: pods that come meanwhile are younger than the list.
  const takenAtMs = file === "-" ? Date.now() : statSync(file).mtimeMs;
  const bytes =
    file === "-"
      ? await io.stdin()
      : await Bun.file(file)
          .slice(0, limits.messageBytes + 1)
          .bytes();
  if (bytes.length > limits.messageBytes)
    throw new Error(`Cannot read the list of the runtime: it is longer than ${limits.messageBytes} bytes`);
  return parseRuntimeList(new TextDecoder().decode(bytes), takenAtMs);
}

/** @param repaired absent where nobody asked for a repair */
export function reportText({ findings, leases, interfaces }: Diagnosis, repaired?: readonly Repaired[]): string {
  const done = (repaired ?? []).map(({ what, done: word, error }) =>
    error === undefined ? `repaired: ${what}\n  ${word}` : `not repaired: ${what}\n  ${error}`,
  );
  const told = findings.map((finding) => findingText(finding, repaired !== undefined));
  const count = (wanted: Severity): string =>
    counted(findings.filter(({ severity }) => severity === wanted).length, wanted);
  const sum = findings.length === 0 ? "all agree" : severities.map(count).join(", ");
  const blocks = [...done, ...told].map((text) => `${text.split("\n").map(printable).join("\n")}\n`);
  return `${[...blocks, `${counted(leases, "lease")}, ${counted(interfaces, "interface")} of pods: ${sum}\n`].join("\n")}`;
}

function findingText({ severity, what, trusts, why, todo, repair }: Finding, wasRepair: boolean): string {
  // Escaped, since a line end inside would begin a new line.
  const line = (text: string): string => printable(text);
  return [
    `${severity}: ${line(what)}`,
    ...(trusts === undefined ? [] : [`  believed: ${line(trusts)}`]),
    `  why:  ${line(why)}`,
    `  do:   ${line(todo)}${repair === undefined || wasRepair ? "" : " (--repair does it)"}`,
  ].join("\n");
}

export function reportJson(diagnosis: Diagnosis, repaired: readonly Repaired[] = []): string {
  const { findings, leases, interfaces } = diagnosis;
  return formatJson({ leases, interfaces, findings: findings.map(findingView), repaired });
}
