import { nextTurn } from "../../shared/async/next-turn.ts";
import { podOf } from "../../shared/cni/args.ts";
import { encodeResult } from "../../shared/cni/result.ts";
import type { Attachment, Owner } from "../../shared/cni/types.ts";
import { latestVersion, parseVersion, supportedVersions } from "../../shared/cni/versions.ts";
import { CniCode, CniError } from "../../shared/errors.ts";
import { limits } from "../../shared/limits.ts";
import { formatCidr, formatIp } from "../../shared/net/ip.ts";
import { ipamService } from "../../shared/proto/daemon-services.ts";
import type {
  AllocateRequest,
  AllocateResponse,
  FindingMessage,
  LeaseMessage,
  NetworkStats,
  RangeStats,
} from "../../shared/proto/ipam-messages.ts";
import type { GcResponse } from "../../shared/proto/pipette-messages.ts";
import { Fields } from "../../shared/schema/json-fields.ts";
import { type CallContext, type Rpc, rpc, streamingRpc } from "../../shared/server/handlers.ts";
import type { Allocator } from "../allocator.ts";
import { checkDatabase } from "../check/check-store.ts";
import { type IpamRequest, parseAnyRanges, parseIpamConfig } from "../config/ipam-config.ts";
import { readSettingsFile } from "../config/settings-file.ts";
import { databaseIn } from "../data-directory.ts";
import { takeOver } from "../host-local/take-over.ts";
import type { Lease } from "../lease.ts";
import { ipamResult, readDns } from "../result.ts";
import { keptIn, networkIn, ownerIn } from "./ipam-request.ts";

/**
 * What differs between the servers of the allocator: the agent has interfaces for its leases, the service alone has
 * none.
 */
export interface IpamHost {
  readonly allocator: Allocator;
  /** The directory of the allocator's database and of the networks' settings files. */
  readonly dataDir: string;
  /** The `ipam` sections of the networks that the server itself has ranges for, by the network's name. */
  readonly sections: ReadonlyMap<string, Readonly<Record<string, unknown>>>;
  /** @throws {CniError} where the network's addresses must not be given out now; absent: they always may */
  requireAddresses?(network: string): void;
  /** Ends the owner's leases; answers them as they are then. */
  release(owner: Owner): readonly Lease[];
  /** Ends every attachment of the network that is not to be kept. */
  collect(network: string, keep: readonly Attachment[], call: CallContext): Promise<Collected>;
}

/** The service `pipette.v1.Ipam`. All leases lie in the host's store: the `dataDir` of a request's configuration is not asked. */
export function ipamRpcs(host: IpamHost): readonly Rpc[] {
  const { allocator } = host;
  return [
    rpc(ipamService.allocate, async (request, call) => {
      const response = await allocate(host, request, call);
      call.log.info("served", { rpc: "Allocate", ...nameOf(request), leases: response.leases.length });
      return response;
    }),
    rpc(ipamService.release, async (request, call) => {
      const released = host.release(ownerIn(request)).map(leaseMessage);
      call.log.info("served", {
        rpc: "Release",
        network: request.network,
        ...nameOf(request),
        leases: released.length,
      });
      return { released };
    }),
    rpc(ipamService.get, async (request) => ({ leases: allocator.find(ownerIn(request)).map(leaseMessage) })),
    streamingRpc(ipamService.list, (request) => list(allocator, networkIn(request))),
    rpc(ipamService.check, async () => ({ findings: await findingsIn(host) })),
    rpc(ipamService.gc, async (request, call) => {
      const keep = keptIn(request);
      // After the caller has gone its list may be old, and newer attachments would be taken for leftovers.
      if (call.signal.aborted) throw gone("run GC");
      const collected = await host.collect(request.network, keep, call);
      const { removed, failures } = collected;
      call.log.info("served", { rpc: "Gc", network: request.network, removed: removed.length, failures });
      return gcAnswer(collected);
    }),
    rpc(ipamService.stats, async (request) => ({ networks: await statsOf(host, networkIn(request)) })),
  ];
}

const nameOf = ({ containerId, ifname }: Attachment): { container: string; ifname: string } => ({
  container: containerId,
  ifname,
});

async function allocate(host: IpamHost, request: AllocateRequest, call: CallContext): Promise<AllocateResponse> {
  const given = Fields.parse(new TextDecoder().decode(request.networkConfiguration));
  const owner = ownerIn({ network: given.string("name") ?? "", ...request });
  host.requireAddresses?.(owner.network);
  const named = given.string("cniVersion") ?? "";
  const version = parseVersion(named);
  if (version === undefined) throw given.wrong("cniVersion", named, `one of ${supportedVersions.join(", ")}`);
  const { conf, settings } = await networkConf(host, given, owner.network);
  const config = parseIpamConfig({ conf, network: owner.network, version, args: request.args, ...settings });
  const dns = await readDns(config);
  await takeOver(host.allocator, owner.network, (line) => call.log.info(line), config);
  if (call.signal.aborted) throw gone("allocate");
  const { leases } = host.allocator.allocate(owner, config, podOf(request.args));
  const text = encodeResult(ipamResult(config, leases, dns), version);
  return { cniResult: new TextEncoder().encode(text), leases: leases.map(leaseMessage) };
}

/** A network's configuration, and the section of its settings file. */
interface FoundConf {
  readonly conf: Fields;
  readonly settings: Pick<IpamRequest, "settings">;
}

/**
 * The configuration of a call with an `ipam` section: its own, else the server's for this network, else the network's
 * settings file.
 * @throws {CniError} code 7 where there is none of them, 5 and 6 as `readSettingsFile`
 */
async function networkConf(host: IpamHost, given: Fields, network: string): Promise<FoundConf> {
  const read = await readSettingsFile(host.dataDir, network);
  const settings = read === undefined ? {} : { settings: read };
  if (given.has("ipam")) return { conf: given, settings };
  const ipam = host.sections.get(network) ?? (read === undefined ? undefined : {});
  if (ipam !== undefined) return { conf: new Fields({ ...given.raw, ipam }), settings };
  const known = [...host.sections.keys()].map((name) => `"${name}"`).join(", ") || "no network";
  throw new CniError(
    CniCode.invalidConfig,
    `Cannot allocate for network "${network}": its configuration has no "ipam" section and the server no ranges for it, wanted one of the two`,
    { details: `the server has ranges for ${known}` },
  );
}

const gone = (action: string): CniError => new CniError(CniCode.tryAgainLater, `Cannot ${action}: its caller has gone`);

async function* list(allocator: Allocator, network: string | undefined): AsyncGenerator<LeaseMessage, void> {
  for (const page of allocator.pages(network)) {
    yield* page.map(leaseMessage);
    // Gives other calls their turn, also when the client reads as fast as leases are sent.
    await nextTurn();
  }
}

/** Statistics of one network or of all that have a lease or ranges of the server's own, by name. */
export async function statsOf(host: IpamHost, network: string | undefined): Promise<readonly NetworkStats[]> {
  const counts = new Map(host.allocator.counts().map((entry) => [entry.network, entry]));
  const names = [...new Set([...counts.keys(), ...host.sections.keys()])].sort();
  const wanted = names.filter((name) => network === undefined || name === network);
  return Promise.all(
    wanted.map(async (name) => {
      const { allocated = 0, releasing = 0, cooling = 0 } = counts.get(name) ?? {};
      return { network: name, allocated, releasing, cooling, ranges: await rangesOf(host, name) };
    }),
  );
}

async function rangesOf({ allocator, dataDir, sections }: IpamHost, network: string): Promise<readonly RangeStats[]> {
  const settings = await readSettingsFile(dataDir, network);
  const conf = new Fields({ name: network, ipam: sections.get(network) ?? {} });
  const request = { conf, network, version: latestVersion, args: "" };
  const config = parseAnyRanges(settings === undefined ? request : { ...request, settings });
  return allocator.usage(network, config).map(({ range, total, used, cooling, free }) => ({
    range,
    total: String(total),
    used,
    cooling,
    free: String(free),
  }));
}

/** The findings of `pipette ipam check` on the host's database, without any configured ranges. */
async function findingsIn({ allocator, dataDir }: IpamHost): Promise<readonly FindingMessage[]> {
  const context = { nowMs: Date.now(), bootId: allocator.bootId };
  const report = await checkDatabase(databaseIn(dataDir), context);
  return (report?.findings ?? []).map((finding) => ({
    ...finding,
    network: finding.network ?? "",
    repairable: finding.repairable ?? false,
  }));
}

/** A lease in the service's message; absent values are empty or 0. */
function leaseMessage(lease: Lease): LeaseMessage {
  return {
    network: lease.owner.network,
    containerId: lease.owner.sandboxId,
    ifname: lease.owner.ifname,
    address: formatCidr(lease.address),
    gateway: lease.gateway === undefined ? "" : formatIp(lease.gateway),
    state: lease.state,
    podNamespace: lease.pod?.namespace ?? "",
    podName: lease.pod?.name ?? "",
    podUid: lease.pod?.uid ?? "",
    generation: lease.generation,
    allocatedAtMs: lease.allocatedAtMs,
    releasedAtMs: lease.releasedAtMs ?? 0,
  };
}

/** The outcome of a GC. */
export interface Collected {
  readonly removed: readonly Attachment[];
  readonly failures: readonly string[];
}

/** Tags and lengths around a field and around an entry. */
const framingBytes = 16;

/**
 * The answer to a GC, which has to fit into one message: failures first, since the caller has to repeat the GC for
 * them, then removed attachments; what does not fit is only counted.
 */
export function gcAnswer({ removed, failures }: Collected, maxBytes: number = limits.messageBytes / 2): GcResponse {
  let room = maxBytes;
  const fits = (...texts: readonly string[]): boolean => {
    room -= texts.reduce((sum, text) => sum + Buffer.byteLength(text), framingBytes);
    return room >= 0;
  };
  const toldFailures = failures.filter((line) => fits(line));
  const told = removed.filter(({ containerId, ifname }) => fits(containerId, ifname));
  const leftOut = removed.length - told.length + failures.length - toldFailures.length;
  return { removed: told, failures: toldFailures, leftOut };
}
