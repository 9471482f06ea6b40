import { parseArgs } from "../../shared/cni/args.ts";
import { CniCode, CniError } from "../../shared/errors.ts";
import { type Ip, parseIp, sameIp } from "../../shared/net/ip.ts";
import { type Fields, show } from "../../shared/schema/json-fields.ts";

/** Addresses that one ADD may ask for. Bounded because the annotations of a pod may name them. */
const maxRequestedAddresses = 64;

/** The keys of CNI_ARGS that an IPAM plugin knows; others need `IgnoreUnknown`. */
const knownArgs = ["IgnoreUnknown", "IP"];

/**
 * The addresses that the runtime asks for, as host-local takes them: CNI_ARGS `IP`, then
 * `args.cni.ips`, then `runtimeConfig.ips`, all of them, each once. A prefix length is allowed and ignored.
 * @throws {CniError} code 4 for CNI_ARGS, 7 for the configuration
 */
export function requestedIps(conf: Fields, args: string): readonly Ip[] {
  const named = fromArgs(args);
  const listed = conf.derive(listedIps);
  if (named.length === 0 && listed.length === 0) return listed;
  const requested = [...named, ...listed];
  return requested.filter((ip, i) => requested.findIndex((other) => sameIp(other, ip)) === i);
}

const listedIps = (conf: Fields): readonly Ip[] => [
  ...fromList(conf.object("args")?.object("cni"), "ips"),
  ...fromList(conf.object("runtimeConfig"), "ips"),
];

function fromArgs(text: string): readonly Ip[] {
  if (text === "") return [];
  const args = parseArgs(text);
  const unknown: string[] = [];
  for (const key of args.keys()) if (!knownArgs.includes(key)) unknown.push(key);
  // Read first, so that a wrong value is refused also when there is no unknown key.
  const ignored = ignoresUnknown(args.get("IgnoreUnknown"));
  if (unknown.length > 0 && !ignored) {
    throw wrongArgs(`"${unknown.join('", "')}" is unknown`, `IgnoreUnknown=1 beside it`);
  }
  const given = args.get("IP") ?? "";
  if (given === "") return [];
  const ip = parseIpLeniently(given);
  if (ip === undefined) throw wrongArgs(`IP is ${show(given)}`, "an IPv4 or IPv6 address");
  return [ip];
}

function ignoresUnknown(text: string | undefined): boolean {
  if (text === undefined) return false;
  const value = text.toLowerCase();
  if (value === "1" || value === "true") return true;
  if (value === "0" || value === "false") return false;
  throw wrongArgs(`IgnoreUnknown is ${show(text)}`, "1, true, 0 or false");
}

const wrongArgs = (is: string, wanted: string): CniError =>
  new CniError(CniCode.invalidEnvironment, `Cannot read CNI_ARGS: ${is}, wanted ${wanted}`);

function fromList(fields: Fields | undefined, key: string): readonly Ip[] {
  const given = fields?.get(key);
  if (fields !== undefined && Array.isArray(given) && given.length > maxRequestedAddresses)
    throw fields.refused(fields.pathOf(key), `${given.length} addresses long`, `${maxRequestedAddresses} at most`);
  return (
    fields?.array(key, (value, path) => {
      const ip = typeof value === "string" ? parseIpLeniently(value) : undefined;
      if (ip === undefined) throw fields.wrongAt(path, value, "an IPv4 or IPv6 address");
      return ip;
    }) ?? []
  );
}

/** With or without a prefix length, which is ignored, since the subnet has its own. */
function parseIpLeniently(text: string): Ip | undefined {
  const slash = text.indexOf("/");
  const ip = parseIp(slash < 0 ? text : text.slice(0, slash));
  if (ip === undefined || slash < 0) return ip;
  const prefix = text.slice(slash + 1);
  const most = text.includes(":") ? 128 : 32;
  return /^\d{1,3}$/.test(prefix) && Number(prefix) <= most ? ip : undefined;
}
