import { CniCode, CniError } from "../errors.ts";
import { type Cidr, formatCidr, formatIp, parseCidr } from "../net/ip.ts";
import { Fields } from "../schema/json-fields.ts";
import { optionalIp } from "./ip-field.ts";
import type { CniDns, CniInterface, CniIp, CniResult, CniRoute } from "./types.ts";
import { atLeast, type CniVersion } from "./versions.ts";

/**
 * Results on the wire, in each version's own shape.
 *
 * 0.1.0 and 0.2.0: `ip4`, `ip6`, the first address of each family with the routes of that family. 0.3.0 to 0.4.0:
 * `interfaces`, `ips` with `version`, `routes`. 1.0.0: no `version` any more. 1.1.0: `mtu`, `socketPath`, `pciID` of
 * interfaces.
 *
 * `mtu`, `advmss`, `priority`, `table` and `scope` of a route are the specification's from 1.1.0 on. host-local writes
 * them wherever there are `routes`, and so do we: a main plugin that knows them must not lose a route's MTU because of
 * an old version number, and one that does not ignores them.
 */
export function encodeResult(result: CniResult, version: CniVersion): string {
  return JSON.stringify(atLeast(version, "0.3.0") ? modern(result, version) : legacy(result, version));
}

/** What there is none of has no key: its value is `undefined`. */
function modern(result: CniResult, version: CniVersion): Record<string, unknown> {
  const with10 = atLeast(version, "1.0.0");
  const with11 = atLeast(version, "1.1.0");
  // Loops, since a function for each element costs an ADD as much as the text itself.
  const interfaces: unknown[] = [];
  for (const one of result.interfaces) {
    const { name, mac, sandbox } = one;
    if (!with11) interfaces.push({ name, mac, sandbox });
    else interfaces.push({ name, mac, sandbox, mtu: one.mtu, socketPath: one.socketPath, pciID: one.pciID });
  }
  const ips: unknown[] = [];
  for (const ip of result.ips) {
    ips.push({
      version: with10 ? undefined : String(ip.address.ip.family),
      interface: ip.interface,
      address: formatCidr(ip.address),
      gateway: ip.gateway === undefined ? undefined : formatIp(ip.gateway),
    });
  }
  const routes: unknown[] = [];
  for (const { dst, gw, mtu, advmss, priority, table, scope } of result.routes) {
    const via = gw === undefined ? undefined : formatIp(gw);
    routes.push({ dst: formatCidr(dst), gw: via, mtu, advmss, priority, table, scope });
  }
  const dns = dnsOf(result.dns);
  return {
    cniVersion: version,
    interfaces: interfaces.length > 0 ? interfaces : undefined,
    ips,
    routes: routes.length > 0 ? routes : undefined,
    // Before 1.0.0 it was always there; from 1.0.0 on it is left out when it says nothing.
    dns: dns ?? (with10 ? undefined : {}),
  };
}

function legacy(result: CniResult, version: CniVersion): Record<string, unknown> {
  const family = (wanted: 4 | 6): Record<string, unknown> | undefined => {
    const ip = result.ips.find((candidate) => candidate.address.ip.family === wanted);
    if (ip === undefined) return undefined;
    const routes = result.routes.filter((route) => route.dst.ip.family === wanted).map(plainRoute);
    return {
      ip: formatCidr(ip.address),
      gateway: ip.gateway === undefined ? undefined : formatIp(ip.gateway),
      routes: routes.length > 0 ? routes : undefined,
    };
  };
  return { cniVersion: version, ip4: family(4), ip6: family(6), dns: dnsOf(result.dns) ?? {} };
}

const plainRoute = (route: CniRoute): Record<string, unknown> => ({
  dst: formatCidr(route.dst),
  gw: route.gw === undefined ? undefined : formatIp(route.gw),
});

/** `undefined` where it says nothing. */
function dnsOf(dns: CniDns): Record<string, unknown> | undefined {
  const nameservers = dns.nameservers?.length === 0 ? undefined : dns.nameservers;
  const domain = dns.domain === "" ? undefined : dns.domain;
  const search = dns.search?.length === 0 ? undefined : dns.search;
  const options = dns.options?.length === 0 ? undefined : dns.options;
  const saysNothing =
    nameservers === undefined && domain === undefined && search === undefined && options === undefined;
  return saysNothing ? undefined : { nameservers, domain, search, options };
}

/**
 * Reads a result or a `prevResult` by the *configuration's* version: its own version key may be wrong or missing,
 * because the runtime's library sets it separately.
 * @throws {CniError} code 6 or 7, naming the field
 */
export function parseResult(fields: Fields, version: CniVersion): CniResult {
  const dns = parseDns(fields.object("dns"));
  if (!atLeast(version, "0.3.0")) return parseLegacy(fields, dns);
  return {
    interfaces: (fields.objects("interfaces") ?? []).map(parseInterface),
    ips: (fields.objects("ips") ?? []).map(parseIpEntry),
    routes: (fields.objects("routes") ?? []).map(parseRoute),
    dns,
  };
}

function parseLegacy(fields: Fields, dns: CniDns): CniResult {
  const ips: CniIp[] = [];
  const routes: CniRoute[] = [];
  for (const key of ["ip4", "ip6"] as const) {
    const entry = fields.object(key);
    if (entry === undefined) continue;
    const gateway = optionalIp(entry, "gateway");
    ips.push({ address: requiredCidr(entry, "ip"), ...(gateway === undefined ? {} : { gateway }) });
    routes.push(...(entry.objects("routes") ?? []).map(parseRoute));
  }
  return { interfaces: [], ips, routes, dns };
}

function parseInterface(fields: Fields): CniInterface {
  const name = fields.string("name");
  if (name === undefined) throw fields.wrong("name", undefined, "an interface name");
  const mac = fields.string("mac");
  const mtu = fields.integer("mtu", 0, 1 << 30);
  const sandbox = fields.string("sandbox");
  const socketPath = fields.string("socketPath");
  const pciID = fields.string("pciID");
  return {
    name,
    ...(mac === undefined ? {} : { mac }),
    ...(mtu === undefined ? {} : { mtu }),
    ...(sandbox === undefined ? {} : { sandbox }),
    ...(socketPath === undefined ? {} : { socketPath }),
    ...(pciID === undefined ? {} : { pciID }),
  };
}

function parseIpEntry(fields: Fields): CniIp {
  const gateway = optionalIp(fields, "gateway");
  const index = fields.integer("interface", 0, 1 << 16);
  return {
    address: requiredCidr(fields, "address"),
    ...(gateway === undefined ? {} : { gateway }),
    ...(index === undefined ? {} : { interface: index }),
  };
}

/** One route of a result or of a configuration's `routes`. */
export function parseRoute(fields: Fields): CniRoute {
  const gw = optionalIp(fields, "gw");
  const route: Record<string, unknown> = { dst: requiredCidr(fields, "dst"), ...(gw === undefined ? {} : { gw }) };
  for (const key of ["mtu", "advmss", "priority", "table", "scope"] as const) {
    const value = fields.integer(key, 0, 2 ** 32 - 1);
    if (value !== undefined) route[key] = value;
  }
  return route as unknown as CniRoute;
}

/** `dns` of a configuration, a result, or `runtimeConfig` (where containerd spells the keys `Servers`, `Searches`, `Options`). */
export function parseDns(fields: Fields | undefined): CniDns {
  if (fields === undefined) return {};
  const nameservers = fields.strings("nameservers") ?? fields.strings("servers");
  const search = fields.strings("search") ?? fields.strings("searches");
  const domain = fields.string("domain");
  const options = fields.strings("options");
  return {
    ...(nameservers === undefined ? {} : { nameservers }),
    ...(domain === undefined ? {} : { domain }),
    ...(search === undefined ? {} : { search }),
    ...(options === undefined ? {} : { options }),
  };
}

function requiredCidr(fields: Fields, key: string): Cidr {
  const text = fields.string(key);
  const cidr = text === undefined ? undefined : parseCidr(text);
  if (cidr === undefined) throw fields.wrong(key, text, 'an address with its prefix length, such as "10.1.2.3/24"');
  return cidr;
}

/** Result text from a delegated plugin. */
export function parseResultText(text: string, version: CniVersion, what: string): CniResult {
  return parseResult(Fields.parse(text, what, CniCode.decode), version);
}

/** An ADD result must have an address: the runtimes fail on one without, far from the cause. */
export function requireAddress(result: CniResult, source: string): void {
  if (result.ips.length === 0) {
    throw new CniError(
      CniCode.ipamFailure,
      `Cannot use the result of "${source}": it holds no address, wanted at least one`,
    );
  }
}
