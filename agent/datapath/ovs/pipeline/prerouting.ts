import { type Flow, load, match, resubmit } from "../../../protocols/openflow/mod.ts";
import { Priority, step } from "./build.ts";
import { EndpointState, registers } from "./registers.ts";
import { tables } from "./tables.ts";

const { toSelect, selected } = EndpointState;

/** The path of new connections through the tables of services, also without any service. */
export const preRoutingFlows: readonly Flow[] = [
  step("PreRoutingClassifier", Priority.miss, match(), [resubmit(tables.SessionAffinity), resubmit(tables.ServiceLB)]),
  step("SessionAffinity", Priority.miss, match(), [load(registers.endpointState, toSelect)]),
  // The endpoint of a client with session affinity has gone, so another is chosen.
  step("EndpointDNAT", Priority.low, match().bits(registers.endpointState, selected), [
    load(registers.endpointState, toSelect),
    resubmit(tables.ServiceLB),
  ]),
];
