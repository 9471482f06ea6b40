import { link, mkdir, open, readFile, unlink } from "node:fs/promises";
import { networkInterfaces } from "node:os";
import { dirname } from "node:path";
import { CniCode, CniError } from "../../../shared/errors.ts";
import { formatIp } from "../../../shared/net/ip.ts";
import { isWindows } from "../../../shared/os/platform.ts";
import type { AgentConfig } from "../../config/agent-config.ts";
import { parseAgentConfig } from "../../config/parse-agent-config.ts";
import { openFiles } from "../../config/read-config.ts";
import { codeOf, failed, isMissing, nameBeside, syncDirectory } from "./files.ts";
import type { Step } from "./plan.ts";

/** The values of a node's first `agent.yaml`; all others have defaults. */
export interface ConfigValues {
  readonly network: string;
  /** Blocks such as `10.244.1.0/24`, one or two. */
  readonly subnets: readonly string[];
  readonly bridge: string;
  /** Windows: the address of the adapter that the pods' network goes out by. */
  readonly nodeAddress?: string | undefined;
  readonly dataDir?: string | undefined;
}

/** The file as it is, or as it is to be written. */
export interface PlannedConfig {
  readonly config: AgentConfig;
  readonly steps: readonly Step[];
  /** Whether it existed before, so that the values are not used. */
  readonly kept: boolean;
}

/**
 * Reads `path`; if it does not exist, plans a file with `values`. An existing file is never overwritten.
 * @throws {CniError} code 7 where the file, or what would be written, is wrong; code 5 where it cannot be read
 */
export async function planConfig(path: string, values: ConfigValues): Promise<PlannedConfig> {
  const present = await textOf(path);
  const text = present ?? configText(values);
  if (present === undefined && values.subnets.length === 0)
    throw new CniError(
      CniCode.invalidConfig,
      `Cannot install: "${path}" is not there and nothing says which addresses this node has for its pods, wanted --subnet, or that file`,
    );
  if (present === undefined && isWindows && values.nodeAddress === undefined)
    throw new CniError(
      CniCode.invalidConfig,
      `Cannot install: "${path}" is not there and nothing says which address pods go out by, wanted --node-address, or that file; of this machine: ${addressesToGive()}`,
    );
  const config = parsed(text, present === undefined ? `${path}, as the options have it` : path);
  if (present !== undefined) {
    refuseOpen(path, config);
    return { config, kept: true, steps: [{ action: "keep", target: path, detail: "in order; never written over" }] };
  }
  const create: Step = { action: "create", target: path, detail: "configuration", run: () => writeNew(path, text) };
  return { config, kept: false, steps: [create] };
}

/** The configuration at `path`; `undefined` where there is none. @throws as `planConfig` */
export async function readConfig(path: string): Promise<AgentConfig | undefined> {
  const text = await textOf(path);
  return text === undefined ? undefined : parsed(text, path);
}

/** As short as possible, so that defaults of later releases apply. Strings are written as JSON, which is valid YAML. */
export function configText({ network, subnets, bridge, nodeAddress, dataDir }: ConfigValues): string {
  const text = (value: string): string => JSON.stringify(value);
  return [
    '# Written by "pipette install", which never writes it again. conf/agent.yaml explains every key.',
    ...(dataDir === undefined ? [] : [`dataDir: ${text(dataDir)}`]),
    "networks:",
    `  - name: ${text(network)}`,
    `    subnets: [${subnets.map(text).join(", ")}]`,
    `    bridge: ${text(bridge)}`,
    ...(nodeAddress === undefined ? [] : [`    hns: { nodeAddress: ${text(nodeAddress)} }`]),
    "",
  ].join("\n");
}

function parsed(text: string, path: string): AgentConfig {
  const result = parseAgentConfig(text, path);
  if (result.t === "ok") return result.config;
  throw new CniError(CniCode.invalidConfig, `Cannot install: "${path}" has faults`, {
    details: result.problems.join("\n"),
  });
}

/** Checked before anything is changed, because the agent would not start. */
function refuseOpen(path: string, config: AgentConfig): void {
  const [first, ...others] = openFiles(path, config);
  if (first === undefined) return;
  throw new CniError(CniCode.invalidConfig, `Cannot install: ${first}`, { details: others.join("\n") });
}

async function textOf(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (caught) {
    if (isMissing(caught)) return undefined;
    throw failed("read", path, caught);
  }
}

/** A hard link fails if the file has been created meanwhile; a rename would replace it. */
async function writeNew(path: string, text: string): Promise<string | undefined> {
  const temporary = nameBeside(path);
  try {
    await mkdir(dirname(path), { recursive: true, mode: isWindows ? 0o777 : 0o755 });
    {
      await using file = await open(temporary, "wx", 0o600);
      await file.writeFile(text);
      await file.sync();
    }
    await link(temporary, path);
    await syncDirectory(dirname(path));
    return undefined;
  } catch (caught) {
    if (codeOf(caught) === "EEXIST") return "somebody has written it meanwhile; left as it is";
    throw failed("write", path, caught);
  } finally {
    await unlink(temporary).catch(() => undefined);
  }
}

/** A sentence for each network of HNS whose node address no adapter of this machine has: its agent would wait for it. */
export function addressWarnings({ networks }: AgentConfig): readonly string[] {
  const held = ownAddresses();
  return networks.flatMap(({ name, hns }) => {
    const wanted = hns === undefined ? undefined : formatIp(hns.nodeAddress);
    if (wanted === undefined || held.some(({ ip }) => ip === wanted)) return [];
    return [
      `no adapter of this machine has ${wanted}, which network "${name}" goes out by (--node-address): ${inWords(held)}`,
    ];
  });
}

/** What an operator can choose from. */
export const addressesToGive = (): string => inWords(ownAddresses());

const inWords = (held: readonly { readonly ip: string; readonly on: string }[]): string =>
  held.length === 0 ? "it has none" : `it has ${held.map(({ ip, on }) => `${ip} on "${on}"`).join(", ")}`;

const ownAddresses = (): readonly { readonly ip: string; readonly on: string }[] =>
  Object.entries(networkInterfaces()).flatMap(([on, entries = []]) =>
    entries.filter(({ family, internal }) => family === "IPv4" && !internal).map(({ address: ip }) => ({ ip, on })),
  );
