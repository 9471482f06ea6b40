import { limits } from "../../shared/limits.ts";
import { type Cidr, firstOf, parseCidr, sameIp } from "../../shared/net/ip.ts";
import { nodeAddressRule, parseNodeAddress } from "../../shared/net/node-address.ts";
import { interfaceMac, macRule } from "../../shared/net/parse-mac.ts";
import { paths } from "../../shared/os/paths.ts";
import type { Shape } from "./yaml-shape.ts";

/** Shapes of single values that several sections have. */

export const path: Shape = {
  t: "string",
  wanted: "an absolute path",
  wrong: (text) => (paths.isAbsolute(text) && !text.includes("\0") ? undefined : "relative"),
};

export const oneOf = (values: readonly string[]): Shape => ({
  t: "string",
  wanted: `one of ${values.map((value) => `"${value}"`).join(", ")}`,
  wrong: (text) => (values.includes(text) ? undefined : "another"),
});

/** Whether pods can have their addresses from it. */
export function isPodSubnet(cidr: Cidr | undefined): cidr is Cidr {
  if (cidr === undefined || !sameIp(firstOf(cidr), cidr.ip)) return false;
  const smallest = cidr.ip.family === 4 ? limits.smallestRangePrefix4 : limits.smallestRangePrefix6;
  return cidr.prefix >= 1 && cidr.prefix <= smallest;
}

export const podSubnet: Shape = {
  t: "string",
  wanted: `a network such as "10.244.1.0/24" or "fd00:244:1::/64" without host bits, not smaller than /${limits.smallestRangePrefix4} or /${limits.smallestRangePrefix6}`,
  wrong: (text) => (isPodSubnet(parseCidr(text)) ? undefined : "none"),
};

export const nodeAddress: Shape = {
  t: "string",
  wanted: nodeAddressRule,
  wrong: (text) => (parseNodeAddress(text) === undefined ? "none" : undefined),
};

export const nodeMac: Shape = {
  t: "string",
  wanted: macRule,
  wrong: (text) => (interfaceMac(text) === undefined ? "none" : undefined),
};
