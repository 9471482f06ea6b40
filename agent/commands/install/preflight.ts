import { isIPv4 } from "node:net";
import { CniError } from "../../../shared/errors.ts";
import { paths } from "../../../shared/os/paths.ts";
import { isWindows } from "../../../shared/os/platform.ts";
import { exitStatus } from "../../../shared/terminal/exit-status.ts";
import { formatJson, printable } from "../../../shared/terminal/printable.ts";
import { formatTable } from "../../../shared/terminal/table.ts";
import type { TerminalIo } from "../../../shared/terminal/terminal-io.ts";
import type { HostRunner, Listing, Row } from "../../datapath/hns/windows-host/mod.ts";
import { readConfig } from "./config-file.ts";
import { executablesAt, type Places } from "./executables.ts";

/** One requirement of a Windows node, and whether it is met. */
export interface Check {
  readonly what: string;
  /** `missing`: pods get no network without it. `advice`: they do, and better with it. `unknown`: Windows did not say. */
  readonly verdict: "ok" | "missing" | "advice" | "unknown";
  readonly is: string;
  /** What to do; empty where all is well. */
  readonly todo: string;
}

export interface PreflightWish {
  /** The address that pods go out by, where it is known already. */
  readonly nodeAddress: string | undefined;
  readonly places: Places;
  readonly dataDir: string;
}

/** Windows Server 2019: HNS has namespaces of sandboxes from here on. */
const leastBuild = 17_763;
const features = ["Hyper-V", "Hyper-V-PowerShell", "Containers"];
const services = ["hns", "containerd"];
/** UDP, of VXLAN and Geneve. */
const tunnelPorts = ["4789", "6081"];

type Look = (listing: Listing) => Promise<readonly Row[]>;

/**
 * Changes nothing, and continues after a failed query: each runs in a PowerShell of its own, because a missing cmdlet
 * ends a whole script.
 */
export async function preflight(run: HostRunner, wish: PreflightWish): Promise<readonly Check[]> {
  const look: Look = async (listing) => (await run.run("look at this machine", [listing])).get(0) ?? [];
  const checks: readonly (readonly [string, () => Promise<Check>])[] = [
    ["Windows", () => version(look)],
    ["roles and features", () => roles(look)],
    ["services", () => running(look)],
    ["node address", () => address(look, wish)],
    ["tunnel ports", () => ports(look)],
    ["Defender", () => defender(look, wish)],
  ];
  const found: Check[] = [];
  for (const [what, check] of checks) {
    try {
      found.push(await check());
    } catch (caught) {
      found.push({ what, verdict: "unknown", is: CniError.from(caught).message, todo: "look by hand" });
    }
  }
  return found;
}

const text = (row: Row | undefined, field: string): string => {
  const value = row?.[field];
  return typeof value === "string" ? value : "";
};

async function version(look: Look): Promise<Check> {
  const [system] = await look({
    cmdlet: "Get-CimInstance",
    args: { ClassName: "Win32_OperatingSystem" },
    fields: ["Caption", "BuildNumber", "ProductType"],
  });
  const build = Number(text(system, "BuildNumber"));
  const is = `${text(system, "Caption").trim()}, build ${build}`;
  const what = "Windows";
  if (!(build >= leastBuild))
    return { what, verdict: "missing", is, todo: `Windows Server 2019 or later (build ${leastBuild})` };
  // 1 is a workstation's.
  const isServer = text(system, "ProductType") !== "1";
  return isServer
    ? { what, verdict: "ok", is, todo: "" }
    : { what, verdict: "advice", is, todo: "Windows Server: Kubernetes supports nothing else" };
}

async function roles(look: Look): Promise<Check> {
  const listed = await look({ cmdlet: "Get-WindowsFeature", fields: ["Name", "InstallState"] });
  const installed = listed.filter((row) => text(row, "InstallState") === "Installed").map((row) => text(row, "Name"));
  const missing = features.filter((name) => !installed.includes(name));
  const what = "roles and features";
  if (missing.length === 0) return { what, verdict: "ok", is: features.join(", "), todo: "" };
  const todo = `Install-WindowsFeature ${missing.join(",")} -Restart`;
  return { what, verdict: "missing", is: `without ${missing.join(", ")}`, todo };
}

async function running(look: Look): Promise<Check> {
  const listed = await look({ cmdlet: "Get-Service", fields: ["Name", "Status"] });
  const state = (name: string): string =>
    text(
      listed.find((row) => text(row, "Name").toLowerCase() === name),
      "Status",
    ) || "not there";
  const stopped = services.filter((name) => state(name) !== "Running");
  const is = services.map((name) => `${name} ${state(name).toLowerCase()}`).join(", ");
  if (stopped.length === 0) return { what: "services", verdict: "ok", is, todo: "" };
  return {
    what: "services",
    verdict: "missing",
    is,
    todo: `install what is not there; Start-Service ${stopped.join(",")}`,
  };
}

async function address(look: Look, { nodeAddress }: PreflightWish): Promise<Check> {
  const adapters = await look({ cmdlet: "Get-NetAdapter", fields: ["Name", "InterfaceIndex", "Virtual", "Status"] });
  const held = (await look({ cmdlet: "Get-NetIPAddress", fields: ["IPAddress", "InterfaceIndex"] })).flatMap((row) => {
    const adapter = adapters.find((one) => text(one, "InterfaceIndex") === text(row, "InterfaceIndex"));
    const ip = text(row, "IPAddress");
    return adapter === undefined || !isIPv4(ip)
      ? []
      : [{ ip, name: text(adapter, "Name"), virtual: text(adapter, "Virtual") === "True" }];
  });
  const what = "node address";
  const there =
    held.map(({ ip, name, virtual }) => `${ip} on "${name}"${virtual ? ", virtual" : ""}`).join("; ") || "none";
  const cards = held.filter(({ virtual }) => !virtual);
  const give = `--node-address with one of ${cards.map(({ ip }) => ip).join(", ") || "a card's"}`;
  if (nodeAddress === undefined) return { what, verdict: "advice", is: `this machine has ${there}`, todo: give };
  const own = held.find(({ ip }) => ip === nodeAddress);
  if (own === undefined)
    return { what, verdict: "missing", is: `no adapter has ${nodeAddress}; this machine has ${there}`, todo: give };
  if (!own.virtual) return { what, verdict: "ok", is: `${nodeAddress} on "${own.name}"`, todo: "" };
  return {
    what,
    verdict: "missing",
    is: `${nodeAddress} is on "${own.name}", which is virtual: another switch or HNS network has taken the card`,
    todo: "Get-VMSwitch, Get-HnsNetwork: remove that one, unless it is Pipette's own",
  };
}

async function ports(look: Look): Promise<Check> {
  const listed = await look({ cmdlet: "Get-NetUDPEndpoint", fields: ["LocalPort", "OwningProcess"] });
  const taken = listed.filter((row) => tunnelPorts.includes(text(row, "LocalPort")));
  const what = "tunnel ports";
  if (taken.length === 0) return { what, verdict: "ok", is: `UDP ${tunnelPorts.join(" and ")} are free`, todo: "" };
  const is = taken.map((row) => `UDP ${text(row, "LocalPort")} is process ${text(row, "OwningProcess")}'s`).join(", ");
  const todo = "with an Overlay network or Open vSwitch: end it, unless it is the switch itself (Get-Process -Id)";
  return { what, verdict: "advice", is, todo };
}

async function defender(look: Look, { places, dataDir }: PreflightWish): Promise<Check> {
  const [preference] = await look({
    cmdlet: "Get-MpPreference",
    fields: ["ExclusionPath[]", "ExclusionProcess[]", "DisableRealtimeMonitoring"],
  });
  const what = "Defender";
  if (preference === undefined || text(preference, "DisableRealtimeMonitoring") === "True")
    return { what, verdict: "ok", is: "does not look at files", todo: "" };
  const excluded = (field: string, path: string): boolean =>
    [preference[field] ?? []].flat().some((one) => one.toLowerCase() === path.toLowerCase());
  const unknown = executablesAt(places).filter((path) => !excluded("ExclusionProcess", path));
  const paths = excluded("ExclusionPath", dataDir) ? [] : [dataDir];
  if (unknown.length + paths.length === 0) return { what, verdict: "ok", is: "leaves ours alone", todo: "" };
  const list = (all: readonly string[]): string => all.map((path) => `'${path}'`).join(",");
  const todo = [
    "Add-MpPreference",
    ...(unknown.length === 0 ? [] : [`-ExclusionProcess ${list(unknown)}`]),
    ...(paths.length === 0 ? [] : [`-ExclusionPath ${list(paths)}`]),
  ].join(" ");
  return { what, verdict: "advice", is: "looks through each start of the plugin, and the database", todo };
}

/**
 * `pipette install --check`: whether this machine has what an installation needs.
 * @returns exit status: failed where something is missing
 */
export async function runPreflight(
  { configFile, ...wish }: PreflightWish & { readonly configFile: string },
  json: boolean,
  io: TerminalIo,
): Promise<number> {
  if (!isWindows) {
    io.stderr(
      'Cannot check the machine: this is Linux, wanted Windows; here "install --dry-run" says what is missing\n',
    );
    return exitStatus.wrongArguments;
  }
  const config = await readConfig(configFile);
  const hns = config?.networks[0]?.hns;
  const { openHostRunner } = await import("../../datapath/hns/windows-host/mod.ts");
  const { formatIp } = await import("../../../shared/net/ip.ts");
  const checks = await preflight(openHostRunner(), {
    ...wish,
    nodeAddress: wish.nodeAddress ?? (hns === undefined ? undefined : formatIp(hns.nodeAddress)),
    dataDir: config?.dataDir ?? wish.dataDir ?? paths.dataDir,
  });
  if (json) io.stdout(formatJson({ checks }));
  else {
    const rows = checks.map(({ what, verdict, is, todo }) => [verdict, what, is, todo].map(printable));
    io.stdout(formatTable([["VERDICT", "WHAT", "IS", "DO"], ...rows]));
  }
  return checks.some(({ verdict }) => verdict === "missing") ? exitStatus.failed : exitStatus.done;
}
