import { parseIp } from "../../../shared/net/ip.ts";

/** Where a switch listens. */
export type OpenFlowAddress =
  /** A unix socket, or on Windows a named pipe: `\\.\pipe\…`. */
  { readonly t: "path"; readonly path: string } | { readonly t: "tcp"; readonly host: string; readonly port: number };

const pipePrefix = "\\\\.\\pipe\\";
/** IANA's number for OpenFlow. */
const defaultPort = 6653;

/**
 * Reads Open vSwitch's own notation: `unix:/run/openvswitch/br-int.mgmt`, `tcp:127.0.0.1:6653`, `tcp:[::1]:6653`, and
 * `\\.\pipe\NAME`. On Windows a `unix:` path stands for a pipe that has its name without slashes and backslashes.
 * @throws {Error} `Cannot read the address …`
 */
export function parseAddress(text: string, isWindows: boolean): OpenFlowAddress {
  const wrong = (is: string): Error =>
    new Error(`Cannot read the address "${text}": ${is}, wanted unix:PATH, tcp:IP:PORT or ${pipePrefix}NAME`);
  if (text.startsWith(pipePrefix) && text.length > pipePrefix.length) return { t: "path", path: text };
  if (text.startsWith("unix:")) {
    const path = text.slice(5);
    if (path === "") throw wrong("its path is empty");
    return { t: "path", path: isWindows ? pipeOf(path) : path };
  }
  const found = /^tcp:(?:\[([^\]]+)\]|([^:[\]]+))(?::(\d{1,5}))?$/.exec(text);
  if (found === null) throw wrong("it is of no form that is known");
  const host = found[1] ?? found[2] ?? "";
  const port = Number(found[3] ?? defaultPort);
  if (parseIp(host) === undefined) throw wrong(`"${host}" is not an IP address`);
  if (port < 1 || port > 65535) throw wrong(`its port is ${port}`);
  return { t: "tcp", host, port };
}

/** Whether it is a named pipe of Windows. */
export const isPipe = (address: OpenFlowAddress): address is Extract<OpenFlowAddress, { t: "path" }> =>
  address.t === "path" && address.path.toLowerCase().startsWith(pipePrefix);

/** `C:\openvswitch\var\run\openvswitch\br-int.mgmt` is the pipe `C:openvswitchvarrunopenvswitchbr-int.mgmt`. */
function pipeOf(path: string): string {
  return path.startsWith(pipePrefix) ? path : pipePrefix + path.replaceAll(/[\\/]/g, "");
}
