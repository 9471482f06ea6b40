import {
  deviceNameRule,
  networkNameRule,
  pluginTypeRule,
  wrongDeviceName,
  wrongNetworkName,
  wrongPluginType,
} from "../../shared/cni/names.ts";
import { supportedVersions } from "../../shared/cni/versions.ts";
import { limits } from "../../shared/limits.ts";
import { logLevels } from "../../shared/log.ts";
import { firstOf, parseCidr, parseIp, sameIp } from "../../shared/net/ip.ts";
import { paths } from "../../shared/os/paths.ts";
import { dataPathNames } from "./agent-config.ts";
import { hnsShape } from "./hns-shape.ts";
import { nodesShape } from "./nodes-shape.ts";
import { ovsShape } from "./ovs-shape.ts";
import { oneOf, path, podSubnet } from "./value-shapes.ts";
import type { Shape } from "./yaml-shape.ts";

const milliseconds = (least: number, most: number): Shape => ({ t: "integer", least, most });

const fileName: Shape = {
  t: "string",
  wanted: 'a file name ending in ".conflist", or "" for none',
  wrong: (text) => (text === "" || isConflistName(text) ? undefined : "another"),
};

const isConflistName = (text: string): boolean =>
  text.length <= 255 && /^[A-Za-z0-9][A-Za-z0-9_.-]*\.conflist$/.test(text) && paths.isFileName(text);

/** An address is a block of one. */
const exclusion: Shape = {
  t: "string",
  wanted: 'an address or a block without host bits, such as "10.244.1.5" or "10.244.1.16/28"',
  wrong: (text) => {
    if (parseIp(text) !== undefined) return undefined;
    const cidr = parseCidr(text);
    return cidr !== undefined && sameIp(firstOf(cidr), cidr.ip) ? undefined : "neither";
  },
};

const network: Shape = {
  t: "map",
  required: ["name", "bridge"],
  keys: {
    name: { t: "string", wanted: networkNameRule, wrong: wrongNetworkName },
    subnets: { t: "list", of: podSubnet, least: 1, most: 2 },
    bridge: {
      t: "string",
      wanted: deviceNameRule,
      wrong: wrongDeviceName,
    },
    // RFC 791 asks 576 of every IPv4 host, RFC 8200 asks 1280 of every IPv6 link; 65535 is the kernel's most.
    mtu: { t: "integer", least: 576, most: limits.largestMtu },
    hairpin: { t: "boolean" },
    masquerade: { t: "boolean" },
    exclude: { t: "list", of: exclusion, least: 0, most: limits.excludeEntries },
    sticky: { t: "boolean" },
    hns: hnsShape,
  },
};

const chained: Shape = {
  t: "foreign",
  wanted: `a plugin's configuration whose "type" is ${pluginTypeRule}`,
  wrong: (value) => {
    const type = "type" in value ? value.type : undefined;
    if (typeof type !== "string") return `"$.type" is ${type === undefined ? "missing" : "no text"}`;
    return wrongPluginType(type) === undefined ? undefined : `"$.type" is "${type}"`;
  },
};

/** Every key of `agent.yaml`. */
export const agentShape: Shape = {
  t: "map",
  required: ["networks"],
  keys: {
    socket: path,
    dataDir: path,
    logLevel: oneOf(logLevels),
    cni: {
      t: "map",
      required: [],
      keys: {
        confDir: path,
        fileName,
        cniVersion: oneOf(supportedVersions),
        cniVersions: { t: "list", of: oneOf(supportedVersions), least: 0, most: supportedVersions.length },
        disableGC: { t: "boolean" },
        plugins: { t: "list", of: chained, least: 0, most: 16 },
      },
    },
    dataPath: oneOf(dataPathNames),
    networks: { t: "list", of: network, least: 1, most: 64 },
    ovs: ovsShape,
    nodes: nodesShape,
    callTimeoutMs: milliseconds(100, limits.longestTimeoutMs),
    drainTimeoutMs: milliseconds(0, limits.longestTimeoutMs),
    janitorIntervalMs: milliseconds(100, 3_600_000),
    cooldownMs: milliseconds(0, limits.longestCooldownMs),
    hnsTimeoutMs: milliseconds(500, limits.longestTimeoutMs),
  },
};
