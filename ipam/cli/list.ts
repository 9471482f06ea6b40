import { networkNameRule, wrongNetworkName } from "../../shared/cni/names.ts";
import { CniError } from "../../shared/errors.ts";
import { formatCidr, formatIp } from "../../shared/ip.ts";
import { paths } from "../../shared/paths.ts";
import { Allocator } from "../allocator.ts";
import type { Lease } from "../lease.ts";
import type { CommandIo } from "./command.ts";
import { formatAge, formatTable } from "./table.ts";

const usage = `Usage: pipette ipam list [--network NAME] [--data-dir DIR] [--json]

Shows every lease: address, state, network, sandbox, interface, pod and age.

  --network NAME   only this network's
  --data-dir DIR   where leases.db lies (${paths.dataDir})
  --json           one JSON array: of each lease network, address (with prefix length), gateway, state
                   (allocated, releasing or cooling), containerId, ifname, podNamespace, podName, podUid,
                   rangeSet, bootId, generation, allocatedAt and releasedAt (RFC 3339);
                   what is unknown is left out

Needs no daemon and changes nothing. Exit status: 0 done, 1 failed, also when there is no database, 2 wrong arguments.
`;

interface Options {
  readonly network?: string;
  readonly dataDir: string;
  readonly json: boolean;
}

/** Long enough to tell sandboxes apart, as runtimes' own tools show them. */
const idChars = 13;

export async function runList(args: readonly string[], io: CommandIo): Promise<number> {
  if (args.includes("--help") || args.includes("-h")) {
    io.stdout(usage);
    return 0;
  }
  const options = parseOptions(args);
  if (typeof options === "string") {
    io.stderr(`Cannot list leases: ${options}\n`);
    return 2;
  }
  try {
    using allocator = await Allocator.openExisting(options.dataDir);
    if (allocator === undefined) {
      io.stderr(
        `Cannot list leases: "${options.dataDir}" holds no leases.db, wanted the data directory of a node that gave out addresses\n`,
      );
      return 1;
    }
    const leases = allocator.list(options.network);
    if (options.json) io.stdout(`${JSON.stringify(leases.map(leaseJson), undefined, 2)}\n`);
    else io.stdout(describe(leases, options, Date.now()));
    return 0;
  } catch (caught) {
    const { message, details } = CniError.from(caught, "list leases");
    io.stderr(`${message}\n${details === "" ? "" : `${details}\n`}`);
    return 1;
  }
}

/** The options, or what is wrong with them. */
function parseOptions(args: readonly string[]): Options | string {
  let network: string | undefined;
  let dataDir: string = paths.dataDir;
  let json = false;
  for (let i = 0; i < args.length; i++) {
    const [name = "", ...glued] = (args[i] ?? "").split("=");
    if (name === "--json" && glued.length === 0) {
      json = true;
      continue;
    }
    if (name !== "--network" && name !== "--data-dir")
      return `"${args[i]}" is no option of it, wanted --network, --data-dir, --json or --help`;
    const value = glued.length > 0 ? glued.join("=") : args[++i];
    if (value === undefined || value === "") return `"${name}" has no value, wanted one`;
    if (name === "--data-dir") dataDir = value;
    else if (wrongNetworkName(value) !== undefined) return `the network is "${value}", wanted ${networkNameRule}`;
    else network = value;
  }
  return { dataDir, json, ...(network === undefined ? {} : { network }) };
}

function describe(leases: readonly Lease[], { network }: Options, nowMs: number): string {
  if (leases.length === 0) return network === undefined ? "No leases\n" : `No leases in network "${network}"\n`;
  const header = ["ADDRESS", "STATE", "NETWORK", "SANDBOX", "INTERFACE", "POD", "AGE"];
  const rows = leases.map(({ address, state, owner, pod, allocatedAtMs, releasedAtMs }) => [
    formatIp(address.ip),
    state,
    owner.network,
    owner.sandboxId.length > idChars ? owner.sandboxId.slice(0, idChars) : owner.sandboxId,
    owner.ifname,
    pod === undefined ? "-" : `${pod.namespace}/${pod.name}`,
    // Of a lease that was left: since then, for that is what decides when its address is given again.
    formatAge(nowMs - (releasedAtMs ?? allocatedAtMs)),
  ]);
  return formatTable([header, ...rows]);
}

function leaseJson({ owner, address, gateway, state, pod, releasedAtMs, ...lease }: Lease): Record<string, unknown> {
  return {
    network: owner.network,
    address: formatCidr(address),
    gateway: gateway === undefined ? undefined : formatIp(gateway),
    state,
    containerId: owner.sandboxId,
    ifname: owner.ifname,
    podNamespace: pod?.namespace,
    podName: pod?.name,
    podUid: pod?.uid,
    rangeSet: lease.rangeSet,
    bootId: lease.bootId === "" ? undefined : lease.bootId,
    generation: lease.generation,
    allocatedAt: new Date(lease.allocatedAtMs).toISOString(),
    releasedAt: releasedAtMs === undefined ? undefined : new Date(releasedAtMs).toISOString(),
  };
}
