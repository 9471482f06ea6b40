import { limits } from "../limits.ts";
import { paths } from "../os/paths.ts";
import { show } from "../schema/json-fields.ts";

/**
 * Names that end up in paths, interface aliases and the data base. Each check answers what is
 * wrong with the text, or `undefined` where it will do.
 */

const isAlnum = (code: number): boolean =>
  (code >= 48 && code <= 57) || (code >= 65 && code <= 90) || (code >= 97 && code <= 122);

/** Specification 1.1.0, "Network configuration" and "Parameters": starts alphanumeric, then alphanumerics, `_`, `.`, `-`. */
function wrongIdentifier(text: string, mostChars: number): string | undefined {
  if (text === "") return "empty";
  if (text.length > mostChars) return `${text.length} characters long`;
  if (!isAlnum(text.charCodeAt(0))) return show(text);
  for (let i = 1; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (!isAlnum(code) && code !== 95 && code !== 46 && code !== 45) return show(text);
  }
  return undefined;
}

const identifierRule = (mostChars: number): string =>
  `1 to ${mostChars} characters: a letter or digit, then letters, digits, "_", "." or "-"`;

export const containerIdRule = identifierRule(limits.containerIdChars);
export const networkNameRule = identifierRule(limits.networkNameChars);
export const ifnameRule = `1 to ${limits.ifnameBytes} bytes without "/", ":", "%", blanks or control characters, and neither "." nor ".."`;
export const deviceNameRule = `an interface name of at most ${limits.ifnameBytes} letters, digits, "_", "." or "-"`;
export const pluginTypeRule = `the name of an executable: 1 to ${limits.pluginTypeChars} printable ASCII characters without "/", "\\" or ":", and no dot or blank at its end`;

export const wrongContainerId = (text: string): string | undefined => wrongIdentifier(text, limits.containerIdChars);

/** It is the name of files and directories too: on Windows some of those are devices, and a dot at the end is dropped. */
export function wrongNetworkName(text: string): string | undefined {
  const problem = wrongIdentifier(text, limits.networkNameChars);
  return problem ?? (paths.isFileName(text) ? undefined : `"${text}", which this system keeps for something else`);
}

/**
 * As the kernel and the reference library have it. Besides, no control characters: the name is in logs and tables, and
 * no "%", since the kernel makes a name of its own of "eth%d".
 */
const cannotBeInIfname = (char: string): boolean =>
  char === "/" || char === ":" || char === "%" || char < " " || char === "\x7f" || char.trim() === "";

export function wrongIfname(text: string): string | undefined {
  if (text === "") return "empty";
  const bytes = new TextEncoder().encode(text).length;
  if (bytes > limits.ifnameBytes) return `${show(text)} of ${bytes} bytes`;
  if (text === "." || text === ".." || [...text].some(cannotBeInIfname)) return show(text);
  return undefined;
}

/** Of an interface of the node's own: it goes into the rules of nftables and below /proc/sys, too. */
export const wrongDeviceName = (text: string): string | undefined =>
  wrongIfname(text) ?? (/^[A-Za-z0-9_.-]+$/.test(text) ? undefined : JSON.stringify(text));

/**
 * `type` and `ipam.type` name an executable inside CNI_PATH and must not lead out of it (CVE-2021-20206). On Windows a
 * colon leads to a drive or to another stream of a file, and a dot or a blank at the end is no part of the name.
 */
export function wrongPluginType(text: string): string | undefined {
  if (text === "") return "empty";
  if (text.length > limits.pluginTypeChars) return `${text.length} characters long`;
  const last = text.at(-1);
  if (last === "." || last === " " || [...text].some(cannotBeInType)) return JSON.stringify(text);
  return undefined;
}

const cannotBeInType = (char: string): boolean =>
  char < " " || char > "~" || char === "/" || char === "\\" || char === ":";
