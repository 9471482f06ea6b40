import { maxStdinBytes } from "../../shared/cni/dispatch.ts";
import { ipamKind } from "../../shared/cni/ipam-kind.ts";
import { networkNameRule, wrongNetworkName } from "../../shared/cni/names.ts";
import { type CniVersion, parseVersion, supportedVersions } from "../../shared/cni/versions.ts";
import { CniCode, CniError } from "../../shared/errors.ts";
import { reasonOf } from "../../shared/reason.ts";
import { withFaultPlace } from "../../shared/schema/json-fault.ts";
import { Fields } from "../../shared/schema/json-fields.ts";
import type { TerminalIo } from "../../shared/terminal/terminal-io.ts";
import { dataDirOf, type IpamConfig, parseIpamConfig } from "../config/ipam-config.ts";
import { readSettingsFile } from "../config/settings-file.ts";

/** A network as its configuration file has it. */
export interface NetworkConf {
  readonly network: string;
  readonly version: CniVersion;
  /** The plugin's part, with the allocator's section. */
  readonly conf: Fields;
}

/**
 * Reads a `.conf`, or from a `.conflist` the plugin that uses our allocator.
 * @param file path, or `-` for standard input
 * @throws {CniError} code 5, 6 or 7 naming file or field
 */
export async function readNetworkConf(file: string, io: TerminalIo): Promise<NetworkConf> {
  const document = parsed(await readInput(file, "network configuration", io));
  const network = document.string("name") ?? "";
  if (wrongNetworkName(network) !== undefined) throw document.wrong("name", network, networkNameRule);
  const given = document.string("cniVersion") ?? "";
  const version = parseVersion(given);
  if (version === undefined) throw document.wrong("cniVersion", given, `one of ${supportedVersions.join(", ")}`);
  return { network, version, conf: pluginIn(document) };
}

function parsed(text: string): Fields {
  try {
    return Fields.parse(text);
  } catch (caught) {
    throw withFaultPlace(caught, text);
  }
}

function pluginIn(document: Fields): Fields {
  const plugins = document.objects("plugins");
  if (plugins === undefined) return document;
  const ours = plugins.find((plugin) => plugin.has("ipam") && ipamKind(plugin) === "own");
  if (ours === undefined)
    throw document.wrong(
      "plugins",
      plugins.map((plugin) => plugin.get("type")),
      'one whose "ipam.type" is "pipette-ipam"',
    );
  return ours;
}

/** The allocator's section, checked as ADD checks it. */
export async function ipamConfigOf({ conf, network, version }: NetworkConf): Promise<IpamConfig> {
  const settings = await readSettingsFile(dataDirOf(conf), network);
  return parseIpamConfig({ conf, network, version, args: "", ...(settings === undefined ? {} : { settings }) });
}

/**
 * A file, or standard input, up to the bound of a network configuration.
 * @throws {CniError} code 5 naming it
 */
export async function readInput(file: string, what: string, io: TerminalIo): Promise<string> {
  const most = maxStdinBytes;
  let bytes: Uint8Array;
  try {
    // One byte more than allowed, so that a file that is too long is noticed.
    bytes =
      file === "-"
        ? await io.stdin()
        : await Bun.file(file)
            .slice(0, most + 1)
            .bytes();
  } catch (cause) {
    throw unreadable(file, what, reasonOf(cause), "a readable file", cause);
  }
  if (bytes.length > most) throw unreadable(file, what, `it is longer than ${most} bytes`, "less");
  return new TextDecoder().decode(bytes);
}

function unreadable(file: string, what: string, is: string, wanted: string, cause?: unknown): CniError {
  const from = file === "-" ? "from standard input" : `"${file}"`;
  return new CniError(CniCode.io, `Cannot read the ${what} ${from}: ${is}, wanted ${wanted}`, { cause });
}
