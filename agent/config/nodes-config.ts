import { hostname } from "node:os";
import { firstOf, type Ip, overlap, parseCidr, sameIp } from "../../shared/net/ip.ts";
import {
  defaulted,
  type Findings,
  type Infer,
  integer,
  list,
  object,
  optional,
  required,
  text,
  textThat,
  variants,
} from "../../shared/schema/mod.ts";
import { isNodeName, nodeAddress, nodeMac, nodeName, nodeNameRule, path, url } from "./values.ts";

/**
 * Variables that the DaemonSets fill with the node's name and address (the downward API), so that one agent.yaml serves
 * all nodes. They are variables and not options because `kubectl exec` passes them to every command.
 */
export const nodeVariables = { name: "PIPETTE_NODE_NAME", address: "PIPETTE_NODE_ADDRESS" } as const;

/** An empty variable counts as absent. */
export const nodeVariable = (which: keyof typeof nodeVariables): string | undefined =>
  process.env[nodeVariables[which]] || undefined;

const keyPrefix = textThat(
  'a prefix of keys such as "/pipette", at most 128 letters, digits and ._-/ without a slash at its end',
  (given) => given.length <= 128 && /^(\/[A-Za-z0-9][A-Za-z0-9._-]*)+$/.test(given),
);

const clusterCidr = text('a network without host bits, such as "10.128.0.0/14"', (given) => {
  const cidr = parseCidr(given);
  return cidr !== undefined && cidr.prefix > 0 && sameIp(firstOf(cidr), cidr.ip) ? cidr : undefined;
});

const clusterNetwork = object({
  cidr: required(clusterCidr, "the network"),
  // Three addresses of a block are not for pods: the first, the last, and the gateway.
  hostBits: required(integer(2, 120), "of each node's subnet: 9 makes IPv4 subnets of 512 addresses (/23)"),
});

/** A network whose subnets nodes get. */
export type ClusterNetwork = Infer<typeof clusterNetwork>;

/** OpenShift SDN's: 512 nodes with 510 addresses each. */
const defaultNetworks = [parseCidr("10.128.0.0/14")].flatMap((cidr) =>
  cidr === undefined ? [] : [{ cidr, hostBits: 9 }],
);

const ca = (otherwise: string) =>
  optional(path, "the authorities that the server's certificate is checked with (PEM)", otherwise);

/** One implementation of `NodeRegistry` each, in the folder of that name below `agent/cluster`. */
const registry = variants("type", "where the nodes and their subnets come from", {
  static: object({
    file: required(path, "a file that somebody else writes, read again when it changes"),
  }),
  etcd: object({
    endpoints: required(
      list(url('"http://HOST:PORT" or "https://HOST:PORT"', ["http:", "https:"]), 1, 16),
      "all members of one cluster, with http or https for all",
    ),
    prefix: defaulted(keyPrefix, "/pipette", "before every key"),
    ca: ca("the system's"),
    cert: optional(path, "the client's certificate (PEM), with `key`", "none"),
    key: optional(path, "the client's key (PEM), with `cert`", "none"),
    networks: defaulted(
      list(clusterNetwork, 1, 16),
      defaultNetworks,
      "what subnets are cut from, in this order; the first node that joins writes it into the registry",
      "`10.128.0.0/14` with 9 host bits",
    ),
  }),
  kubernetes: object({
    server: optional(url('"https://HOST:PORT"', ["https:", "http:"]), "the API server", "what a pod finds"),
    token: optional(path, "a file with the token", "what a pod finds"),
    ca: ca("what a pod finds"),
  }),
});

export type RegistryConfig = Infer<typeof registry>;
export type EtcdRegistryConfig = Extract<RegistryConfig, { type: "etcd" }>;

/** `nodes` of `agent.yaml`. */
export const nodesSchema = object({
  name: optional(nodeName, "of this node", `what \`${nodeVariables.name}\` says; else the host name in lower case`),
  addresses: defaulted(
    list(nodeAddress, 1, 2),
    [],
    "where the other nodes reach this one, one per family at most",
    "of the interface that the default route leads out by (Linux); `hns.nodeAddress` (Windows)",
  ),
  mac: optional(nodeMac, "of the interface with these addresses", "what it has"),
  probeIntervalMs: defaulted(
    integer(0, 3_600_000),
    60_000,
    "how often the others are asked, by the way of pods' packets, whether theirs are reached; `0`: never. Linux only",
  ),
  registry: required(registry, "the nodes of the cluster"),
});

type WrittenNodes = Infer<typeof nodesSchema>;

/** The node's membership of a cluster. */
export interface NodesConfig extends WrittenNodes {
  readonly name: string;
}

export const withNodeName = (nodes: WrittenNodes): NodesConfig => ({ ...nodes, name: nameOf(nodes) });

/** The host name is Kubernetes' default, too; Windows' are upper case. */
export const nameOf = ({ name }: { readonly name?: string | undefined }): string =>
  name ?? nodeVariable("name") ?? hostname().toLowerCase();

function nameSource(): string {
  const said = nodeVariable("name");
  return said === undefined ? `the host name "${hostname()}"` : `"${said}" of ${nodeVariables.name}`;
}

/** Finds contradictions between keys. */
export function checkNodes(nodes: WrittenNodes, findings: Findings): void {
  if (!isNodeName(nameOf(nodes)))
    findings.add(["nodes", "name"], `missing, and ${nameSource()} will not do for it, wanted ${nodeNameRule}`);
  checkFamilies(["nodes", "addresses"], nodes.addresses, findings);
  const { probeIntervalMs } = nodes;
  if (probeIntervalMs > 0 && probeIntervalMs < 1_000)
    findings.add(["nodes", "probeIntervalMs"], `${probeIntervalMs}, wanted 1000 or more, or 0 for none`);
  if (nodes.registry.type === "etcd") checkEtcd(nodes.registry, findings);
}

/** Two addresses or blocks are to be of two families. */
export function checkFamilies(
  at: readonly (string | number)[],
  [first, second]: readonly (Ip | { readonly ip: Ip })[],
  findings: Findings,
  wanted = "one of IPv4 and one of IPv6",
): void {
  const familyOf = (one: Ip | { readonly ip: Ip }): number => ("ip" in one ? one.ip : one).family;
  if (first === undefined || second === undefined || familyOf(first) !== familyOf(second)) return;
  findings.add([...at, 1], `${findings.written([...at, 1])} of the same family, wanted ${wanted}`);
}

function checkEtcd({ endpoints, ca, cert, key, networks }: EtcdRegistryConfig, findings: Findings): void {
  const at = ["nodes", "registry"];
  if ((cert === undefined) !== (key === undefined))
    findings.add(at, 'with one of "cert" and "key", wanted both or none');
  const secure = endpoints.map((endpoint) => endpoint.startsWith("https:"));
  if (new Set(secure).size > 1)
    findings.add([...at, "endpoints"], 'a mixture, wanted "http" for all or "https" for all');
  else if (secure[0] === false && (ca !== undefined || cert !== undefined))
    findings.add([...at, "endpoints"], 'without "https", wanted it where "ca" or "cert" is set');
  networks.forEach(({ cidr, hostBits }, i) => {
    const cidrAt = [...at, "networks", i, "cidr"];
    const nodeBits = (cidr.ip.family === 4 ? 32 : 128) - cidr.prefix - hostBits;
    // More nodes could be neither listed nor watched.
    if (nodeBits < 0 || nodeBits > 24)
      findings.add(
        [...at, "networks", i, "hostBits"],
        `${hostBits} in ${findings.written(cidrAt)}, wanted room for 1 to 2^24 nodes`,
      );
    if (networks.slice(0, i).some((other) => overlap(other.cidr, cidr)))
      findings.add(cidrAt, `${findings.written(cidrAt)}, a part of an earlier one or around it`);
  });
}
