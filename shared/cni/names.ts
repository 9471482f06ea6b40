import { paths } from "../os/paths.ts";
import { show } from "../schema/json-fields.ts";

/** A file's name, with room for a suffix. */
const maxPluginTypeChars = 240;

/** Linux: IFNAMSIZ less the final zero. */
export const maxIfnameBytes = 15;

/** Both go into one interface alias (256 bytes in the kernel) beside the interface name. */
export const maxContainerIdChars = 128;
export const maxNetworkNameChars = 80;

/**
 * Names that end up in paths, interface aliases and the database. Each check answers what is wrong with the text, or
 * `undefined` if it is valid.
 */

/** Specification 1.1.0, "Network configuration" and "Parameters". A loop over a sandbox's id takes 40 times as long. */
const identifier = /^[A-Za-z0-9][A-Za-z0-9_.-]*$/;

function wrongIdentifier(text: string, maxChars: number): string | undefined {
  if (text === "") return "empty";
  if (text.length > maxChars) return `${text.length} characters long`;
  return identifier.test(text) ? undefined : show(text);
}

const identifierRule = (maxChars: number): string =>
  `1 to ${maxChars} characters: a letter or digit, then letters, digits, "_", "." or "-"`;

export const containerIdRule = identifierRule(maxContainerIdChars);
export const networkNameRule = identifierRule(maxNetworkNameChars);
export const ifnameRule = `1 to ${maxIfnameBytes} bytes without "/", ":", "%", blanks or control characters, and neither "." nor ".."`;
export const deviceNameRule = `an interface name of at most ${maxIfnameBytes} letters, digits, "_", "." or "-"`;
export const pluginTypeRule = `the name of an executable: 1 to ${maxPluginTypeChars} printable ASCII characters without "/", "\\" or ":", and no dot or blank at its end`;

export const wrongContainerId = (text: string): string | undefined => wrongIdentifier(text, maxContainerIdChars);

/** It also names files and directories: on Windows some names are devices, and a dot at the end is dropped. */
export function wrongNetworkName(text: string): string | undefined {
  const problem = wrongIdentifier(text, maxNetworkNameChars);
  return problem ?? (paths.isFileName(text) ? undefined : `"${text}", which this system keeps for something else`);
}

/**
 * The rules of the kernel and the reference library. In addition no control characters, because the name is in logs and
 * tables, and no "%", because the kernel takes "eth%d" for a pattern.
 */
const cannotBeInIfname = (char: string): boolean =>
  char === "/" || char === ":" || char === "%" || char < " " || char === "\x7f" || char.trim() === "";

export function wrongIfname(text: string): string | undefined {
  if (text === "") return "empty";
  // As nearly all are.
  if (text.length <= maxIfnameBytes && identifier.test(text)) return undefined;
  const bytes = new TextEncoder().encode(text).length;
  if (bytes > maxIfnameBytes) return `${show(text)} of ${bytes} bytes`;
  if (text === "." || text === ".." || [...text].some(cannotBeInIfname)) return show(text);
  return undefined;
}

/**
 * The name of an interface of the node itself, which goes into rules of nftables and into paths below /proc/sys too.
 */
export const wrongDeviceName = (text: string): string | undefined =>
  wrongIfname(text) ?? (/^[A-Za-z0-9_.-]+$/.test(text) ? undefined : JSON.stringify(text));

/**
 * `type` and `ipam.type` name an executable inside CNI_PATH and must not lead out of it (CVE-2021-20206). On Windows a
 * colon leads to a drive or to another stream of a file, and a dot or a blank at the end is no part of the name.
 */
export function wrongPluginType(text: string): string | undefined {
  if (text === "") return "empty";
  if (text.length > maxPluginTypeChars) return `${text.length} characters long`;
  const last = text.at(-1);
  if (last === "." || last === " " || [...text].some(cannotBeInType)) return JSON.stringify(text);
  return undefined;
}

const cannotBeInType = (char: string): boolean =>
  char < " " || char > "~" || char === "/" || char === "\\" || char === ":";
