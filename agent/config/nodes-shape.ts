import { hostname } from "node:os";
import { firstOf, type Ip, overlap, parseCidr, parseIp, sameIp } from "../../shared/net/ip.ts";
import { interfaceMac } from "../../shared/net/mac.ts";
import type { NodesConfig, RegistryConfig } from "./agent-config.ts";
import type { ClusterNetwork } from "./cluster-network.ts";
import { nodeNameRule, wrongNodeName } from "./node-name.ts";
import { nodeVariable, nodeVariables } from "./node-variables.ts";
import { nodeAddress, nodeMac, oneOf, path } from "./value-shapes.ts";
import type { Shape } from "./yaml-shape.ts";

export const registryTypes = ["static", "etcd", "kubernetes"] as const;
type RegistryType = (typeof registryTypes)[number];

/** As the `nodes` section stands in the file, its values of the right type each. */
export interface RawNodes {
  readonly name?: string;
  readonly addresses?: readonly string[];
  readonly mac?: string;
  readonly registry: RawRegistry;
}

interface RawRegistry {
  readonly type: RegistryType;
  readonly file?: string;
  readonly endpoints?: readonly string[];
  readonly prefix?: string;
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly networks?: readonly { readonly cidr: string; readonly hostBits: number }[];
  readonly server?: string;
  readonly token?: string;
}

/** Which keys of `registry` each type has, besides `type`; those that it needs first. */
const keysOfType: Readonly<Record<RegistryType, { needed: readonly string[]; others: readonly string[] }>> = {
  static: { needed: ["file"], others: [] },
  etcd: { needed: ["endpoints"], others: ["prefix", "ca", "cert", "key", "networks"] },
  kubernetes: { needed: [], others: ["server", "token", "ca"] },
};

const nodeName: Shape = { t: "string", wanted: nodeNameRule, wrong: wrongNodeName };

const url = (wanted: string, schemes: readonly string[]): Shape => ({
  t: "string",
  wanted,
  wrong: (text) => {
    const parsed = URL.canParse(text) ? new URL(text) : undefined;
    if (parsed === undefined || !schemes.includes(parsed.protocol) || parsed.hostname === "") return "none";
    const bare = parsed.pathname === "/" && parsed.search === "" && parsed.hash === "" && parsed.username === "";
    return bare && !text.endsWith("/") ? undefined : "more than that";
  },
});

const keyPrefix: Shape = {
  t: "string",
  wanted: 'a prefix of keys such as "/pipette", at most 128 letters, digits and ._-/ without a slash at its end',
  wrong: (text) => (text.length <= 128 && /^(\/[A-Za-z0-9][A-Za-z0-9._-]*)+$/.test(text) ? undefined : "none"),
};

const clusterCidr: Shape = {
  t: "string",
  wanted: 'a network without host bits, such as "10.128.0.0/14"',
  wrong: (text) => {
    const cidr = parseCidr(text);
    return cidr !== undefined && cidr.prefix > 0 && sameIp(firstOf(cidr), cidr.ip) ? undefined : "none";
  },
};

/** `nodes` of `agent.yaml`. */
export const nodesShape: Shape = {
  t: "map",
  required: ["registry"],
  keys: {
    name: nodeName,
    addresses: { t: "list", of: nodeAddress, least: 1, most: 2 },
    mac: nodeMac,
    registry: {
      t: "map",
      required: ["type"],
      keys: {
        type: oneOf(registryTypes),
        file: path,
        endpoints: {
          t: "list",
          of: url('"http://HOST:PORT" or "https://HOST:PORT"', ["http:", "https:"]),
          least: 1,
          most: 16,
        },
        prefix: keyPrefix,
        ca: path,
        cert: path,
        key: path,
        networks: {
          t: "list",
          // Two addresses of a block are no pod's, and the first of the others is the gateway's.
          of: {
            t: "map",
            required: ["cidr", "hostBits"],
            keys: { cidr: clusterCidr, hostBits: { t: "integer", least: 2, most: 120 } },
          },
          least: 1,
          most: 16,
        },
        server: url('"https://HOST:PORT"', ["https:", "http:"]),
        token: path,
      },
    },
  },
};

/** With the defaults of `conf/agent.yaml`. */
export function toNodes(raw: RawNodes): NodesConfig {
  const hardware = raw.mac === undefined ? undefined : interfaceMac(raw.mac);
  return {
    name: nameOf(raw),
    addresses: addressesOf(raw),
    ...(hardware === undefined ? {} : { mac: hardware }),
    registry: toRegistry(raw.registry),
  };
}

/** The host name is Kubernetes' default, too; Windows' are upper case. */
const nameOf = (raw: RawNodes): string => raw.name ?? nodeVariable("name") ?? hostname().toLowerCase();

const addressesOf = (raw: RawNodes): Ip[] =>
  (raw.addresses ?? []).map((text) => parseIp(text)).filter((ip): ip is Ip => ip !== undefined);

function toRegistry(raw: RawRegistry): RegistryConfig {
  const { type, file = "", endpoints = [], prefix = "/pipette", ca, cert, key, server, token } = raw;
  const files = { ...(ca === undefined ? {} : { ca }) };
  switch (type) {
    case "static":
      return { type, file };
    case "etcd": {
      const pair = cert === undefined || key === undefined ? {} : { cert, key };
      return { type, endpoints, prefix, ...files, ...pair, networks: networksOf(raw) };
    }
    case "kubernetes":
      return {
        type,
        ...(server === undefined ? {} : { server }),
        ...(token === undefined ? {} : { token }),
        ...files,
      };
  }
}

/** OpenShift SDN's: 512 nodes with 510 addresses each. */
const defaultNetworks = [{ cidr: "10.128.0.0/14", hostBits: 9 }];

const networksOf = (raw: RawRegistry): ClusterNetwork[] =>
  (raw.networks ?? defaultNetworks).flatMap(({ cidr, hostBits }) => {
    const parsed = parseCidr(cidr);
    return parsed === undefined ? [] : [{ cidr: parsed, hostBits }];
  });

function nameSource(): string {
  const said = nodeVariable("name");
  return said === undefined ? `the host name "${hostname()}"` : `"${said}" of ${nodeVariables.name}`;
}

/** Faults of the section that no single key shows: the path below `nodes`, and what is wrong. */
export function nodesContradictions(raw: RawNodes): (readonly [path: string, text: string])[] {
  const found: (readonly [string, string])[] = [];
  const { registry } = raw;
  if (wrongNodeName(nameOf(raw)) !== undefined)
    found.push(["name", `missing, and ${nameSource()} will not do for it, wanted ${nodeNameRule}`]);
  const [first, second] = addressesOf(raw);
  if (first !== undefined && first.family === second?.family)
    found.push(["addresses[1]", `"${raw.addresses?.[1]}" of the same family, wanted one of IPv4 and one of IPv6`]);
  const { needed, others } = keysOfType[registry.type];
  for (const key of needed)
    if (!Object.hasOwn(registry, key))
      found.push([`registry`, `without "${key}", wanted it where "type" is "${registry.type}"`]);
  for (const key of Object.keys(registry))
    if (key !== "type" && !needed.includes(key) && !others.includes(key))
      found.push([`registry.${key}`, `set, wanted it left out where "type" is "${registry.type}"`]);
  if ((registry.cert === undefined) !== (registry.key === undefined))
    found.push(["registry", 'with one of "cert" and "key", wanted both or none']);
  if (registry.type === "etcd") found.push(...endpointFaults(registry), ...networkFaults(registry));
  return found;
}

function endpointFaults({ endpoints = [], ca, cert }: RawRegistry): (readonly [string, string])[] {
  const secure = endpoints.map((endpoint) => endpoint.startsWith("https:"));
  if (new Set(secure).size > 1) return [["registry.endpoints", 'a mixture, wanted "http" for all or "https" for all']];
  if (secure[0] === false && (ca !== undefined || cert !== undefined))
    return [["registry.endpoints", 'without "https", wanted it where "ca" or "cert" is set']];
  return [];
}

function networkFaults(raw: RawRegistry): (readonly [string, string])[] {
  if (raw.networks === undefined) return [];
  const found: (readonly [string, string])[] = [];
  const networks = networksOf(raw);
  networks.forEach(({ cidr, hostBits }, i) => {
    const at = `registry.networks[${i}]`;
    const nodeBits = (cidr.ip.family === 4 ? 32 : 128) - cidr.prefix - hostBits;
    // More could be neither listed nor followed.
    if (nodeBits < 0 || nodeBits > 24)
      found.push([`${at}.hostBits`, `${hostBits} in "${raw.networks?.[i]?.cidr}", wanted room for 1 to 2^24 nodes`]);
    if (networks.slice(0, i).some((other) => overlap(other.cidr, cidr)))
      found.push([`${at}.cidr`, `"${raw.networks?.[i]?.cidr}", a part of an earlier one or around it, wanted its own`]);
  });
  return found;
}
