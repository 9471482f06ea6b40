import { CniCode, CniError } from "../errors.ts";
import { printable } from "../printable.ts";
import { Fields, show } from "../schema/json-fields.ts";
import { type CniEnvironment, parseEnvironment, type Verb } from "./environment.ts";
import { networkNameRule, wrongNetworkName } from "./names.ts";
import { atLeast, type CniVersion, latestVersion, parseVersion, supportedVersions } from "./versions.ts";

/** A network configuration is a few kB; 1 MiB leaves room for long `runtimeConfig` and `prevResult`. */
export const maxStdinBytes = 1024 * 1024;

/** Everything that a call gets from and gives to the process around it. */
export interface PluginIo {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The whole of standard input; a closed one reads as empty. */
  readStdin(): Promise<Uint8Array> | Uint8Array;
  /** Standard output, with the one JSON text. Rejects where that cannot be written, or one has been already. */
  writeResult(text: string): Promise<void>;
  /** Standard error: free-form lines for the runtime's log. */
  log(line: string): void;
  /** Reads the configuration in place of the function of this name. */
  readonly readConf?: (bytes: Uint8Array) => ReadConf;
}

/** A network configuration, read. */
export interface ReadConf {
  readonly text: string;
  readonly conf: Fields;
}

/** One call, checked as far as the specification goes. */
export interface CniRequest {
  readonly env: CniEnvironment;
  readonly version: CniVersion;
  /** Network name, `name` of the configuration. */
  readonly network: string;
  readonly conf: Fields;
  /** The configuration as it came in, for passing it on, and the same as text. */
  readonly stdin: Uint8Array;
  readonly text: string;
  readonly io: PluginIo;
}

/** A verb answers with the result text for stdout, or with nothing. */
export type VerbHandler = (request: CniRequest) => Promise<string | undefined>;

export type VerbTable = Readonly<Record<Exclude<Verb, "VERSION">, VerbHandler>>;

/** The version in which the specification introduced a verb; earlier configurations cannot ask for it. */
const verbSince: Partial<Record<Verb, CniVersion>> = { CHECK: "0.4.0", GC: "1.1.0", STATUS: "1.1.0" };

/**
 * Runs one CNI call from environment and stdin to stdout and the exit status: the specification's
 * "Execution protocol". Nothing but one JSON object is ever written to stdout, and any failure,
 * our own faults included, is such an object together with a status other than zero.
 */
export async function runPlugin(verbTable: VerbTable, io: PluginIo): Promise<number> {
  let version: string = latestVersion;
  try {
    const env = parseEnvironment(io.env);
    const given = io.readStdin();
    const stdin = requireBounded(given instanceof Uint8Array ? given : await given);
    const isEmptyVersion = env.command === "VERSION" && textOf(stdin).trim() === "";
    const { text, conf } = isEmptyVersion ? nothing : (io.readConf ?? readConf)(stdin);
    const named = conf.string("cniVersion") ?? "";
    if (env.command === "VERSION") {
      // An unknown version is echoed too, because VERSION only asks which ones are supported.
      await io.writeResult(JSON.stringify({ cniVersion: named || latestVersion, supportedVersions }));
      return 0;
    }
    const checked = supported(named);
    version = checked;
    const request: CniRequest = { env, io, conf, stdin, text, version: checked, network: conf.derive(networkName) };
    const since = verbSince[env.command];
    if (since !== undefined && !atLeast(request.version, since)) throw tooOld(env.command, request.version, since);
    const result = await verbTable[env.command](request);
    if (result !== undefined) await io.writeResult(result);
    return 0;
  } catch (caught) {
    const error = CniError.from(caught);
    // If stdout cannot be written, the error goes to stderr, so that the failure is not silent.
    await io.writeResult(encodeError(error, version)).catch(() => io.log(error.message));
    return 1;
  }
}

/** The specification's "Error" object. */
export function encodeError(error: CniError, cniVersion: string): string {
  // Escaped, because runtimes pass it on to logs, events and terminals.
  return printable(JSON.stringify({ cniVersion, code: error.code, msg: error.message, details: error.details }));
}

function requireBounded(bytes: Uint8Array): Uint8Array {
  if (bytes.length > maxStdinBytes) {
    throw new CniError(
      CniCode.decode,
      // Reading stops soon after the bound, so the whole length is not known.
      `Cannot read the network configuration: it is longer than ${maxStdinBytes} bytes`,
    );
  }
  return bytes;
}

const textOf = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

/** VERSION may come without a configuration. */
const nothing: ReadConf = { text: "", conf: new Fields({}) };

/** @throws {CniError} as `Fields.parse` */
export function readConf(bytes: Uint8Array): ReadConf {
  const text = textOf(bytes);
  return { text, conf: Fields.parse(text) };
}

function supported(given: string): CniVersion {
  const version = parseVersion(given);
  if (version !== undefined) return version;
  throw new CniError(
    CniCode.incompatibleVersion,
    `Cannot serve the network configuration: "cniVersion" is ${show(given)}, wanted one of ${supportedVersions.join(", ")}`,
  );
}

function networkName(conf: Fields): string {
  const name = conf.string("name");
  const problem = name === undefined ? "missing" : wrongNetworkName(name);
  if (name === undefined || problem !== undefined) {
    throw new CniError(
      CniCode.invalidConfig,
      `Cannot read the network configuration: "name" is ${problem}, wanted ${networkNameRule}`,
    );
  }
  return name;
}

function tooOld(verb: Verb, version: CniVersion, since: CniVersion): CniError {
  return new CniError(
    CniCode.incompatibleVersion,
    `Cannot run ${verb}: "cniVersion" is "${version}", wanted "${since}" or later`,
  );
}
