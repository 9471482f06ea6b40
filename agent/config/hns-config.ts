import { assert } from "../../shared/assert.ts";
import { type Cidr, contains, overlap } from "../../shared/net/ip.ts";
import { parseNodeAddress } from "../../shared/net/node-address.ts";
import {
  boolean,
  defaulted,
  type Findings,
  type Infer,
  integer,
  list,
  object,
  oneOf,
  opaque,
  optional,
  required,
  text,
  textThat,
} from "../../shared/schema/mod.ts";
import { nodeVariable, nodeVariables } from "./nodes-config.ts";
import type { WrittenOvs } from "./ovs-config.ts";
import { parseBlock } from "./values.ts";

/** Names of adapters, switches and NetNats, without characters that mean something to PowerShell. */
const windowsName = (wanted: string, mayBeEmpty = false) =>
  textThat(wanted, (given) => (mayBeEmpty && given === "") || /^[A-Za-z0-9][A-Za-z0-9 ._()#-]{0,79}$/.test(given));

function parseAddress4(given: string) {
  const ip = given.includes(":") ? undefined : parseNodeAddress(given);
  return ip?.family === 4 ? ip : undefined;
}

const address4 = text('an IPv4 address, such as "192.168.1.5"', parseAddress4);

const networkRule = 'an IPv4 network without host bits, such as "10.244.2.0/24"';

const parseBlock4 = (given: string): Cidr | undefined => {
  const cidr = parseBlock(given);
  return cidr?.ip.family === 4 ? cidr : undefined;
};

const policy = opaque('an endpoint policy with "Type" and "Settings"', (value) => {
  const type = "Type" in value ? value.Type : undefined;
  return typeof type === "string" && /^[A-Za-z0-9_]{1,64}$/.test(type) ? undefined : '"$.Type" is no word';
});

/** `hns` of one network. */
export const hnsSchema = object({
  nodeAddress: optional(
    address4,
    "the node's own IPv4 address, which tells the adapter that the network is made on",
    `what \`${nodeVariables.address}\` says; else none, and it is needed`,
  ),
  network: defaulted(
    windowsName("a name of at most 80 letters, digits, blanks and ._()#-"),
    "pipette",
    "the HNS network: made when missing, taken when it is of the same type and subnet",
  ),
  // HNS' kinds of network that can hold pods of more than one node.
  type: defaulted(oneOf(["Transparent", "L2Bridge", "Overlay"]), "Transparent", "of the HNS network"),
  // Below 4096 HNS refuses a VSID; a VXLAN number has 24 bits.
  vsid: optional(integer(4096, 16_777_215), "of an overlay, needed with one", "none"),
  adapter: optional(
    windowsName("the name of a network adapter"),
    "its name, where the address is not to tell it",
    "by the address",
  ),
  natName: defaulted(
    windowsName('the name of a NetNat, or "" for none', true),
    "pipette-nat",
    'of the NetNat for the pods\' subnet; `""` for none',
  ),
  ovsExtension: optional(
    boolean,
    "whether the Open vSwitch extension is enabled on the network's switch",
    "`false`; with the section `ovs` `true`",
  ),
  outboundNat: optional(
    object({
      exceptions: required(
        list(
          textThat(networkRule, (given) => parseBlock4(given) !== undefined),
          0,
          64,
        ),
        "blocks whose traffic keeps the pods' addresses",
      ),
    }),
    "gives every endpoint the policy OutBoundNAT",
    "no such policy",
  ),
  healthEndpoint: optional(
    windowsName("the name of an HNS endpoint"),
    "the node's own endpoint, to which load balancers' health checks of their addresses are led (kube-proxy's `root-hnsendpoint-name`)",
    "no health check comes through",
  ),
  policies: defaulted(list(policy, 0, 64), [], "more policies for every endpoint, as HNS documents them", "none"),
  peers: defaulted(
    list(
      object({
        podSubnet: required(text(networkRule, parseBlock4), "another node's pods"),
        gateway: required(address4, "by way of whom they are reached"),
      }),
      0,
      5000,
    ),
    [],
    "routes to the pods of other nodes",
    "none",
  ),
});

export type WrittenHns = Infer<typeof hnsSchema>;

/** The settings of a network in the Host Networking Service. */
export interface HnsConfig extends WrittenHns {
  readonly nodeAddress: NonNullable<WrittenHns["nodeAddress"]>;
  readonly ovsExtension: boolean;
}

const nodeAddressOf = ({ nodeAddress }: WrittenHns) => nodeAddress ?? parseAddress4(nodeVariable("address") ?? "");

/** @param hasOverlay whether the switch's extension (Open vSwitch) forwards */
export function toHns(written: WrittenHns, hasOverlay: boolean): HnsConfig {
  const nodeAddress = nodeAddressOf(written);
  assert(nodeAddress !== undefined, "the check lets no section without an address through");
  return { ...written, nodeAddress, ovsExtension: written.ovsExtension ?? hasOverlay };
}

/** For every data path: checks that the node's own address is known. @param at of the section */
export function checkNodeAddress(hns: WrittenHns, at: readonly (string | number)[], findings: Findings): void {
  if (nodeAddressOf(hns) !== undefined) return;
  const said = nodeVariable("address");
  findings.add(
    at,
    said === undefined
      ? `without "nodeAddress", wanted it, or ${nodeVariables.address} in the environment`
      : `without "nodeAddress", and "${said}" of ${nodeVariables.address} is no IPv4 address`,
  );
}

/** Finds contradictions between keys. @param at path of the section. @param blocks the network's pod subnets */
export function checkHns(
  hns: WrittenHns,
  at: readonly (string | number)[],
  blocks: readonly Cidr[],
  findings: Findings,
): void {
  const node = nodeAddressOf(hns);
  if (node !== undefined && blocks.some((block) => contains(block, node))) {
    const said =
      hns.nodeAddress === undefined ? `"${nodeVariable("address")}"` : findings.written([...at, "nodeAddress"]);
    findings.add([...at, "nodeAddress"], `${said}, an address of the pods, wanted the node's own`);
  }
  if (hns.type === "Overlay" && hns.vsid === undefined)
    findings.add([...at, "type"], '"Overlay" without "vsid", wanted both');
  if (hns.type !== "Overlay" && hns.vsid !== undefined)
    findings.add([...at, "vsid"], `${hns.vsid}, wanted it with "type" "Overlay" only`);
  hns.peers.forEach(({ podSubnet }, i) => {
    const peerAt = [...at, "peers", i, "podSubnet"];
    if (blocks.some((block) => overlap(block, podSubnet)))
      findings.add(peerAt, `${findings.written(peerAt)}, wanted another node's pods`);
  });
}

/** Network policies are ACLs too, and one that allows would go before what they refuse. @param at of the section */
export function checkAcls({ policies }: WrittenHns, at: readonly (string | number)[], findings: Findings): void {
  for (const [k, { Type, Settings, ...flat }] of policies.entries()) {
    const { Action } = { ...flat, ...(typeof Settings === "object" ? Settings : {}) } as { Action?: unknown };
    if (Type !== "ACL" || Action === "Block") continue;
    findings.add(
      [...at, "policies", k],
      'an ACL that blocks nothing, beside "policies", wanted none: they say all that is open',
    );
  }
}

/** Refuses keys of `ovs` that exist only on Linux, or whose value comes from `hns` here. */
export function checkOverlay(hns: WrittenHns, ovs: WrittenOvs, findings: Findings): void {
  const own = ["networks", 0, "hns"];
  if (hns.type !== "Transparent") findings.add([...own, "type"], `"${hns.type}" beside "ovs", wanted "Transparent"`);
  if (hns.ovsExtension === false) findings.add([...own, "ovsExtension"], 'false beside "ovs", wanted true');
  if (ovs.uplink !== undefined) findings.add(["ovs", "uplink"], `"${ovs.uplink}", wanted the card as "hns.adapter"`);
  if (ovs.nodeAddresses.length > 0)
    findings.add(["ovs", "nodeAddresses"], 'there where "dataPath" is "hns", wanted "hns.nodeAddress" alone');
  if (ovs.tunnel === "gre") findings.add(["ovs", "tunnel"], '"gre", wanted "geneve", "vxlan" or "stt" on Windows');
  if (ovs.mode === "networkPolicyOnly")
    findings.add(["ovs", "mode"], '"networkPolicyOnly", wanted "encap", "noEncap" or "hybrid" on Windows');
  const strange = ovs.services.cidrs.findIndex(({ ip }) => ip.family === 6);
  if (strange >= 0) {
    const at = ["ovs", "services", "cidrs", strange];
    findings.add(at, `${findings.written(at)}, wanted IPv4 on Windows`);
  }
}
