import { runHostedPlugin } from "../../cni/hosted.ts";
import { ipamRunner } from "../../ipam/service/mod.ts";
import { callDirectly } from "../../shared/server/direct-call.ts";
import type { Forwarding } from "../../shared/server/forward/forwarded-calls.ts";
import type { CniRunner } from "../../shared/server/forward/run-forwarded.ts";
import type { Rpc } from "../../shared/server/handlers.ts";
import { buildId } from "../../shared/version.ts";
import type { AgentContext } from "../reconcile/mod.ts";

/**
 * How long before the caller's deadline a call is answered, so that the answer arrives in time; less for short
 * deadlines.
 */
const answerMs = 100;

/**
 * Answers forwarded calls of both plugins by running the plugins' own code in the agent. Its calls to the agent go
 * directly to the handlers of the services, without a socket.
 * @param rpcs those of all of the agent's services
 */
export function agentForwarding(context: AgentContext, rpcs: readonly Rpc[], isReady: () => boolean): Forwarding {
  const { allocator } = context;
  const { socket, dataDir } = context.config;
  const plugin: CniRunner = (io, { signal, agedMs, pass, take }) =>
    runHostedPlugin(io, {
      socket,
      dataDir,
      borrowStore: () => allocator.lend(),
      agedMs,
      pass,
      take: (timeoutMs) => (isReady() ? take(timeoutMs) : pass()),
      ask: (address, method, request, { timeoutMs, trace, startedUptimeMs, untilUptimeMs }) =>
        callDirectly(rpcs, method, request, {
          timeoutMs: timeoutMs - Math.min(answerMs, timeoutMs / 10),
          trace: trace["traceparent"],
          startedUptimeMs,
          untilUptimeMs,
          signal,
          logger: context.logger,
          what: () => `Cannot ask the agent at "${address}"`,
        }),
    });
  return {
    buildId: buildId(),
    runners: { pipette: plugin, "pipette-ipam": ipamRunner({ allocator, dataDir, isReady }) },
  };
}
