import { readFile } from "node:fs/promises";
import { CniCode, CniError } from "../../../shared/errors.ts";
import { formatIp, type Ip, parseIp } from "../../../shared/net/ip.ts";
import { readKnownNodes } from "../../cluster/registry-cache.ts";
import type { OvsConfig } from "../../config/agent-config.ts";
import { parseAgentConfig } from "../../config/parse-agent-config.ts";
import { unreadFile } from "../../config/read-config.ts";
import { insteadOfTracing } from "../../datapath/tracing.ts";

/** The part of the agent's configuration that says where its switch is. */
export interface TraceConfig {
  readonly bridge: string;
  readonly dataDir: string;
  /** Where the agent listens. */
  readonly socket: string;
  readonly ovs: OvsConfig;
}

const action = "trace the packet";

/** @throws {CniError} 7 for a file that is missing, invalid, or of another data path */
export async function readConfig(file: string): Promise<TraceConfig> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (caught) {
    throw new CniError(CniCode.invalidConfig, `Cannot ${action}: "${file}" cannot be read: ${unreadFile(caught)}`);
  }
  const parsed = parseAgentConfig(text, file);
  if (parsed.t === "wrong") throw wrong(parsed.problems.join("\n"), "a configuration in order");
  const { networks, ovs, dataPath, dataDir, socket } = parsed.config;
  const [network] = networks;
  if (network === undefined || ovs === undefined)
    throw wrong(
      `the data path of "${file}" is "${dataPath}"`,
      `"ovs", which has tables to trace a packet through; ${insteadOfTracing[dataPath]}`,
    );
  return { bridge: network.bridge, dataDir, socket, ovs };
}

const wrong = (is: string, wanted: string): CniError =>
  new CniError(CniCode.invalidConfig, `Cannot ${action}: ${is}, wanted ${wanted}`);

/** The cluster as cached by this node's agent, as far as a trace uses it. */
export interface KnownNodes {
  /** This node's own; none where it has joined no cluster. */
  readonly own: readonly Ip[];
  /** The node with this address; `undefined` where nobody knows. */
  nameOf(address: string): string | undefined;
}

/** From the agent's cache, which may be missing: names only make a trace easier to read. */
export function knownNodesIn(dataDir: string): KnownNodes {
  const { self, nodes } = readKnownNodes(dataDir);
  const names = new Map(nodes.flatMap(({ name, addresses }) => addresses.map((ip) => [formatIp(ip), name] as const)));
  return {
    own: self?.addresses ?? [],
    nameOf: (address) => {
      const ip = parseIp(address);
      return ip === undefined ? undefined : names.get(formatIp(ip));
    },
  };
}
