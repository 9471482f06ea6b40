import { podOf } from "../../shared/cni/args.ts";
import { encodeResult } from "../../shared/cni/result.ts";
import type { Owner } from "../../shared/cni/types.ts";
import { parseVersion, supportedVersions } from "../../shared/cni/versions.ts";
import { CniCode, CniError } from "../../shared/errors.ts";
import { ipamService } from "../../shared/proto/daemon-services.ts";
import type { AllocateRequest, AllocateResponse, LeaseMessage } from "../../shared/proto/ipam-messages.ts";
import { Fields } from "../../shared/schema/json-fields.ts";
import { type CallContext, type Rpc, rpc, streamingRpc } from "../../shared/server/handlers.ts";
import type { Allocator, Attachment } from "../allocator.ts";
import { parseIpamConfig } from "../config/ipam-config.ts";
import type { Lease } from "../lease.ts";
import { ipamResult, readDns } from "../result.ts";
import { type Collected, gcAnswer } from "./gc-answer.ts";
import { keptIn, networkIn, ownerIn } from "./ipam-request.ts";
import { leaseMessage } from "./lease-message.ts";
import { networkConf } from "./network-conf.ts";
import { statsOf } from "./network-stats.ts";
import { findingsIn } from "./store-findings.ts";

/** What differs between the servers of the allocator: whether interfaces of theirs stand on the leases. */
export interface IpamHost {
  readonly allocator: Allocator;
  /** Where the allocator's database lies, and networks' settings files. */
  readonly dataDir: string;
  /** The `ipam` sections of the networks that the server itself has ranges for, by the network's name. */
  readonly sections: ReadonlyMap<string, Readonly<Record<string, unknown>>>;
  /** @throws {CniError} where the network's addresses may not be given out now; absent: they always may */
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
      // The list of a caller that has gone may be old: what has come since would be taken for a leftover.
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
  await host.allocator.takeOver(owner.network, (line) => call.log.info(line), config);
  if (call.signal.aborted) throw gone("allocate");
  const { leases } = host.allocator.allocate(owner, config, podOf(request.args));
  const text = encodeResult(await ipamResult(config, leases, dns), version);
  return { cniResult: new TextEncoder().encode(text), leases: leases.map(leaseMessage) };
}

const gone = (action: string): CniError =>
  new CniError(CniCode.tryAgainLater, `Cannot ${action}: its caller has gone, wanted it to wait for the answer`);

async function* list(allocator: Allocator, network: string | undefined): AsyncGenerator<LeaseMessage, void> {
  for (const page of allocator.pages(network)) {
    yield* page.map(leaseMessage);
    // Other calls get their turn, also where the caller takes all as fast as it comes.
    await new Promise((resolve) => setImmediate(resolve));
  }
}
