import type { Fault } from "../workload/fault.ts";
import { agentFaults } from "./agent.ts";
import { behindOurBack } from "./behind-our-back.ts";
import { clockFaults } from "./clock.ts";
import { diskFaults } from "./disk.ts";
import { etcdFaults } from "./etcd.ts";
import { hnsFaults } from "./hns.ts";
import { killedFaults } from "./killed.ts";
import { nodeFaults } from "./node.ts";
import { ovsFaults } from "./ovs.ts";

/** Everything that can go wrong on a node, as docs/reliability.md lists it; one file a family. */
export const faults: readonly Fault[] = [
  ...agentFaults,
  ...killedFaults,
  ...diskFaults,
  ...clockFaults,
  ...nodeFaults,
  ...behindOurBack,
  ...ovsFaults,
  ...etcdFaults,
  ...hnsFaults,
];
