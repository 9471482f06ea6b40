import type { Fault } from "../fault.ts";
import { agentFaults } from "./agent.ts";
import { killedFaults } from "./killed.ts";

/** Everything that can go wrong on a node, as docs/reliability.md lists it; one file a family. */
export const faults: readonly Fault[] = [...agentFaults, ...killedFaults];
