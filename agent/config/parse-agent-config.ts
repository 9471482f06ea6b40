import { formatCidr, overlap, parseCidr } from "../../shared/net/ip.ts";
import { defaultsOf, type Findings, readYaml } from "../../shared/schema/mod.ts";
import { type AgentConfig, agentSchema, type WrittenConfig, type WrittenNetwork } from "./agent-config.ts";
import { checkEncryption } from "./encryption-config.ts";
import { checkAcls, checkHns, checkNodeAddress, checkOverlay, toHns } from "./hns-config.ts";
import { checkMetrics } from "./metrics-config.ts";
import { checkFamilies, checkNodes, withNodeName } from "./nodes-config.ts";
import { checkOvs, ovsSchema, toOvs } from "./ovs-config.ts";
import { checkServices, toServices } from "./services-config.ts";

/** The configuration, or every fault of it as `file:line:column: "path" is value, wanted …`. */
export type ParsedConfig =
  | { readonly t: "ok"; readonly config: AgentConfig }
  | { readonly t: "wrong"; readonly problems: readonly string[] };

/** Reads the text of `agent.yaml`; `file` is for the messages only. Nothing else is touched. */
export function parseAgentConfig(text: string, file: string): ParsedConfig {
  const read = readYaml(text, file, agentSchema, checkTogether);
  return read.t === "ok" ? { t: "ok", config: complete(read.value) } : read;
}

/** Fills in defaults that depend on other keys or on the node. */
function complete({ networks, ovs, nodes, services: written, ...others }: WrittenConfig): AgentConfig {
  const ownOvs = ovsOf({ dataPath: others.dataPath, ovs });
  const usedOvs = others.dataPath === "bridge" ? undefined : ownOvs;
  const services = toServices(written, { ovs: usedOvs, registry: nodes?.registry });
  return {
    ...others,
    networks: networks.map(({ hns, ...network }) => ({
      ...network,
      ...(hns === undefined ? {} : { hns: toHns(hns, ovs !== undefined) }),
    })),
    ...(ownOvs === undefined ? {} : { ovs: toOvs(ownOvs, bridgeOf(networks)) }),
    ...(nodes === undefined ? {} : { nodes: withNodeName(nodes) }),
    ...(services === undefined ? {} : { services }),
  };
}

const ovsOf = ({ dataPath, ovs }: { dataPath: string; ovs: WrittenConfig["ovs"] }) =>
  ovs ?? (dataPath === "ovs" ? defaultsOf(ovsSchema) : undefined);

/** The bridge of the first network: with Open vSwitch there is only one. */
const bridgeOf = ([first]: readonly WrittenNetwork[]): string => first?.bridge ?? "";

/** Finds contradictions between keys. */
function checkTogether(config: WrittenConfig, findings: Findings): void {
  const { networks, dataPath, nodes, ovs, cni, policies, services, metrics } = config;
  const hasAcls = policies !== undefined && ovs === undefined;
  networks.forEach((network, i) => {
    checkNetwork(network, networks.slice(0, i), nodes !== undefined, findings);
    if (dataPath !== "hns") return;
    checkHnsNetwork(network, networks.slice(0, i), findings);
    if (hasAcls && network.hns !== undefined) checkAcls(network.hns, ["networks", i, "hns"], findings);
  });
  const ownOvs = ovsOf({ dataPath, ovs });
  if (ownOvs !== undefined && dataPath !== "bridge" && networks.length > 1)
    findings.add(["networks", 1], "a second network, wanted one alone with Open vSwitch");
  const hns = networks[0]?.hns;
  if (dataPath === "hns" && ovs !== undefined && hns !== undefined) checkOverlay(hns, ovs, findings);
  if (ownOvs !== undefined) checkOvs(ownOvs, bridgeOf(networks), findings);
  if (ownOvs !== undefined) checkEncryption(ownOvs, { dataPath, registry: nodes?.registry.type }, findings);
  if (ownOvs?.tenants === "networkpolicy" && policies === undefined)
    findings.add(
      ["ovs", "tenants"],
      '"networkpolicy" without "policies", wanted that section: nothing else would keep pods apart',
    );
  if (nodes !== undefined) checkNodes(nodes, findings);
  if (services !== undefined) checkServices(services, { ovs: dataPath === "bridge" ? undefined : ovs }, findings);
  if (metrics !== undefined) checkMetrics(metrics, findings);
  const { cniVersion, cniVersions = [] } = cni;
  if (cniVersions.length > 0 && !cniVersions.includes(cniVersion))
    findings.add(["cni", "cniVersions"], `without "${cniVersion}", wanted "cniVersion" among them`);
}

/** @param earlier the networks before it */
function checkNetwork(
  network: WrittenNetwork,
  earlier: readonly WrittenNetwork[],
  hasRegistry: boolean,
  findings: Findings,
): void {
  const at = ["networks", earlier.length];
  const { name, bridge, subnets, mtu, hns } = network;
  if (earlier.some((other) => other.name === name)) findings.add([...at, "name"], `"${name}" for the second time`);
  if (earlier.some((other) => other.bridge === bridge))
    findings.add([...at, "bridge"], `"${bridge}" for the second time, wanted a bridge for each network`);
  if (hns !== undefined) checkNodeAddress(hns, [...at, "hns"], findings);
  checkFamilies([...at, "subnets"], subnets, findings, "one IPv4 and one IPv6 block");
  if (mtu !== undefined && mtu < 1280 && subnets.some(({ ip }) => ip.family === 6))
    findings.add([...at, "mtu"], `${mtu}, wanted at least 1280 for IPv6`);
  checkExclusions(network, at, findings);
  // The registry assigns a node the subnet of one network only.
  if (subnets.length === 0 && (!hasRegistry || earlier.length > 0))
    findings.add(
      at,
      'without "subnets", wanted them: only the first network, and only with "nodes", has them from a registry',
    );
  subnets.forEach((subnet, k) => {
    const hit = earlier.find((other) => other.subnets.some((theirs) => overlap(subnet, theirs)));
    if (hit !== undefined)
      findings.add([...at, "subnets", k], `"${formatCidr(subnet)}", a part of network "${hit.name}"`);
  });
}

function checkExclusions(
  { subnets, exclude }: WrittenNetwork,
  at: readonly (string | number)[],
  findings: Findings,
): void {
  if (subnets.length === 0) {
    if (exclude.length > 0)
      findings.add([...at, "exclude"], 'there without "subnets", wanted both or none: a registry may give any subnet');
    return;
  }
  for (const [k, text] of exclude.entries()) {
    const excluded = parseCidr(text.includes("/") ? text : `${text}/${text.includes(":") ? 128 : 32}`);
    if (excluded !== undefined && subnets.some((subnet) => overlap(subnet, excluded))) continue;
    findings.add([...at, "exclude", k], `"${text}", wanted something in ${subnets.map(formatCidr).join(" or ")}`);
  }
}

/** Checks that apply only with `dataPath: hns`: a file may hold the section for nodes of the other system. */
function checkHnsNetwork(
  { hns, subnets }: WrittenNetwork,
  earlier: readonly WrittenNetwork[],
  findings: Findings,
): void {
  const at = ["networks", earlier.length];
  const strange = subnets.findIndex(({ ip }) => ip.family !== 4);
  if (strange >= 0) {
    const strangeAt = [...at, "subnets", strange];
    findings.add(strangeAt, `${findings.written(strangeAt)}, wanted IPv4 where "dataPath" is "hns"`);
  }
  if (hns === undefined) {
    findings.add(at, 'without "hns", wanted that section where "dataPath" is "hns"');
    return;
  }
  checkHns(hns, [...at, "hns"], subnets, findings);
  const name = hns.network.toLowerCase();
  if (earlier.some((other) => other.hns?.network.toLowerCase() === name))
    findings.add([...at, "hns"], `a section with the HNS network "${hns.network}" for the second time`);
}
