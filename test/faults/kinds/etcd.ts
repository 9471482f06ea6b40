import type { EtcdCluster } from "../../registry/etcd-cluster.ts";
import { requireOvs } from "../node/ovs-node.ts";
import type { Fault } from "../workload/fault.ts";

type Signal = "SIGKILL" | "SIGSTOP";

/** A node that has joined goes on without its registry: no call is refused. */
const ofRegistry = (name: string, whom: (etcd: EtcdCluster) => Promise<readonly number[]>, signal: Signal): Fault => ({
  name,
  on: ["ovs"],
  refusals: {},
  strike: async (node) => {
    const { etcd } = requireOvs(node);
    const members = await whom(etcd);
    for (const i of members) await etcd.signal(i, signal);
    return {
      what: `${members.length === 1 ? "member" : "members"} ${members.join(", ")}`,
      lost: [],
      [Symbol.asyncDispose]: async () => {
        // Side by side: none of them serves before there is a majority.
        await Promise.all(members.map((i) => (signal === "SIGKILL" ? etcd.startMember(i) : etcd.signal(i, "SIGCONT"))));
        await Promise.all([0, 1, 2].map((i) => etcd.healthy(i)));
      },
    };
  },
});

const leader = async (etcd: EtcdCluster): Promise<readonly number[]> => [await etcd.leader()];
const majority = async (etcd: EtcdCluster): Promise<readonly number[]> => {
  const first = await etcd.leader();
  return [first, (first + 1) % 3];
};
const everybody = async (): Promise<readonly number[]> => [0, 1, 2];

export const etcdFaults: readonly Fault[] = [
  ofRegistry("etcd's leader is killed", leader, "SIGKILL"),
  ofRegistry("etcd's leader is frozen", leader, "SIGSTOP"),
  ofRegistry("etcd loses its majority", majority, "SIGKILL"),
  ofRegistry("all of etcd is killed", everybody, "SIGKILL"),
  ofRegistry("all of etcd is frozen", everybody, "SIGSTOP"),
];
