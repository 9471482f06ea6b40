import { chmodSync, rmSync } from "node:fs";
import { loadCheck } from "../../../ipam/mod.ts";
import { limits } from "../../../shared/limits.ts";
import type { MendRequest } from "../../../shared/proto/pipette-messages.ts";
import { nodeService } from "../../../shared/proto/services.ts";
import { reasonOf } from "../../../shared/reason.ts";
import { callUnary } from "../../../shared/rpc/call.ts";
import { GrpcCode, RpcError } from "../../../shared/rpc/rpc-error.ts";
import type { AgentConfig } from "../../config/agent-config.ts";
import type { Finding, Repair } from "./finding.ts";

/** The outcome of one repair. */
export interface Repaired {
  readonly what: string;
  /** Absent where it failed. */
  readonly done?: string;
  readonly error?: string;
}

/** Carries out the repairs of the findings, each once, and continues after a failure. */
export async function repair(config: AgentConfig, findings: readonly Finding[]): Promise<readonly Repaired[]> {
  const outcomes: Repaired[] = [];
  const asked = new Set<string>();
  for (const { what, repair: wanted } of findings) {
    if (wanted === undefined || asked.has(JSON.stringify(wanted))) continue;
    asked.add(JSON.stringify(wanted));
    try {
      outcomes.push({ what, done: (await carryOut(config, wanted)) || "nothing was to be done any more" });
    } catch (caught) {
      outcomes.push({ what, error: reasonOf(caught) });
    }
  }
  return outcomes;
}

async function carryOut(config: AgentConfig, wanted: Repair): Promise<string> {
  switch (wanted.t) {
    case "attachment": {
      const { network, sandboxId: containerId, ifname } = wanted.owner;
      return mend(config, { network, containerId, ifname, goneGeneration: wanted.goneGeneration ?? 0 });
    }
    case "node":
      return mend(config, { network: "", containerId: "", ifname: "", goneGeneration: 0 });
    case "database": {
      const { repairStore, databaseIn } = await loadCheck();
      await repairStore(databaseIn(config.dataDir));
      return "derived anew what follows from the leases";
    }
    case "remove":
      rmSync(wanted.path);
      return "removed it";
    case "mode":
      chmodSync(wanted.path, wanted.mode);
      return `gave it mode 0${wanted.mode.toString(8)}`;
  }
}

/** While the agent runs it owns leases and interfaces; without one, its next start does the same repairs. */
async function mend({ socket }: AgentConfig, request: MendRequest): Promise<string> {
  try {
    const { done } = await callUnary(socket, nodeService.mend, request, { timeoutMs: limits.addTimeoutMs });
    return done;
  } catch (caught) {
    if (!(caught instanceof RpcError && caught.grpcCode === GrpcCode.unimplemented)) throw caught;
    throw new Error(
      "Cannot have the agent repair it: the one that runs is of an earlier release, wanted it started again from this executable",
    );
  }
}
