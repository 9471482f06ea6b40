import { networkNameRule, pluginTypeRule, wrongNetworkName, wrongPluginType } from "../../shared/cni/names.ts";
import { supportedVersions } from "../../shared/cni/versions.ts";
import { limits } from "../../shared/limits.ts";
import { logLevels } from "../../shared/log.ts";
import { parseIp } from "../../shared/net/ip.ts";
import { paths } from "../../shared/os/paths.ts";
import { isWindows } from "../../shared/os/platform.ts";
import {
  boolean,
  defaulted,
  type Infer,
  integer,
  list,
  object,
  oneOf,
  opaque,
  optional,
  required,
  section,
  textThat,
} from "../../shared/schema/mod.ts";
import { clusterStateSchema } from "./cluster-state-config.ts";
import { type HnsConfig, hnsSchema } from "./hns-config.ts";
import { metricsSchema } from "./metrics-config.ts";
import { type NodesConfig, nodesSchema } from "./nodes-config.ts";
import { type OvsConfig, ovsSchema } from "./ovs-config.ts";
import { policiesSchema } from "./policies-config.ts";
import { type ServicesConfig, servicesSchema } from "./services-config.ts";
import { deviceName, parseBlock, path, podSubnet } from "./values.ts";

export type { HnsConfig } from "./hns-config.ts";
export type { NodesConfig, RegistryConfig } from "./nodes-config.ts";
export type { OvsConfig } from "./ovs-config.ts";
export type { PoliciesConfig } from "./policies-config.ts";
export type { ServicesConfig } from "./services-config.ts";

export const dataPathNames = ["bridge", "ovs", "hns"] as const;
export type DataPathName = (typeof dataPathNames)[number];

const fileName = textThat(
  'a file name ending in ".conflist", or "" for none',
  (given) =>
    given === "" ||
    (given.length <= 255 && /^[A-Za-z0-9][A-Za-z0-9_.-]*\.conflist$/.test(given) && paths.isFileName(given)),
);

const chained = opaque(`a plugin's configuration whose "type" is ${pluginTypeRule}`, (value) => {
  const type = "type" in value ? value.type : undefined;
  if (typeof type !== "string") return `"$.type" is ${type === undefined ? "missing" : "no text"}`;
  return wrongPluginType(type) === undefined ? undefined : `"$.type" is "${type}"`;
});

const cniSchema = object({
  confDir: defaulted(path, paths.cniConfDir, "where the runtime looks for network configurations"),
  fileName: defaulted(
    fileName,
    "10-pipette.conflist",
    'the file that the agent writes there for the first network; `""`: none. Runtimes take the first by name',
  ),
  // The newest that containerd 1.6 and 1.7 take: they refuse results of 1.1.0. Newer runtimes choose from `cniVersions`.
  cniVersion: defaulted(oneOf(supportedVersions), "1.0.0", "what every runtime reads"),
  cniVersions: optional(
    list(oneOf(supportedVersions), 0, supportedVersions.length),
    "what newer runtimes choose from; `[]` leaves the key out",
    "from `cniVersion` on, what all plugins of the list know",
  ),
  disableGC: defaulted(boolean, false, "tells runtimes not to ask for GC: for nodes where several share the network"),
  plugins: optional(
    list(chained, 0, 16),
    "what runs after Pipette, as it shall stand in the file; `[]` runs none",
    "`portmap` and `bandwidth`, each where its executable is; with `dataPath: hns` none",
  ),
});

/** An address is a block of one. */
const exclusion = textThat(
  'an address or a block without host bits, such as "10.244.1.5" or "10.244.1.16/28"',
  (given) => parseIp(given) !== undefined || parseBlock(given) !== undefined,
);

const networkSchema = object({
  name: required(
    textThat(networkNameRule, (given) => wrongNetworkName(given) === undefined),
    "`name` of the network configuration",
  ),
  subnets: defaulted(
    list(podSubnet, 1, 2),
    [],
    "one block, or one of each family; the first address of each is the gateway",
    "of the first network, with `nodes`, what the registry gives this node; otherwise they are needed",
  ),
  bridge: required(deviceName, "the bridge: made when missing; on Windows the name of the node's virtual adapter"),
  // RFC 791 asks 576 of every IPv4 host, RFC 8200 asks 1280 of every IPv6 link; 65535 is the kernel's most.
  mtu: optional(
    integer(576, limits.largestMtu),
    "in bytes, of the bridge and of pods whose configuration names none",
    "`1500`",
  ),
  hairpin: defaulted(
    boolean,
    false,
    "whether a pod reaches itself by way of a service address; of bridges only, and with the section `services` always",
  ),
  masquerade: defaulted(
    boolean,
    true,
    "hides pods' addresses behind the node's where they leave the network; of bridges only",
  ),
  exclude: defaulted(list(exclusion, 0, limits.excludeEntries), [], "addresses and blocks that no pod gets", "none"),
  sticky: defaulted(boolean, false, "whether a pod gets its last addresses back in a new sandbox while they are free"),
  hns: optional(hnsSchema, "for `dataPath: hns`, where it is needed", "none"),
});

const milliseconds = integer;

/** Every key of `agent.yaml`. */
export const agentSchema = object({
  socket: defaulted(path, paths.agentSocket, "where the agent listens"),
  dataDir: defaulted(path, paths.dataDir, "where the leases lie; the plugin's `dataDir` has to say the same"),
  logLevel: defaulted(oneOf(logLevels), "info", "how much the agent logs"),
  cni: section(cniSchema, "the network configuration that the agent writes for the runtime"),
  dataPath: defaulted(
    oneOf(dataPathNames),
    isWindows ? "hns" : "bridge",
    "how pods are wired",
    "`bridge`; on Windows `hns`",
  ),
  networks: required(list(networkSchema, 1, 64), "the networks of this node"),
  ovs: optional(ovsSchema, "for `dataPath: ovs`, or beside `hns`", "none; with `dataPath: ovs` all defaults"),
  nodes: optional(nodesSchema, "this node among others", "it knows of no other"),
  policies: optional(policiesSchema, "network policies, which a controller computes", "none are enforced"),
  services: optional(servicesSchema, "services that the data path balances", "those of `ovs.services.file`, if any"),
  metrics: optional(metricsSchema, "numbers for Prometheus", "none are kept, and no port is open"),
  clusterState: optional(
    clusterStateSchema,
    "tells the cluster of this node: a PipetteNode with its state, and a Lease",
    "nothing is told",
  ),
  callTimeoutMs: defaulted(
    milliseconds(100, limits.longestTimeoutMs),
    limits.addTimeoutMs,
    "how long a call may wait for an earlier call of the same container",
  ),
  drainTimeoutMs: defaulted(
    milliseconds(0, limits.longestTimeoutMs),
    10_000,
    "how long SIGTERM waits for the calls in flight",
  ),
  janitorIntervalMs: defaulted(
    milliseconds(100, 3_600_000),
    10_000,
    "how often the agent looks for what plugins could not finish",
  ),
  cooldownMs: defaulted(
    milliseconds(0, limits.longestCooldownMs),
    limits.cooldownMs,
    "how long a released address stays out of use",
  ),
  hnsTimeoutMs: defaulted(
    milliseconds(500, limits.longestTimeoutMs),
    limits.hcnDeadlineMs,
    "how long one call of HNS may take",
  ),
});

export type WrittenConfig = Infer<typeof agentSchema>;
export type WrittenNetwork = WrittenConfig["networks"][number];

export interface NetworkConfig extends Omit<WrittenNetwork, "hns"> {
  /** Always there where `dataPath` is `hns`. */
  readonly hns?: HnsConfig;
}

/** `agent.yaml`, checked and with its defaults. */
export interface AgentConfig extends Omit<WrittenConfig, "networks" | "ovs" | "nodes" | "services"> {
  /** Subnets are empty in a file that leaves them to the registry of `nodes`: they are there once the node has joined. */
  readonly networks: readonly NetworkConfig[];
  /** Always there where `dataPath` is `ovs`. */
  readonly ovs?: OvsConfig;
  /** Absent: this node knows of no other. */
  readonly nodes?: NodesConfig;
  /** Absent: the data path balances none. */
  readonly services?: ServicesConfig;
}
