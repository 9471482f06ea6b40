import { podOf } from "../shared/cni/args.ts";
import { type CniRequest, type PluginIo, runPlugin, type VerbHandler, type VerbTable } from "../shared/cni/dispatch.ts";
import { encodeResult, parseResult } from "../shared/cni/result.ts";
import type { Owner } from "../shared/cni/types.ts";
import { validAttachments } from "../shared/cni/valid-attachments.ts";
import { CniCode, CniError } from "../shared/errors.ts";
import { formatCidr, sameIp } from "../shared/net/ip.ts";
import { Allocator } from "./allocator.ts";
import { dataDirOf, type IpamConfig, type IpamRequest, parseAnyRanges, parseIpamConfig } from "./config/ipam-config.ts";
import { readSettingsFile } from "./config/settings-file.ts";
import { hostLocalDirectory } from "./host-local/record.ts";
import { takeOver } from "./host-local/take-over.ts";
import { repairing } from "./recovery/repair.ts";
import { ipamResult, readDns } from "./result.ts";

/**
 * `pipette-ipam`: one CNI call as an IPAM plugin, a drop-in for host-local; answers the exit status.
 *
 * Unlike with host-local, a repeated ADD gives the same answer, GC and STATUS do something, and DEL needs only the
 * names.
 */
export function runIpamPlugin(io: PluginIo, host?: PluginHost): Promise<number> {
  const verbTable: VerbTable = {
    ADD: guarded(add, host),
    DEL: guarded(del, host),
    CHECK: guarded(check, host),
    GC: guarded(gc, host),
    STATUS: guarded(status, host),
  };
  return runPlugin(verbTable, io);
}

type Verb = (request: CniRequest, host: PluginHost | undefined) => Promise<string | undefined>;

/** A daemon that has the store open, and runs a call in place of a process of its own. */
export interface PluginHost {
  /** Milliseconds since the call began, in its caller's process. */
  agedMs(): number;
  /** Runs the call, unless only a process of the caller's own can, and sees what becomes of it. */
  guard(request: CniRequest, run: () => Promise<string | undefined>): Promise<string | undefined>;
  /** The store of this data directory; disposing of it leaves it open. */
  borrow(): Allocator;
  /** Leaves the call to its caller, before anything has been done. @throws always */
  pass(): never;
}

/** Without an agent on the node nothing else would rebuild a damaged database. */
const guarded =
  (verb: Verb, host: PluginHost | undefined): VerbHandler =>
  (request) => {
    const run = (): Promise<string | undefined> => verb(request, host);
    if (host !== undefined) return host.guard(request, run);
    return repairing(
      () => dataDirOf(request.conf),
      (line) => request.io.log(line),
      run,
    );
  };

const ownerOf = ({ network, env }: CniRequest): Owner => ({
  network,
  sandboxId: env.containerId,
  ifname: env.ifname,
});

/**
 * The configuration with the network's settings file, for the verbs that give out addresses; the others must work
 * without that file.
 * @throws what `parse` throws, with unknown keys added, since a misspelt key may be the reason
 */
async function configOf(
  request: CniRequest,
  args: string,
  parse: (request: IpamRequest) => IpamConfig,
  host: PluginHost | undefined,
): Promise<IpamConfig> {
  const settings = await readSettingsFile(dataDirOf(request.conf), request.network);
  try {
    return parse({ ...request, args, ...(settings === undefined ? {} : { settings }) });
  } catch (caught) {
    // To look for misspelt keys takes its time, in which nobody else would be served.
    host?.pass();
    throw (await import("./config/unknown-keys.ts")).withUnknownKeys(caught, request.conf);
  }
}

/** An ADD takes an address of each, in a tenth of a millisecond; a daemon serves nobody else meanwhile. */
const maxHostedSets = 16;

async function add(request: CniRequest, host?: PluginHost): Promise<string> {
  const config = await configOf(request, request.env.args, parseIpamConfig, host);
  // The one is a file of the caller's mounts, the other would have everybody else wait.
  if (config.resolvConf !== undefined || config.rangeSets.length > maxHostedSets) host?.pass();
  const dns = await readDns(config);
  using allocator = host?.borrow() ?? (await Allocator.open(config.dataDir));
  await takeOver(allocator, request.network, (line) => request.io.log(line), config);
  const { leases } = allocator.allocate(ownerOf(request), config, podOf(request.env.args));
  return encodeResult(ipamResult(config, leases, dns), request.version);
}

/**
 * The allocator, if anything was ever leased by it or by host-local. A failing import of host-local's leases is ignored
 * here and reported by the next ADD, because our own leases do not depend on it.
 */
async function openLeased({ conf, network, io }: CniRequest, host?: PluginHost): Promise<Allocator | undefined> {
  const dataDir = dataDirOf(conf);
  let allocator = host?.borrow() ?? (await Allocator.openExisting(dataDir));
  try {
    if (allocator === undefined && (await hostLocalDirectory(dataDir, network)) !== undefined)
      allocator = await Allocator.open(dataDir);
    if (allocator !== undefined) await takeOver(allocator, network, (line) => io.log(line));
  } catch (caught) {
    io.log(CniError.from(caught, "take over from host-local").message);
  }
  return allocator;
}

/**
 * Straight to `cooling`, because without an agent nothing would end `releasing`. The main plugin removes the interface
 * in the same call, some before and some after this; the cooldown keeps the address from the next pod meanwhile.
 */
async function del(request: CniRequest, host?: PluginHost): Promise<undefined> {
  using allocator = await openLeased(request, host);
  allocator?.release(ownerOf(request), "cooling");
}

async function check(request: CniRequest, host?: PluginHost): Promise<undefined> {
  using allocator = await openLeased(request, host);
  const leases = allocator?.find(ownerOf(request)) ?? [];
  const { containerId, ifname } = request.env;
  const who = `"${ifname}" of sandbox "${containerId}"`;
  if (leases.length === 0)
    throw new CniError(CniCode.checkFailure, `Cannot confirm the address of ${who}: it has none`);
  const previous = request.conf.object("prevResult");
  if (previous === undefined) return;
  const { ips } = parseResult(previous, request.version);
  const strayed = leases.find(({ address }) => !ips.some((ip) => sameIp(ip.address.ip, address.ip)));
  if (strayed === undefined) return;
  const listed = ips.map((ip) => `"${formatCidr(ip.address)}"`).join(", ") || "no address";
  throw new CniError(
    CniCode.checkFailure,
    `Cannot confirm the address of ${who}: "prevResult" has ${listed}, wanted "${formatCidr(strayed.address)}", which it holds`,
  );
}

async function gc(request: CniRequest, host?: PluginHost): Promise<undefined> {
  const started = performance.now();
  const valid = validAttachments(request.conf);
  using allocator = await openLeased(request, host);
  // A call that another process runs may have waited for that.
  const listAgeMs = (): number => host?.agedMs() ?? performance.now() - started;
  const given = allocator?.retain(request.network, valid, "cooling", listAgeMs) ?? [];
  for (const owner of given) {
    request.io.log(
      `Gave up the address of "${owner.ifname}" of sandbox "${owner.sandboxId}": it is not among the attachments to keep`,
    );
  }
}

/**
 * Whether an ADD can use the configuration. A full pool or a database that cannot be written is reported by ADD
 * instead: it affects only new pods, and reporting it here would make the node not ready and get all its pods evicted.
 */
async function status(request: CniRequest, host: PluginHost | undefined): Promise<undefined> {
  await configOf(request, "", parseAnyRanges, host);
}
