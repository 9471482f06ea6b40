import { existsSync } from "node:fs";
import { createLogger } from "../../../shared/log.ts";
import { paths } from "../../../shared/os/paths.ts";
import type { OptionSpec } from "../../../shared/terminal/command.ts";
import { exitStatus } from "../../../shared/terminal/exit-status.ts";
import { printable } from "../../../shared/terminal/printable.ts";
import type { TerminalIo } from "../../../shared/terminal/terminal-io.ts";
import type { AgentConfig, NodesConfig } from "../../config/agent-config.ts";
import { readConfig } from "../../config/read-config.ts";
import { isNodeName, nodeNameRule } from "../../config/values.ts";
import type { Answer } from "../ask-agent.ts";
import type { NodeRegistry, TenantRegistry } from "../node-registry.ts";
import { openRegistry } from "../open-registry.ts";

export const configOption = {
  value: "FILE",
  of: "file",
  help: `the agent's configuration, which names the registry (default ${paths.agentConfig})`,
} as const satisfies OptionSpec;

export const jsonOption = { help: "one JSON object, for programs" } as const satisfies OptionSpec;

/** The registry that a command uses, and its configuration. */
export interface Opened {
  readonly registry: NodeRegistry;
  readonly config: AgentConfig;
  readonly nodes: NodesConfig;
}

/**
 * Opens the registry that the configuration names, and does `work` with it.
 * @param action for messages: `list the nodes`
 * @returns exit status
 */
export async function withRegistry(
  options: { readonly config: string | undefined },
  action: string,
  io: TerminalIo,
  work: (opened: Opened) => Promise<number>,
): Promise<number> {
  const file = options.config ?? paths.agentConfig;
  const config = await readConfig(file, io);
  if (config === undefined) return exitStatus.failed;
  const { nodes } = config;
  if (nodes === undefined)
    return fail(io, action, `"${file}" has no section "nodes"`, "the registry that this node belongs to");
  // Only errors are logged, since the command reports everything else.
  const logger = createLogger("error", (line) => io.stderr(`${printable(line)}\n`));
  await using registry = await openRegistry(nodes, logger);
  return await work({ registry, config, nodes });
}

/**
 * Asks the agent of this node, which may have credentials that this process lacks, as in a pod; if no agent answers,
 * asks the registry itself and says so.
 * @returns exit status
 */
export async function askRegistry<T>(
  options: { readonly config: string | undefined },
  action: string,
  io: TerminalIo,
  ask: { byAgent(socket: string): Promise<Answer<T>>; itself(registry: NodeRegistry): Promise<T> },
  tell: (is: T) => number,
): Promise<number> {
  const file = options.config ?? paths.agentConfig;
  // The file may exist only in the agent's pod.
  const isElsewhere = options.config === undefined && !existsSync(file);
  const config = isElsewhere ? undefined : await readConfig(file, io);
  if (!isElsewhere && config === undefined) return exitStatus.failed;
  if (isElsewhere || config?.nodes !== undefined) {
    const answer = await ask.byAgent(config?.socket ?? paths.agentSocket);
    if (answer.t === "agent") return tell(answer.is);
    io.stderr(`${printable(`asking the registry without the agent: ${answer.why}`)}\n`);
  }
  return withRegistry(options, action, io, async ({ registry }) => tell(await ask.itself(registry)));
}

/** Opens the registry that the configuration names, and does `work` with its projects. @returns exit status */
export function withTenants(
  options: { readonly config: string | undefined },
  action: string,
  io: TerminalIo,
  work: (tenants: TenantRegistry, registry: string) => Promise<number>,
): Promise<number> {
  return withRegistry(options, action, io, async ({ registry: { tenants, name } }) =>
    tenants === undefined ? keepsNone(io, action, name) : work(tenants, name),
  );
}

export const keepsNone = (io: TerminalIo, action: string, registry: string): number =>
  fail(io, action, `${registry} keeps no tenants`, "one in etcd, or a file");

/** @returns the exit status: failed, or the given one */
export function fail(
  io: TerminalIo,
  action: string,
  is: string,
  wanted: string | undefined,
  status: number = exitStatus.failed,
): number {
  io.stderr(`${printable(`Cannot ${action}: ${is}${wanted === undefined ? "" : `, wanted ${wanted}`}`)}\n`);
  return status;
}

/** @returns an exit status if the name is invalid */
export function refuseName(io: TerminalIo, action: string, name: string): number | undefined {
  if (isNodeName(name)) return undefined;
  return fail(io, action, `the node's name is "${name}"`, nodeNameRule, exitStatus.wrongArguments);
}
