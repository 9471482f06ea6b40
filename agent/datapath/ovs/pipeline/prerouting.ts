import { type Flow, load, match, resubmit } from "../../../protocols/openflow/mod.ts";
import { Priority, step } from "./build.ts";
import { EndpointState, registers } from "./registers.ts";
import { tables } from "./tables.ts";

const { toSelect, selected } = EndpointState;

/** The way of new connections through the tables of services, which holds without any service too. */
export const preRoutingFlows: readonly Flow[] = [
  step("PreRoutingClassifier", Priority.miss, match(), [resubmit(tables.SessionAffinity), resubmit(tables.ServiceLB)]),
  step("SessionAffinity", Priority.miss, match(), [load(registers.endpointState, toSelect)]),
  // A client's remembered endpoint has gone: another is chosen.
  step("EndpointDNAT", Priority.low, match().bits(registers.endpointState, selected), [
    load(registers.endpointState, toSelect),
    resubmit(tables.ServiceLB),
  ]),
];
