import { wrongContainerId, wrongIfname } from "../../shared/cni/names.ts";
import { formatIp, type Ip, parseIp } from "../../shared/net/ip.ts";

/**
 * The files of a host-local directory, as names and texts. There is one file per address in use. Its name is the
 * address, with `_` for `:` if it was written on Windows; its text is the container id and the interface name with CR
 * LF between them, on every system. The first versions of host-local wrote the container id alone.
 */

/** The holder of an address. */
export interface Holder {
  readonly containerId: string;
  /** Empty in files of the first format, which stand for any interface of the container. */
  readonly ifname: string;
}

/** The lock file that every host-local process holds while it reads or changes the directory. */
export const lockName = "lock";

const cursorPattern = /^last_reserved_ip\.(0|[1-9]\d{0,5})$/;

/** The file that says which address of the range set at this place was given out last. */
export const cursorName = (rangeSet: number): string => `last_reserved_ip.${rangeSet}`;

/** The range set of a cursor file; `undefined` for any other file. */
export function rangeSetOfCursor(name: string): number | undefined {
  const match = cursorPattern.exec(name);
  return match === null ? undefined : Number(match[1]);
}

/** @param windows writes `_` for `:`, which Windows file names cannot hold */
export const addressName = (ip: Ip, windows: boolean): string =>
  windows ? formatIp(ip).replaceAll(":", "_") : formatIp(ip);

/** The address in a file name, in either spelling. */
export const addressOfName = (name: string): Ip | undefined =>
  parseIp(name.includes(":") ? name : name.replaceAll("_", ":"));

/** Exactly the text that host-local looks for when it searches a container's addresses. */
export const holderText = ({ containerId, ifname }: Holder): string =>
  ifname === "" ? containerId : `${containerId}\r\n${ifname}`;

/** The holder, or a text that says what is wrong. Blanks around it are ignored, as in host-local. */
export function parseHolder(text: string): Holder | string {
  const trimmed = text.trim();
  if (trimmed === "") return "it is empty, wanted a container id and an interface name";
  const [containerId = "", ifname, ...rest] = trimmed.split("\r\n");
  if (rest.length > 0) return "it has more than two lines, wanted a container id and an interface name";
  if (containerId.includes("\n"))
    return "its lines end with LF, wanted CR LF; host-local does not know such a file again either";
  if (wrongContainerId(containerId) !== undefined)
    return `its first line is ${shown(containerId)}, wanted a container id`;
  if (ifname === undefined) return { containerId, ifname: "" };
  if (wrongIfname(ifname) !== undefined) return `its second line is ${shown(ifname)}, wanted an interface name`;
  return { containerId, ifname };
}

/** Quoted and shortened, since the text may be anything. */
const shown = (text: string): string => JSON.stringify(text.length > 40 ? `${text.slice(0, 37)}...` : text);
