import type { CniVersion } from "../../shared/cni/versions.ts";
import { limits } from "../../shared/limits.ts";
import type { LogLevel } from "../../shared/log.ts";
import { type Cidr, formatCidr, overlap, parseCidr } from "../../shared/net/ip.ts";
import { paths } from "../../shared/os/paths.ts";
import { isWindows } from "../../shared/os/platform.ts";
import type { AgentConfig, DataPathName, NetworkConfig } from "./agent-config.ts";
import { agentShape } from "./agent-shape.ts";
import { hnsContradictions, missingNodeAddress, overlayContradictions, type RawHns, toHns } from "./hns-shape.ts";
import { nodesContradictions, type RawNodes, toNodes } from "./nodes-shape.ts";
import { ovsContradictions, type RawOvs, toOvs } from "./ovs-shape.ts";
import { readYaml } from "./read-yaml.ts";
import type { Shaped, ShapeProblem } from "./yaml-shape.ts";

/** The configuration, or every fault of it as `file:line:column: "path" is value, wanted …`. */
export type ParsedConfig =
  | { readonly t: "ok"; readonly config: AgentConfig }
  | { readonly t: "wrong"; readonly problems: readonly string[] };

/** What the shape guarantees: every key is absent or of its type. */
interface RawConfig {
  readonly socket?: string;
  readonly dataDir?: string;
  readonly logLevel?: LogLevel;
  readonly cni?: {
    readonly confDir?: string;
    readonly fileName?: string;
    readonly cniVersion?: CniVersion;
    readonly cniVersions?: readonly CniVersion[];
    readonly disableGC?: boolean;
    readonly plugins?: readonly Readonly<Record<string, unknown>>[];
  };
  readonly dataPath?: DataPathName;
  readonly networks: readonly RawNetwork[];
  readonly ovs?: RawOvs;
  readonly nodes?: RawNodes;
  readonly callTimeoutMs?: number;
  readonly drainTimeoutMs?: number;
  readonly janitorIntervalMs?: number;
  readonly cooldownMs?: number;
  readonly hnsTimeoutMs?: number;
}

interface RawNetwork {
  readonly name: string;
  readonly subnets?: readonly string[];
  readonly bridge: string;
  readonly mtu?: number;
  readonly hairpin?: boolean;
  readonly masquerade?: boolean;
  readonly exclude?: readonly string[];
  readonly sticky?: boolean;
  readonly hns?: RawHns;
}

/** Of the first network: with Open vSwitch there is no other. */
const bridgeOf = (raw: RawConfig): string => raw.networks[0]?.bridge ?? "";

const dataPathOf = (raw: RawConfig): DataPathName => raw.dataPath ?? (isWindows ? "hns" : "bridge");

/** The newest that containerd 1.6 and 1.7 take: they refuse results of 1.1.0. Newer runtimes choose from `cniVersions`. */
const defaultVersion: CniVersion = "1.0.0";

/** Reads the text of `agent.yaml`; `file` is for the messages only. Nothing else is touched. */
export function parseAgentConfig(text: string, file: string): ParsedConfig {
  const read = readYaml(text, file, agentShape, (shaped) => contradictions(shaped.value as RawConfig, shaped));
  return read.t === "ok" ? { t: "ok", config: withDefaults(read.value as RawConfig) } : read;
}

function withDefaults(raw: RawConfig): AgentConfig {
  const cniVersion = raw.cni?.cniVersion ?? defaultVersion;
  return {
    socket: raw.socket ?? paths.agentSocket,
    dataDir: raw.dataDir ?? paths.dataDir,
    logLevel: raw.logLevel ?? "info",
    cni: {
      confDir: raw.cni?.confDir ?? paths.cniConfDir,
      fileName: raw.cni?.fileName ?? "10-pipette.conflist",
      cniVersion,
      ...(raw.cni?.cniVersions === undefined ? {} : { cniVersions: raw.cni.cniVersions }),
      disableGC: raw.cni?.disableGC ?? false,
      ...(raw.cni?.plugins === undefined ? {} : { plugins: raw.cni.plugins }),
    },
    dataPath: dataPathOf(raw),
    networks: raw.networks.map((network) => toNetwork(network, raw.ovs !== undefined)),
    ...(raw.ovs === undefined && raw.dataPath !== "ovs" ? {} : { ovs: toOvs(raw.ovs ?? {}, bridgeOf(raw)) }),
    ...(raw.nodes === undefined ? {} : { nodes: toNodes(raw.nodes) }),
    callTimeoutMs: raw.callTimeoutMs ?? limits.addTimeoutMs,
    drainTimeoutMs: raw.drainTimeoutMs ?? 10_000,
    janitorIntervalMs: raw.janitorIntervalMs ?? 10_000,
    cooldownMs: raw.cooldownMs ?? limits.cooldownMs,
    hnsTimeoutMs: raw.hnsTimeoutMs ?? limits.hcnDeadlineMs,
  };
}

function toNetwork(raw: RawNetwork, hasOverlay: boolean): NetworkConfig {
  return {
    name: raw.name,
    subnets: blocksOf(raw),
    bridge: raw.bridge,
    ...(raw.mtu === undefined ? {} : { mtu: raw.mtu }),
    hairpin: raw.hairpin ?? false,
    masquerade: raw.masquerade ?? true,
    exclude: raw.exclude ?? [],
    sticky: raw.sticky ?? false,
    ...(raw.hns === undefined ? {} : { hns: toHns(raw.hns, hasOverlay) }),
  };
}

const blocksOf = (raw: RawNetwork): Cidr[] =>
  (raw.subnets ?? []).map((text) => parseCidr(text)).filter((cidr): cidr is Cidr => cidr !== undefined);

/** Faults that no single key shows. */
function contradictions(raw: RawConfig, shaped: Shaped): ShapeProblem[] {
  const problems: ShapeProblem[] = [];
  const say = (path: string, text: string): void => {
    problems.push({ offset: shaped.offsets.get(path) ?? 0, text: `"${path}" is ${text}` });
  };
  raw.networks.forEach((network, i) => {
    const at = `networks[${i}]`;
    const earlier = raw.networks.slice(0, i);
    if (earlier.some((other) => other.name === network.name))
      say(`${at}.name`, `"${network.name}" for the second time, wanted another name`);
    if (earlier.some((other) => other.bridge === network.bridge))
      say(`${at}.bridge`, `"${network.bridge}" for the second time, wanted a bridge for each network`);
    const blocks = blocksOf(network);
    const unknown = network.hns === undefined ? undefined : missingNodeAddress(network.hns);
    if (unknown !== undefined) say(`${at}.hns`, unknown);
    for (const [path, text] of blockFaults(network, blocks)) say(`${at}${path}`, text);
    // The registry gives a node the subnet of one network.
    if (network.subnets === undefined && (raw.nodes === undefined || i > 0))
      say(
        at,
        'without "subnets", wanted them: only the first network, and only with "nodes", has them from a registry',
      );
    blocks.forEach((block, k) => {
      const hit = earlier.find((other) => blocksOf(other).some((theirs) => overlap(block, theirs)));
      if (hit !== undefined)
        say(`${at}.subnets[${k}]`, `"${formatCidr(block)}", a part of network "${hit.name}", wanted one that is free`);
    });
  });
  if (dataPathOf(raw) === "hns")
    raw.networks.forEach((network, i) => {
      hnsFaults(raw, network, i, say);
    });
  const [first, second] = raw.networks;
  const isOverlay = dataPathOf(raw) === "ovs" || (dataPathOf(raw) === "hns" && raw.ovs !== undefined);
  if (isOverlay && second !== undefined) say("networks[1]", "a second network, wanted one alone with Open vSwitch");
  if (dataPathOf(raw) === "hns" && raw.ovs !== undefined && first?.hns !== undefined)
    for (const [path, text] of overlayContradictions(first.hns, raw.ovs)) say(path, text);
  if (raw.ovs !== undefined || dataPathOf(raw) === "ovs")
    for (const [path, text] of ovsContradictions(raw.ovs ?? {}, bridgeOf(raw))) say(`ovs.${path}`, text);
  for (const [path, text] of raw.nodes === undefined ? [] : nodesContradictions(raw.nodes)) say(`nodes.${path}`, text);
  const versions = raw.cni?.cniVersions ?? [];
  const least = raw.cni?.cniVersion ?? defaultVersion;
  if (versions.length > 0 && !versions.includes(least))
    say("cni.cniVersions", `without "${least}", wanted "cniVersion" among them`);
  return problems;
}

/** What does not fit together within one network: the path below it, and what is wrong. */
function* blockFaults(network: RawNetwork, blocks: readonly Cidr[]): Generator<readonly [path: string, text: string]> {
  if (blocks.length === 2 && blocks[0]?.ip.family === blocks[1]?.ip.family)
    yield [".subnets[1]", `"${network.subnets?.[1]}" of the same family, wanted one IPv4 and one IPv6 block`];
  if (network.mtu !== undefined && network.mtu < 1280 && blocks.some((block) => block.ip.family === 6))
    yield [".mtu", `${network.mtu}, wanted at least 1280 for IPv6`];
  const exclude = network.exclude ?? [];
  if (network.subnets === undefined && exclude.length > 0)
    yield [".exclude", 'there without "subnets", wanted both or none: a registry may give any subnet'];
  else
    for (const [k, text] of exclude.entries()) {
      const excluded = parseCidr(text.includes("/") ? text : `${text}/${text.includes(":") ? 128 : 32}`);
      if (excluded !== undefined && blocks.some((block) => overlap(block, excluded))) continue;
      yield [`.exclude[${k}]`, `"${text}", wanted something in ${blocks.map(formatCidr).join(" or ")}`];
    }
}

/** What only matters where HNS wires the pods: a file may hold the section for a node of the other system. */
function hnsFaults(raw: RawConfig, network: RawNetwork, i: number, say: (path: string, text: string) => void): void {
  const at = `networks[${i}]`;
  const { hns } = network;
  const blocks = blocksOf(network);
  const strange = blocks.findIndex((block) => block.ip.family !== 4);
  if (strange >= 0)
    say(`${at}.subnets[${strange}]`, `"${network.subnets?.[strange]}", wanted IPv4 where "dataPath" is "hns"`);
  if (hns === undefined) {
    say(at, 'without "hns", wanted that section where "dataPath" is "hns"');
    return;
  }
  for (const [path, text] of hnsContradictions(hns, blocks)) say(`${at}.hns.${path}`, text);
  const name = (of: RawHns): string => (of.network ?? "pipette").toLowerCase();
  if (raw.networks.slice(0, i).some((other) => other.hns !== undefined && name(other.hns) === name(hns)))
    say(
      `${at}.hns`,
      `a section with the HNS network "${hns.network ?? "pipette"}" for the second time, wanted another`,
    );
}
