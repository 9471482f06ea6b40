import { type Action, ct, type Flow, load, match, move } from "../../../protocols/openflow/mod.ts";
import { Priority, step } from "./build.ts";
import type { PipelineContext } from "./context.ts";
import { familiesOf } from "./families.ts";
import { connectionMarks, registers, zones } from "./registers.ts";
import { tables } from "./tables.ts";

/** Where the connection comes from, for its replies; part of each `ct(commit)` of a connection's first packet. */
export const rememberSource: Action = move(registers.source, connectionMarks.source);

/** Looks connections up, separates known from new ones, and commits new ones that have passed all tables. */
export const connectionFlows = (context: PipelineContext): Flow[] =>
  familiesOf(context).flatMap((family) => {
    const ip = () => match().family(family);
    const zone = zones[family].main;
    const lookUp = ct({ table: tables.ConntrackState, zone, nat: { side: "existing" } });
    const commit = ct({ commit: true, table: tables.Output, zone, exec: [rememberSource] });
    const known = () => ip().ctState("-new+trk");
    return [
      step("ConntrackZone", Priority.normal, ip(), [lookUp]),
      step("ConntrackState", Priority.normal, ip().ctState("+inv+trk"), []),
      // An established connection to a service: its packets go to the endpoint that was chosen at the first packet.
      step(
        "ConntrackState",
        Priority.low,
        known().bits(connectionMarks.service, 1),
        [load(registers.rewriteMac, 1)],
        "EgressRule",
      ),
      step("ConntrackState", Priority.low, known().bits(connectionMarks.service, 0), [], "EgressRule"),
      // Connections of services, and those whose source is translated, were committed on their way.
      step("ConntrackCommit", Priority.normal, ip().ctState("+new+trk-snat").bits(connectionMarks.service, 0), [
        commit,
      ]),
    ];
  });
