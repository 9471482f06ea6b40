import { type Flow, match, meter, type OpenFlowMeter, throughMeter } from "../../../protocols/openflow/mod.ts";
import { Priority, step } from "./build.ts";
import type { PipelineContext } from "./context.ts";
import { connectionMarks } from "./registers.ts";

/**
 * Connections that a pod may open in a second, once it has used up its burst. All pods of a node share one table of
 * connections, and what nobody answers stays in it for a minute, with the kernel's module up to two: one pod has 65,000
 * entries at the most that way of 3,000,000, and there 125,000 of 262,144 (on nodes with 4 GiB and more). Few pods open
 * a hundred in a second; a proxy that opens one for each request comes to a thousand requests.
 */
const connectionsPerSecond = 1_000;
/** At once, as when a pod starts or is asked again by all who have waited. */
const burst = 5_000;

/** The meter of this number, which is a pod's port's. */
export const newConnectionMeter = (id: number): OpenFlowMeter =>
  meter({ id, unit: "pktps", rate: connectionsPerSecond, burst });

/** What a pod sends that is of no connection yet is counted before it is remembered. */
export const newConnectionFlows = ({ metered }: PipelineContext, { ofport }: { readonly ofport: number }): Flow[] =>
  metered === true
    ? [
        step(
          "ConntrackState",
          Priority.low,
          // One that is remembered without an answer is new still, but has its mark.
          match().set("in_port", ofport).ctState("+new+trk").bits(connectionMarks.source, 0),
          [throughMeter(ofport)],
          "PreRoutingClassifier",
        ),
      ]
    : [];
