import { describeCluster } from "./cluster/scenarios.ts";

describeCluster("a cluster of nodes with kernel bridges", "bridge", ["1.6", "2.2", "1.7"]);
