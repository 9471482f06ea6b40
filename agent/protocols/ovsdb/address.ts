import { isIPv6 } from "node:net";
import { isWindows } from "../../../shared/os/platform.ts";
import { show } from "../../../shared/schema/json-fields.ts";
import { OvsdbCode, OvsdbError } from "./ovsdb-error.ts";

/** Where a database listens. */
export type OvsdbAddress =
  | { readonly t: "unix"; readonly path: string }
  | { readonly t: "pipe"; readonly name: string }
  | { readonly t: "tcp"; readonly host: string; readonly port: number };

/** IANA's, as ovsdb-server(1) has it. */
const defaultPort = 6640;
const pipePrefix = "\\\\.\\pipe\\";
/** Of Windows; Open vSwitch refuses longer ones too. */
const longestPipeName = 256;

const wanted =
  '"unix:/path", "tcp:address:port" or a pipe such as "\\\\.\\pipe\\C:openvswitchvarrunopenvswitchdb.sock"';

/**
 * Reads an address as the tools of Open vSwitch take it: `unix:/path` or `/path`, `tcp:10.0.0.1:6640`,
 * `tcp:[::1]:6640`. On Windows a path stands for the pipe that Open vSwitch makes of it; a pipe may be given by name.
 * @throws {OvsdbError} `invalid`
 */
export function parseAddress(text: string, onWindows: boolean = isWindows): OvsdbAddress {
  const scheme = /^(unix|tcp|pipe):/.exec(text)?.[1];
  const rest = scheme === undefined ? text : text.slice(scheme.length + 1);
  if (rest.includes("\0")) throw wrong(text);
  if (scheme === "tcp") return parseTcp(rest) ?? fail(text);
  if (rest.toLowerCase().startsWith(pipePrefix)) return parsePipe(rest) ?? fail(text);
  if (scheme === "pipe") throw wrong(text);
  if (onWindows) return pipeOf(rest) ?? fail(text);
  return rest.startsWith("/") ? { t: "unix", path: rest } : fail(text);
}

function parseTcp(rest: string): OvsdbAddress | undefined {
  const match = /^(?:\[([^\]]+)\]|([^:[\]]+))(?::(\d{1,5}))?$/.exec(rest);
  const [, inBrackets, name, digits] = match ?? [];
  const host = inBrackets ?? name;
  const port = digits === undefined ? defaultPort : Number(digits);
  if (host === undefined || (inBrackets !== undefined && !isIPv6(inBrackets)) || port < 1 || port > 65_535)
    return undefined;
  return { t: "tcp", host, port };
}

function parsePipe(name: string): OvsdbAddress | undefined {
  const isOne = name.length > pipePrefix.length && name.length <= longestPipeName && !name.endsWith("\\");
  return isOne ? { t: "pipe", name } : undefined;
}

/** Open vSwitch names its pipe by the path of the socket that it stands for, without the slashes of either kind. */
function pipeOf(path: string): OvsdbAddress | undefined {
  if (!/^[A-Za-z]:[\\/]./.test(path)) return undefined;
  return parsePipe(pipePrefix + path.replace(/[\\/]/g, ""));
}

const wrong = (text: string): OvsdbError =>
  new OvsdbError(OvsdbCode.invalid, `Cannot connect to a database: the address is ${show(text)}, wanted ${wanted}`);

function fail(text: string): never {
  throw wrong(text);
}
