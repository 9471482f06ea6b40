import { describeCluster } from "./cluster/scenarios.ts";

describeCluster("a cluster of nodes with Open vSwitch", "ovs");
