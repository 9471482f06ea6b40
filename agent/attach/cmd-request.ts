import { podOf } from "../../shared/cni/args.ts";
import {
  type ContainerKind,
  containerKindLeniently,
  containerKindStrictly,
  sandboxIdOf,
} from "../../shared/cni/container-kind.ts";
import { readConf } from "../../shared/cni/dispatch.ts";
import {
  containerIdRule,
  ifnameRule,
  networkNameRule,
  wrongContainerId,
  wrongIfname,
  wrongNetworkName,
} from "../../shared/cni/names.ts";
import { parseDns } from "../../shared/cni/result.ts";
import type { CniDns, Owner, Pod } from "../../shared/cni/types.ts";
import { type CniVersion, latestVersion, parseVersion, supportedVersions } from "../../shared/cni/versions.ts";
import { CniCode, CniError } from "../../shared/errors.ts";
import { interfaceMac, macRule } from "../../shared/net/mac.ts";
import type { CniCmdRequest } from "../../shared/proto/cni-messages.ts";
import { type Fields, show } from "../../shared/schema/json-fields.ts";
import type { DataPathName } from "../config/agent-config.ts";
import type { Container } from "../datapath/datapath.ts";

export type CmdVerb = "ADD" | "CHECK" | "DEL";

/** One call of the `Cni` service, validated, because input from the socket is not trusted. */
export interface CmdRequest {
  /** The owner of leases and interface: always with the sandbox's id, whichever of its containers asks. */
  readonly owner: Owner;
  readonly container: Container;
  /** CNI_ARGS as it came. */
  readonly args: string;
  readonly pod: Pod | undefined;
  readonly conf: Fields;
  readonly version: CniVersion;
}

/** The kernel's PATH_MAX. */
const longestPathBytes = 4096;

/**
 * Reads a request as strictly as its verb allows: DEL must always be able to finish, so it needs only the owner.
 * @param dataPath says what CNI_NETNS can be: of a kernel bridge a path, of HNS one of three forms
 * @param read reads the network configuration
 * @throws {CniError} codes 1, 4, 6, 7, as the plugin itself would answer
 */
export function parseCmdRequest(
  message: CniCmdRequest,
  verb: CmdVerb,
  dataPath: DataPathName,
  read = readConf,
): CmdRequest {
  const given = message.cniArgs;
  if (given === undefined) throw invalid(verb, '"cni_args" is missing, wanted the arguments of the call');
  const problem = wrongContainerId(given.containerId);
  if (problem !== undefined) throw invalid(verb, `"container_id" is ${problem}, wanted ${containerIdRule}`);
  const ifnameProblem = wrongIfname(given.ifname);
  if (ifnameProblem !== undefined) throw invalid(verb, `"ifname" is ${ifnameProblem}, wanted ${ifnameRule}`);
  const kind = kindOf(verb, given.netns, dataPath);
  const { conf } = read(given.networkConfiguration);
  const network = conf.string("name") ?? "";
  const nameProblem = wrongNetworkName(network);
  if (nameProblem !== undefined) throw conf.wrong("name", conf.get("name"), networkNameRule);
  return {
    owner: { network, sandboxId: sandboxIdOf(given.containerId, kind), ifname: given.ifname },
    container: { id: given.containerId, netns: given.netns, kind },
    args: given.args,
    pod: podOf(given.args),
    conf,
    version: versionOf(conf, verb),
  };
}

/** On Linux every container that a runtime names is a sandbox of its own, with the path of a namespace. */
function kindOf(verb: CmdVerb, netns: string, dataPath: DataPathName): ContainerKind {
  if (dataPath === "hns") return verb === "DEL" ? containerKindLeniently(netns) : containerKindStrictly(netns);
  if (verb !== "DEL") requireNetns(verb, netns);
  return { t: "sandbox" };
}

function requireNetns(verb: CmdVerb, netns: string): void {
  if (netns.startsWith("/") && !netns.includes("\0") && isShort(netns)) return;
  throw invalid(verb, `"netns" is ${show(netns)}, wanted the absolute path of a network namespace`);
}

/** No character takes more than three bytes. */
const isShort = (path: string): boolean =>
  path.length * 3 < longestPathBytes || new TextEncoder().encode(path).length < longestPathBytes;

function versionOf(conf: Fields, verb: CmdVerb): CniVersion {
  if (verb === "DEL") return latestVersion;
  const text = conf.string("cniVersion") ?? "";
  const version = parseVersion(text);
  if (version !== undefined) return version;
  throw new CniError(
    CniCode.incompatibleVersion,
    `Cannot serve the network configuration: "cniVersion" is ${show(text)}, wanted one of ${supportedVersions.join(", ")}`,
  );
}

const invalid = (verb: CmdVerb, problem: string): CniError =>
  new CniError(CniCode.invalidEnvironment, `Cannot read the ${verb} request: ${problem}`);

/** The DNS settings of the runtime for this pod, else those of the configuration; `undefined` if there are none. */
export function requestedDns(conf: Fields): CniDns | undefined {
  const sections = [conf.object("runtimeConfig")?.object("dns"), conf.object("dns")];
  return sections.map(parseDns).find((dns) => Object.values(dns).some((value) => value.length > 0));
}

/** Of the first pair that begins so; most have none, and are not taken apart. */
const macOfArgs = (args: string): string | undefined =>
  args.includes("MAC=")
    ? args
        .split(";")
        .find((pair) => pair.startsWith("MAC="))
        ?.slice(4)
    : undefined;

/** The hardware address that the request asks for: `runtimeConfig.mac`, else `MAC` in CNI_ARGS (podman). */
export function requestedMac(request: CmdRequest): string | undefined {
  const runtime = request.conf.object("runtimeConfig");
  const text = runtime?.string("mac") || macOfArgs(request.args);
  if (text === undefined || text === "") return undefined;
  const mac = interfaceMac(text);
  if (mac !== undefined) return mac;
  throw new CniError(
    CniCode.invalidConfig,
    `Cannot wire "${request.owner.sandboxId}": the hardware address asked for is ${show(text)}, wanted ${macRule}`,
  );
}
