import { type IpamHost, ipamRpcs } from "../../ipam/service/mod.ts";
import { ownerKey } from "../../shared/cni/owner-key.ts";
import type { Rpc } from "../../shared/server/handlers.ts";
import { ipamSection } from "../config/network-sections.ts";
import type { AgentContext } from "../reconcile/agent-context.ts";
import { collect } from "../reconcile/gc.ts";
import type { Janitor } from "../reconcile/janitor.ts";
import type { Gate } from "./cni-service.ts";

/** The allocator's own service, on the agent's store and with its interfaces in mind. */
export function agentIpamRpcs(context: AgentContext, janitor: Pick<Janitor, "poke">, gate: Gate): readonly Rpc[] {
  const { allocator } = context;
  const host: IpamHost = {
    allocator,
    dataDir: context.config.dataDir,
    // A node that joins gets its subnets late.
    get sections() {
      const known = context.config.networks.filter(({ subnets }) => subnets.length > 0);
      return new Map(known.map((network) => [network.name, ipamSection(context.config, network)]));
    },
    requireAddresses: gate.requireAddresses,
    release(owner) {
      // Where an interface of ours stands on the lease it must go first; another plugin's has gone already.
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
