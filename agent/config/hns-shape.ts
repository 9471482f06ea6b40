import { assert } from "../../shared/assert.ts";
import { type Cidr, contains, firstOf, overlap, parseCidr, parseIp, sameIp } from "../../shared/net/ip.ts";
import { parseNodeAddress } from "../../shared/net/node-address.ts";
import type { HnsConfig, HnsPeer } from "./agent-config.ts";
import { nodeVariable, nodeVariables } from "./node-variables.ts";
import type { RawOvs } from "./ovs-shape.ts";
import type { Shape } from "./yaml-shape.ts";

/** HNS' kinds of network that can hold pods of more than one node. */
export const hnsTypes = ["Transparent", "L2Bridge", "Overlay"] as const;

/** As the `hns` section stands in the file, its values of the right type each. */
export interface RawHns {
  readonly nodeAddress?: string;
  readonly network?: string;
  readonly type?: (typeof hnsTypes)[number];
  readonly adapter?: string;
  readonly vsid?: number;
  readonly natName?: string;
  readonly ovsExtension?: boolean;
  readonly outboundNat?: { readonly exceptions: readonly string[] };
  readonly policies?: readonly Readonly<Record<string, unknown>>[];
  readonly peers?: readonly { readonly podSubnet: string; readonly gateway: string }[];
}

/** Names of adapters, switches and NetNats: what PowerShell takes for more than a name is kept out. */
const windowsName = (wanted: string, mayBeEmpty = false): Shape => ({
  t: "string",
  wanted,
  wrong: (text) => ((mayBeEmpty && text === "") || /^[A-Za-z0-9][A-Za-z0-9 ._()#-]{0,79}$/.test(text) ? undefined : ""),
});

const isAddress4 = (text: string): boolean => parseNodeAddress(text)?.family === 4 && !text.includes(":");

const address4: Shape = {
  t: "string",
  wanted: 'an IPv4 address, such as "192.168.1.5"',
  wrong: (text) => (isAddress4(text) ? undefined : "none"),
};

const network4: Shape = {
  t: "string",
  wanted: 'an IPv4 network without host bits, such as "10.244.2.0/24"',
  wrong: (text) => {
    const cidr = parseCidr(text);
    return cidr?.ip.family === 4 && sameIp(firstOf(cidr), cidr.ip) ? undefined : "none";
  },
};

const policy: Shape = {
  t: "foreign",
  wanted: 'an endpoint policy with "Type" and "Settings"',
  wrong: (value) => {
    const type = "Type" in value ? value.Type : undefined;
    return typeof type === "string" && /^[A-Za-z0-9_]{1,64}$/.test(type) ? undefined : '"$.Type" is no word';
  },
};

/** `hns` of one network. */
export const hnsShape: Shape = {
  t: "map",
  required: [],
  keys: {
    network: windowsName("a name of at most 80 letters, digits, blanks and ._()#-"),
    type: {
      t: "string",
      wanted: `one of ${hnsTypes.map((type) => `"${type}"`).join(", ")}`,
      wrong: (text) => (hnsTypes.some((type) => type === text) ? undefined : "another"),
    },
    nodeAddress: address4,
    adapter: windowsName("the name of a network adapter"),
    // Below 4096 HNS refuses a VSID; a VXLAN number has 24 bits.
    vsid: { t: "integer", least: 4096, most: 16_777_215 },
    outboundNat: {
      t: "map",
      required: ["exceptions"],
      keys: { exceptions: { t: "list", of: network4, least: 0, most: 64 } },
    },
    policies: { t: "list", of: policy, least: 0, most: 64 },
    natName: windowsName('the name of a NetNat, or "" for none', true),
    ovsExtension: { t: "boolean" },
    peers: {
      t: "list",
      of: { t: "map", required: ["podSubnet", "gateway"], keys: { podSubnet: network4, gateway: address4 } },
      least: 0,
      most: 5000,
    },
  },
};

const nodeAddressOf = (raw: RawHns): string | undefined => raw.nodeAddress ?? nodeVariable("address");

/** Whatever the data path is: what is wrong with where the node's own address comes from. */
export function missingNodeAddress(raw: RawHns): string | undefined {
  const said = nodeAddressOf(raw);
  if (said === undefined) return `without "nodeAddress", wanted it, or ${nodeVariables.address} in the environment`;
  return isAddress4(said)
    ? undefined
    : `without "nodeAddress", and "${said}" of ${nodeVariables.address} is no IPv4 address, wanted one`;
}

/** With the defaults of `conf/agent.yaml`. @param hasOverlay the switch's extension forwards */
export function toHns(raw: RawHns, hasOverlay: boolean): HnsConfig {
  const nodeAddress = parseIp(nodeAddressOf(raw) ?? "");
  assert(nodeAddress !== undefined, "the check lets no section without an address through");
  return {
    network: raw.network ?? "pipette",
    type: raw.type ?? "Transparent",
    nodeAddress,
    ...(raw.adapter === undefined ? {} : { adapter: raw.adapter }),
    ...(raw.vsid === undefined ? {} : { vsid: raw.vsid }),
    natName: raw.natName ?? "pipette-nat",
    ovsExtension: raw.ovsExtension ?? hasOverlay,
    ...(raw.outboundNat === undefined ? {} : { outboundNat: raw.outboundNat }),
    policies: raw.policies ?? [],
    peers: peersOf(raw),
  };
}

function peersOf(raw: RawHns): HnsPeer[] {
  return (raw.peers ?? []).flatMap(({ podSubnet, gateway }) => {
    const [subnet, ip] = [parseCidr(podSubnet), parseIp(gateway)];
    return subnet === undefined || ip === undefined ? [] : [{ podSubnet: subnet, gateway: ip }];
  });
}

/** Faults of the section that no single key shows: the path below `hns`, and what is wrong. */
export function hnsContradictions(raw: RawHns, blocks: readonly Cidr[]): (readonly [path: string, text: string])[] {
  const found: (readonly [string, string])[] = [];
  const said = nodeAddressOf(raw) ?? "";
  const node = parseIp(said);
  if (node !== undefined && blocks.some((block) => contains(block, node)))
    found.push(["nodeAddress", `"${said}", an address of the pods, wanted the node's own`]);
  if (raw.type === "Overlay" && raw.vsid === undefined) found.push(["type", '"Overlay" without "vsid", wanted both']);
  if (raw.type !== "Overlay" && raw.vsid !== undefined)
    found.push(["vsid", `${raw.vsid}, wanted it with "type" "Overlay" only`]);
  peersOf(raw).forEach(({ podSubnet }, i) => {
    const hit = blocks.some((block) => overlap(block, podSubnet));
    if (hit) found.push([`peers[${i}].podSubnet`, `"${raw.peers?.[i]?.podSubnet}", wanted another node's pods`]);
  });
  return found;
}

/** What Open vSwitch has on Linux only, or takes from `hns` here: the path, and what is wrong. */
export function overlayContradictions(hns: RawHns, ovs: RawOvs): (readonly [path: string, text: string])[] {
  const found: (readonly [string, string])[] = [];
  const own = "networks[0].hns";
  if (hns.type !== undefined && hns.type !== "Transparent")
    found.push([`${own}.type`, `"${hns.type}" beside "ovs", wanted "Transparent"`]);
  if (hns.ovsExtension === false) found.push([`${own}.ovsExtension`, 'false beside "ovs", wanted true']);
  if (ovs.uplink !== undefined) found.push(["ovs.uplink", `"${ovs.uplink}", wanted the card as "hns.adapter"`]);
  if (ovs.nodeAddresses !== undefined)
    found.push(["ovs.nodeAddresses", 'there where "dataPath" is "hns", wanted "hns.nodeAddress" alone']);
  if (ovs.tunnel === "gre") found.push(["ovs.tunnel", '"gre", wanted "geneve", "vxlan" or "stt" on Windows']);
  if (ovs.mode === "networkPolicyOnly")
    found.push(["ovs.mode", '"networkPolicyOnly", wanted "encap", "noEncap" or "hybrid" on Windows']);
  const strange = (ovs.services?.cidrs ?? []).findIndex((text) => parseCidr(text)?.ip.family === 6);
  if (strange >= 0)
    found.push([`ovs.services.cidrs[${strange}]`, `"${ovs.services?.cidrs?.[strange]}", wanted IPv4 on Windows`]);
  return found;
}
