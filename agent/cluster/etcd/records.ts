import { CniCode, CniError } from "../../../shared/errors.ts";
import { type Cidr, firstOf, formatCidr, formatIp, type Ip, parseCidr } from "../../../shared/net/ip.ts";
import { interfaceMac, macRule } from "../../../shared/net/mac.ts";
import { isNodeAddress, nodeAddressRule, parseNodeAddress } from "../../../shared/net/node-address.ts";
import { Fields } from "../../../shared/schema/json-fields.ts";
import type { ClusterNetwork } from "../../config/nodes-config.ts";
import { isNodeName, nodeNameRule } from "../../config/values.ts";
import { etcdLimits } from "../../protocols/etcd/mod.ts";
import { encryptionRule, formatEncryption, parseEncryption } from "../node-encryption.ts";
import type { ClusterNode, Registration } from "../node-registry.ts";

/** The values of the keys, in JSON. They are validated, because any client of etcd may have written them. */

/** The holder of a subnet. */
export interface Owner {
  readonly node: string;
  readonly uid: string;
}

export function writeNode({ uid, addresses, mac, subnets, encryption }: ClusterNode): string {
  return JSON.stringify({
    uid,
    addresses: addresses.map(formatIp),
    mac,
    subnets: subnets.map(formatCidr),
    ...(encryption === undefined ? {} : { encryption: formatEncryption(encryption) }),
  });
}

/** @throws {CniError} 7 or 6 for what is no record of a node */
export function readNode(name: string, text: string): ClusterNode {
  const fields = fieldsOf(text, `record of node "${name}"`);
  const each = <T>(key: string, parse: (text: string) => T | undefined, wanted: string): readonly T[] =>
    (fields.strings(key) ?? []).map((value, i) => {
      const parsed = parse(value);
      if (parsed === undefined) throw fields.wrongAt(`${key}[${i}]`, value, wanted);
      return parsed;
    });
  const mac = fields.string("mac");
  const secured = fields.string("encryption");
  const encryption = secured === undefined ? undefined : parseEncryption(secured);
  if (secured !== undefined && encryption === undefined) throw fields.wrong("encryption", secured, encryptionRule);
  const node: ClusterNode = {
    name,
    uid: fields.string("uid") ?? "",
    addresses: each("addresses", parseNodeAddress, nodeAddressRule),
    ...(mac === undefined ? {} : { mac }),
    subnets: each("subnets", subnetOf, "a subnet"),
    ...(encryption === undefined ? {} : { encryption }),
  };
  requireRegistration(node);
  if (node.subnets.length === 0 || repeatsFamily(node.subnets.map(({ ip }) => ip)))
    throw fields.wrong("subnets", fields.get("subnets"), "one per family");
  return node;
}

const uidText = /^[\x21-\x7e]{1,128}$/;

/** @throws {CniError} 7 for an invalid registration */
export function requireRegistration({ name, uid, addresses, mac }: Registration): void {
  const refuse = (what: string, is: string, wanted: string): never => {
    throw new CniError(
      CniCode.invalidConfig,
      `Cannot take node ${JSON.stringify(name.slice(0, 260))}: its ${what} is ${is}, wanted ${wanted}`,
    );
  };
  if (!isNodeName(name)) refuse("name", "no name of a node", nodeNameRule);
  if (!uidText.test(uid)) refuse("uid", JSON.stringify(uid.slice(0, 130)), "1 to 128 visible characters");
  if (addresses.length === 0 || repeatsFamily(addresses))
    refuse("list of addresses", `"${addresses.slice(0, 8).map(formatIp).join(", ")}"`, "one per family");
  const strange = addresses.find((ip) => !isNodeAddress(ip));
  if (strange !== undefined) refuse("address", `"${formatIp(strange)}"`, nodeAddressRule);
  if (mac !== undefined && interfaceMac(mac) !== mac) refuse("MAC", JSON.stringify(mac.slice(0, 20)), macRule);
}

const repeatsFamily = (addresses: readonly Ip[]): boolean =>
  new Set(addresses.map(({ family }) => family)).size < addresses.length;

export function subnetOf(text: string): Cidr | undefined {
  const cidr = parseCidr(text);
  return cidr !== undefined && firstOf(cidr).value === cidr.ip.value ? cidr : undefined;
}

export const writeOwner = (owner: Owner): string => JSON.stringify(owner);

/** `undefined` for what is none. */
export function readOwner(text: string): Owner | undefined {
  try {
    const fields = fieldsOf(text, "owner of a subnet");
    const [node, uid] = [fields.string("node"), fields.string("uid")];
    return node === undefined || uid === undefined ? undefined : { node, uid };
  } catch {
    return undefined;
  }
}

/** In a canonical form, so that equal configurations have equal texts. */
export function writeConfig(networks: readonly ClusterNetwork[]): string {
  return JSON.stringify({ networks: networks.map(({ cidr, hostBits }) => ({ cidr: formatCidr(cidr), hostBits })) });
}

function fieldsOf(text: string, what: string): Fields {
  if (text.length <= etcdLimits.recordChars) return Fields.parse(text, what);
  const is = `it has ${text.length} characters, wanted ${etcdLimits.recordChars} at most`;
  throw new CniError(CniCode.decode, `Cannot read the ${what}: ${is}`);
}
