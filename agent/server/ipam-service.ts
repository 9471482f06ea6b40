import { type IpamHost, ipamRpcs } from "../../ipam/service/mod.ts";
import { ownerKey } from "../../shared/cni/owner-key.ts";
import type { Rpc } from "../../shared/server/handlers.ts";
import { ipamSection } from "../config/network-sections.ts";
import { type AgentContext, collect, type Janitor } from "../reconcile/mod.ts";
import type { Gate } from "./cni-service.ts";

/** The allocator's service on the agent's store, which takes the agent's interfaces into account. */
export function agentIpamRpcs(context: AgentContext, janitor: Pick<Janitor, "poke">, gate: Gate): readonly Rpc[] {
  const { allocator } = context;
  const host: IpamHost = {
    allocator,
    dataDir: context.config.dataDir,
    // A getter, because a node that joins gets its subnets later.
    get sections() {
      const known = context.config.networks.filter(({ subnets }) => subnets.length > 0);
      return new Map(known.map((network) => [network.name, ipamSection(context.config, network)]));
    },
    requireAddresses: gate.requireAddresses,
    release(owner) {
      // An interface of ours has to be removed first; another plugin's has gone already.
      const hasInterface = context.lastAddAt.has(ownerKey(owner));
      const released = allocator.release(owner, hasInterface ? "releasing" : "cooling");
      if (hasInterface) janitor.poke();
      return released;
    },
    async collect(network, keep, call) {
      gate.requireReady();
      return collect(context, { network, valid: keep }, call);
    },
  };
  return ipamRpcs(host);
}
