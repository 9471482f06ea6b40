import { describeCluster } from "./cluster/scenarios.ts";

describeCluster("a cluster of nodes with kernel bridges", "bridge");
