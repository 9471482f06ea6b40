import { isObject } from "../../../shared/schema/json-fields.ts";
import { hresult, Refusal } from "./refusal.ts";

/** A document of HNS as it stands in the store: V2, with what only V1 knows under `V1`. */
export type Document = Record<string, unknown>;

export const own = (document: Document, key: string): unknown => document[key];

export function textOf(document: Document, key: string): string {
  const value = document[key];
  return typeof value === "string" ? value : "";
}

export function listOf(document: Document, key: string): Document[] {
  const value = document[key];
  return Array.isArray(value) ? value.filter(isObject) : [];
}

export function objectOf(document: Document, key: string): Document {
  const value = document[key];
  return isObject(value) ? value : {};
}

/** @throws {Refusal} where the text is no JSON object */
export function parsed(text: string | null): Document {
  try {
    const value: unknown = JSON.parse(text ?? "");
    if (isObject(value)) return value;
  } catch {
    // Said below.
  }
  throw new Refusal(hresult.invalidJson, "The JSON document is invalid.");
}

/** A V2 document says so; one without `SchemaVersion` is taken for V1. @throws {Refusal} for a third version */
export function isV2(document: Document): boolean {
  const version = own(document, "SchemaVersion");
  if (version === undefined) return false;
  if (isObject(version) && version["Major"] === 2) return true;
  throw new Refusal(hresult.invalidJson, "The schema version is not supported.");
}

/** GUIDs compare without regard to case. */
export const sameGuid = (a: string, b: string): boolean => a.toUpperCase() === b.toUpperCase();

/** An IPv4 address as a number. @throws {Refusal} */
export function ipv4(text: string): number {
  const parts = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(text)?.slice(1).map(Number);
  if (parts === undefined || parts.some((part) => part > 255))
    throw new Refusal(hresult.invalidIp, `Invalid address ${text}`);
  return parts.reduce((value, part) => value * 256 + part, 0);
}

export interface Prefix {
  readonly first: number;
  readonly last: number;
  readonly length: number;
}

/** @throws {Refusal} where it is no prefix, or has bits behind its length */
export function prefixOf(text: string): Prefix {
  const [address = "", length = "", ...more] = text.split("/");
  const bits = /^\d{1,2}$/.test(length) ? Number(length) : 33;
  if (more.length > 0 || bits > 32) throw new Refusal(hresult.invalidIp, `Invalid prefix ${text}`);
  const size = 2 ** (32 - bits);
  const first = ipv4(address);
  if (first % size !== 0) throw new Refusal(hresult.invalidIp, `Invalid prefix ${text}`);
  return { first, last: first + size - 1, length: bits };
}

export const isPrefix = (text: string): boolean => {
  try {
    return prefixOf(text).length >= 0;
  } catch {
    return false;
  }
};

const policyTypes = {
  network: [
    ...["SourceMacAddress", "NetAdapterName", "VSwitchExtension", "ProviderAddress", "DrMacAddress", "AutomaticDNS"],
    ...[
      "InterfaceConstraint",
      "RemoteSubnetRoute",
      "VxlanPort",
      "HostRoute",
      "SetPolicy",
      "L4Proxy",
      "LayerConstraint",
    ],
    "NetworkACL",
  ],
  subnet: ["VSID", "VLAN"],
  endpoint: [
    ...["PortMapping", "ACL", "QOS", "L2Driver", "OutBoundNAT", "SDNRoute", "L4Proxy", "L4WFPPROXY", "PortName"],
    ...["EncapOverhead", "ProviderAddress", "InterfaceConstraint", "EncryptionPolicy", "Iov", "TierAcl", "VLAN"],
  ],
} as const;

/** Each policy has a known type and settings. @throws {Refusal} */
export function checkPolicies(document: Document, of: keyof typeof policyTypes): void {
  const given = own(document, "Policies");
  if (given === undefined || given === null) return;
  if (!Array.isArray(given) || !given.every(isObject)) {
    throw new Refusal(hresult.invalidPolicy, "Policies is not a list of policies.");
  }
  const known: readonly string[] = policyTypes[of];
  for (const policy of given) {
    const type = textOf(policy, "Type");
    if (!known.includes(type)) throw new Refusal(hresult.invalidPolicyType, `Invalid policy type ${type}.`);
    if (!isObject(own(policy, "Settings")) && type !== "HostRoute") {
      throw new Refusal(hresult.invalidPolicy, `The settings of policy ${type} are missing.`);
    }
    if (type === "OutBoundNAT") exceptionsOf(policy);
  }
}

/** Exceptions of an OutBoundNAT. @throws {Refusal} where they are no list of texts */
function exceptionsOf(policy: Document): readonly string[] {
  const list = objectOf(policy, "Settings")["Exceptions"] ?? [];
  if (Array.isArray(list) && list.every((entry) => typeof entry === "string")) return list;
  throw new Refusal(hresult.invalidPolicy, "Exceptions is not a list of prefixes.");
}

/** HNS accepts a malformed prefix in a policy; then the endpoint is degraded, and attaching it fails. */
export const isDegraded = (endpoint: Document): boolean =>
  listOf(endpoint, "Policies")
    .filter((policy) => textOf(policy, "Type") === "OutBoundNAT")
    .some((policy) => exceptionsOf(policy).some((prefix) => !isPrefix(prefix)));
