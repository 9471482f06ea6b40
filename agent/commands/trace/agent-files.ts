import { open, readFile } from "node:fs/promises";
import { join } from "node:path";
import { CniCode, CniError } from "../../../shared/errors.ts";
import { formatIp, type Ip, parseIp } from "../../../shared/net/ip.ts";
import { isObject } from "../../../shared/schema/json-fields.ts";
import { type NodeText, nodeOfText, nodeTextShape } from "../../cluster/node-text.ts";
import type { OvsConfig } from "../../config/agent-config.ts";
import { parseAgentConfig } from "../../config/parse-agent-config.ts";
import { unreadFile } from "../../config/unread-file.ts";
import { misfit } from "../../config/yaml-shape.ts";

/** What of the agent's configuration says where its switch is. */
export interface TraceConfig {
  readonly bridge: string;
  readonly dataDir: string;
  readonly ovs: OvsConfig;
}

const action = "trace the packet";

/** @throws {CniError} 7 for a file that is not there, not in order, or of another data path */
export async function readConfig(file: string): Promise<TraceConfig> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (caught) {
    throw new CniError(CniCode.invalidConfig, `Cannot ${action}: "${file}" cannot be read: ${unreadFile(caught)}`);
  }
  const parsed = parseAgentConfig(text, file);
  if (parsed.t === "wrong") throw wrong(parsed.problems.join("\n"), "a configuration in order");
  const { networks, ovs, dataPath, dataDir } = parsed.config;
  const [network] = networks;
  if (network === undefined || ovs === undefined)
    throw wrong(`the data path of "${file}" is "${dataPath}"`, '"ovs", which has tables to trace a packet through');
  return { bridge: network.bridge, dataDir, ovs };
}

const wrong = (is: string, wanted: string): CniError =>
  new CniError(CniCode.invalidConfig, `Cannot ${action}: ${is}, wanted ${wanted}`);

/** What the agent of this node last heard of the cluster, as far as a trace has use for it. */
export interface KnownNodes {
  /** This node's own; none where it has joined no cluster. */
  readonly own: readonly Ip[];
  /** The node with this address; `undefined` where nobody knows. */
  nameOf(address: string): string | undefined;
}

/** More is not written there. */
const maxBytes = 16 * 1024 * 1024;

/** From the agent's own file, which need not be there: names only make a trace easier to read. */
export async function readKnownNodes(dataDir: string): Promise<KnownNodes> {
  const { self, nodes } = await readContent(join(dataDir, "nodes.json"));
  const names = new Map(nodes.flatMap(({ name, addresses }) => addresses.map((ip) => [formatIp(ip), name] as const)));
  return {
    own: self?.addresses ?? [],
    nameOf: (address) => {
      const ip = parseIp(address);
      return ip === undefined ? undefined : names.get(formatIp(ip));
    },
  };
}

async function readContent(path: string) {
  const content = await readJson(path);
  const { self, nodes } = isObject(content) ? content : { self: undefined, nodes: undefined };
  return {
    self: nodeOf(self),
    nodes: Array.isArray(nodes) ? nodes.map(nodeOf).filter((node) => node !== undefined) : [],
  };
}

const nodeOf = (value: unknown) =>
  value === undefined || misfit(value, nodeTextShape, "ignored") !== undefined
    ? undefined
    : nodeOfText(value as NodeText);

async function readJson(path: string): Promise<unknown> {
  try {
    await using file = await open(path, "r");
    const { size } = await file.stat();
    return size > maxBytes ? undefined : JSON.parse(await file.readFile("utf8"));
  } catch {
    return undefined;
  }
}
