import { deviceNameRule, wrongDeviceName } from "../../shared/cni/names.ts";
import { limits } from "../../shared/limits.ts";
import { type Cidr, firstOf, parseCidr, sameIp } from "../../shared/net/ip.ts";
import { interfaceMac, macRule } from "../../shared/net/mac.ts";
import { nodeAddressRule, parseNodeAddress } from "../../shared/net/node-address.ts";
import { paths } from "../../shared/os/paths.ts";
import { type Schema, text, textThat } from "../../shared/schema/mod.ts";

/** Single values that several documents have. */

export const path = textThat("an absolute path", (given) => paths.isAbsolute(given) && !given.includes("\0"));

/** A server by its scheme, name and port alone. */
export const url = (wanted: string, schemes: readonly string[]): Schema<string> =>
  textThat(wanted, (given) => {
    const parsed = URL.canParse(given) ? new URL(given) : undefined;
    if (parsed === undefined || !schemes.includes(parsed.protocol) || parsed.hostname === "") return false;
    const isBare = parsed.pathname === "/" && parsed.search === "" && parsed.hash === "" && parsed.username === "";
    return isBare && !given.endsWith("/");
  });

export const deviceName = textThat(deviceNameRule, (given) => wrongDeviceName(given) === undefined);

/** As Kubernetes names nodes (RFC 1123, a subdomain): it goes into keys and on command lines. */
export const nodeNameRule = 'at most 253 lower-case letters, digits, "-" and ".", a letter or digit at both ends';

export const isNodeName = (given: string): boolean =>
  given.length <= 253 && /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/.test(given);

export const nodeName = textThat(nodeNameRule, isNodeName);

const isLabel = (text: string): boolean =>
  text.length > 0 &&
  text.length < 64 &&
  [...text].every((one) => "abcdefghijklmnopqrstuvwxyz0123456789-".includes(one));

export const namespaceName = textThat("the name of a namespace", isLabel);

export const nodeAddress = text(nodeAddressRule, parseNodeAddress);

export const nodeMac = text(macRule, interfaceMac);

/** A block that begins where it says, `undefined` of every other text. */
export function parseBlock(given: string): Cidr | undefined {
  const cidr = parseCidr(given);
  return cidr !== undefined && sameIp(firstOf(cidr), cidr.ip) ? cidr : undefined;
}

export const block = (example: string): Schema<Cidr> =>
  text(`a network without host bits, such as "${example}"`, parseBlock);

/** Whether pods can have their addresses from it. */
export function isPodSubnet(cidr: Cidr | undefined): cidr is Cidr {
  if (cidr === undefined || !sameIp(firstOf(cidr), cidr.ip)) return false;
  const smallest = cidr.ip.family === 4 ? limits.smallestRangePrefix4 : limits.smallestRangePrefix6;
  return cidr.prefix >= 1 && cidr.prefix <= smallest;
}

export const podSubnet = text(
  `a network such as "10.244.1.0/24" or "fd00:244:1::/64" without host bits, not smaller than /${limits.smallestRangePrefix4} or /${limits.smallestRangePrefix6}`,
  (given) => {
    const cidr = parseCidr(given);
    return isPodSubnet(cidr) ? cidr : undefined;
  },
);
