import { describeCluster } from "./cluster/scenarios.ts";

describeCluster("a cluster of nodes with Open vSwitch", "ovs", ["1.6", "2.2"]);
