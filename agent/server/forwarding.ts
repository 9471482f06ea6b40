import { runHostedPlugin } from "../../cni/hosted.ts";
import { ipamRunner } from "../../ipam/service/mod.ts";
import { uptimeMs } from "../../shared/os/uptime.ts";
import { callDirectly } from "../../shared/server/direct-call.ts";
import type { Forwarding } from "../../shared/server/forward/forwarded-calls.ts";
import type { CniRunner } from "../../shared/server/forward/run-forwarded.ts";
import type { Rpc } from "../../shared/server/handlers.ts";
import { buildId } from "../../shared/version.ts";
import type { AgentContext } from "../reconcile/mod.ts";

/** The caller gives up at the end of its time: our own word has to be there before. Less where there is little. */
const answerMs = 100;

/**
 * Calls of both plugins that are handed to the agent as they came. It runs the plugins' own code, whose calls to the
 * agent go to the handlers of its services without the way over the socket.
 * @param rpcs of all of its services
 */
export function agentForwarding(context: AgentContext, rpcs: readonly Rpc[], isReady: () => boolean): Forwarding {
  const { allocator } = context;
  const { socket, dataDir } = context.config;
  const plugin: CniRunner = (io, { call, signal, pass, take }) =>
    runHostedPlugin(io, {
      socket,
      dataDir,
      borrowStore: () => allocator.lend(),
      agedMs: () => Math.max(0, (uptimeMs() ?? 0) - call.startedUptimeMs),
      pass,
      take: (timeoutMs) => (isReady() ? take(timeoutMs) : pass()),
      ask: (address, method, request, { timeoutMs, metadata = {} }) =>
        callDirectly(rpcs, method, request, {
          timeoutMs: timeoutMs - Math.min(answerMs, timeoutMs / 10),
          metadata,
          signal,
          logger: context.logger,
          what: `Cannot ask the agent at "${address}"`,
        }),
    });
  return {
    buildId: buildId(),
    runners: { pipette: plugin, "pipette-ipam": ipamRunner({ allocator, dataDir, isReady }) },
  };
}
