import { ownerIn } from "../../ipam/service/mod.ts";
import { ownerFields } from "../../shared/cni/owner-key.ts";
import { CniError } from "../../shared/errors.ts";
import { nodeService } from "../../shared/proto/services.ts";
import { type Rpc, rpc } from "../../shared/server/handlers.ts";
import { type AgentContext, repairOwner } from "../reconcile/mod.ts";
import type { Gate } from "./cni-service.ts";

/**
 * The repairs of `pipette doctor --repair` that the agent has to do, because it owns leases and interfaces while it
 * runs.
 * @param writeConflist writes the runtime's configuration again, where it is not as this agent's has it
 */
export function repairRpcs(context: AgentContext, gate: Gate, writeConflist: () => Promise<void>): readonly Rpc[] {
  return [
    rpc(nodeService.mend, async ({ goneGeneration, ...attachment }, call) => {
      gate.requireReady();
      if (Object.values(attachment).every((name) => name === "")) {
        await repairNode(context);
        await writeConflist();
        return { done: "set the node up again" };
      }
      const owner = ownerIn(attachment);
      const gone = goneGeneration === 0 ? {} : { goneGeneration };
      const done = (await repairOwner(context, owner, { livenessProbes: context.livenessProbes, ...gone })) ?? "";
      call.log.info("mended", { ...ownerFields(owner), done });
      return { done };
    }),
  ];
}

/** Repairs the data path as the janitor does. */
async function repairNode({ dataPath, logger }: AgentContext): Promise<void> {
  try {
    await dataPath.start();
  } catch (caught) {
    throw CniError.from(caught, "mend the node");
  }
  logger.info("mended the node");
}
