import { type Flow, match, meter, type OpenFlowMeter, throughMeter } from "../../../protocols/openflow/mod.ts";
import { Priority, step } from "./build.ts";
import type { PipelineContext } from "./context.ts";
import { connectionMarks } from "./registers.ts";

/**
 * Connections that a pod may open per second after its burst. All pods of a node share one connection table, in which
 * unanswered connections stay for a minute, with the kernel's module up to two. So one pod has at most 65,000 of
 * 3,000,000 entries, and with the module 125,000 of 262,144 (on nodes with 4 GiB and more). Few pods open a hundred per
 * second; a proxy with one connection per request reaches a thousand requests.
 */
const connectionsPerSecond = 1_000;
/** Connections at once, as when a pod starts or many clients return. */
const burst = 5_000;

/** The meter of this number, which is a pod's port's. */
export const newConnectionMeter = (id: number): OpenFlowMeter =>
  meter({ id, unit: "pktps", rate: connectionsPerSecond, burst });

/** Packets of a pod that open a connection pass the meter before the connection is committed. */
export const newConnectionFlows = ({ metered }: PipelineContext, { ofport }: { readonly ofport: number }): Flow[] =>
  metered === true
    ? [
        step(
          "ConntrackState",
          Priority.low,
          // A committed connection without an answer is still new, but has its mark.
          match().set("in_port", ofport).ctState("+new+trk").bits(connectionMarks.source, 0),
          [throughMeter(ofport)],
          "PreRoutingClassifier",
        ),
      ]
    : [];
