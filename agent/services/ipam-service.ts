import { ipamResult, type Lease, parseIpamConfig } from "../../ipam/mod.ts";
import { podOf } from "../../shared/cni/args.ts";
import {
  containerIdRule,
  ifnameRule,
  networkNameRule,
  wrongContainerId,
  wrongIfname,
  wrongNetworkName,
} from "../../shared/cni/names.ts";
import { encodeResult } from "../../shared/cni/result.ts";
import type { Owner } from "../../shared/cni/types.ts";
import { parseVersion, supportedVersions } from "../../shared/cni/versions.ts";
import { CniCode, CniError } from "../../shared/errors.ts";
import { formatCidr, formatIp } from "../../shared/ip.ts";
import { Fields, show } from "../../shared/json-fields.ts";
import { ipamService } from "../../shared/proto/daemon-services.ts";
import type { AllocateRequest, AllocateResponse, LeaseMessage } from "../../shared/proto/ipam-messages.ts";
import { type Rpc, rpc, streamingRpc } from "../../shared/server/handlers.ts";
import type { AgentParts } from "../agent-parts.ts";
import type { Janitor } from "../state/janitor.ts";
import { ownerFields, ownerKey } from "../state/owner-key.ts";

/** The allocator by itself, on the agent's own store: a configuration's `dataDir` is not asked. */
export function ipamRpcs(parts: AgentParts, janitor: Pick<Janitor, "poke">): readonly Rpc[] {
  const { allocator } = parts;
  return [
    rpc(ipamService.allocate, async (request, call) => {
      const response = await allocate(parts, request);
      call.log.info("served", { rpc: "Allocate", container: request.containerId, leases: response.leases.length });
      return response;
    }),
    rpc(ipamService.release, async (request, call) => {
      const owner = requireOwner(request.network, request.containerId, request.ifname);
      // Where an interface of ours stands on the lease it must go first; another plugin's has gone already.
      const wired = parts.attached.has(ownerKey(owner));
      const released = allocator.release(owner, wired ? "releasing" : "cooling");
      if (wired) janitor.poke();
      call.log.info("served", { rpc: "Release", ...ownerFields(owner), leases: released.length });
      return { released: released.map(toMessage) };
    }),
    rpc(ipamService.get, async (request) => {
      const owner = requireOwner(request.network, request.containerId, request.ifname);
      return { leases: allocator.find(owner).map(toMessage) };
    }),
    streamingRpc(ipamService.list, async function* (request) {
      for (const page of allocator.pages(request.network === "" ? undefined : request.network))
        yield* page.map(toMessage);
    }),
  ];
}

async function allocate(parts: AgentParts, request: AllocateRequest): Promise<AllocateResponse> {
  const conf = Fields.parse(new TextDecoder().decode(request.networkConfiguration));
  const owner = requireOwner(conf.string("name") ?? "", request.containerId, request.ifname);
  const given = conf.string("cniVersion") ?? "";
  const version = parseVersion(given);
  if (version === undefined) throw conf.wrong("cniVersion", given, `one of ${supportedVersions.join(", ")}`);
  const config = parseIpamConfig({ conf, network: owner.network, version, args: request.args });
  const { leases } = parts.allocator.allocate(owner, config, podOf(request.args));
  const text = encodeResult(await ipamResult(config, leases), version);
  return { cniResult: new TextEncoder().encode(text), leases: leases.map(toMessage) };
}

/** @throws {CniError} code 4 or 7 naming the field */
function requireOwner(network: string, sandboxId: string, ifname: string): Owner {
  const rules = [
    ["network", network, wrongNetworkName, networkNameRule, CniCode.invalidConfig],
    ["container_id", sandboxId, wrongContainerId, containerIdRule, CniCode.invalidEnvironment],
    ["ifname", ifname, wrongIfname, ifnameRule, CniCode.invalidEnvironment],
  ] as const;
  for (const [name, value, wrong, wanted, code] of rules) {
    if (wrong(value) !== undefined)
      throw new CniError(code, `Cannot read the request: "${name}" is ${show(value)}, wanted ${wanted}`);
  }
  return { network, sandboxId, ifname };
}

export function toMessage(lease: Lease): LeaseMessage {
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
