import { afterEach, beforeAll, expect, test } from "vitest";
import { compileExecutables } from "../conformance/plugin.ts";
import { EtcdCluster } from "../registry/etcd-cluster.ts";
import { NetworkNamespace } from "../support/network-namespace.ts";
import { describeWith } from "../support/requires.ts";
import { SampleNode } from "./lab/sample-node.ts";

const members = ["192.168.1.21", "192.168.1.22", "192.168.1.23"];

/** Three machines with nothing but Open vSwitch and these files. */
describeWith("the sample files of three nodes", ["root", "openvswitch", "nft", "etcd"], () => {
  let stack: AsyncDisposableStack;
  beforeAll(compileExecutables, 120_000);
  afterEach(() => stack?.[Symbol.asyncDispose]());

  test.each(["static", "etcd"])(
    "%s: pods of all of them answer each other's first pings, and once",
    async (kind) => {
      stack = new AsyncDisposableStack();
      const link = stack.use(NetworkNamespace.create());
      await link.ip(
        "link set lo up",
        "link add lan type bridge mcast_snooping 0",
        "link set lan up",
        ...["192.168.1.1", ...members].map((address) => `addr add ${address}/24 dev lan`),
      );
      if (kind === "etcd") {
        const places = members.map((address) => ({ address, within: link.within }));
        stack.use(await EtcdCluster.start({ members: places }));
      }
      const nodes = await Promise.all([1, 2, 3].map((number) => SampleNode.start(kind, number, link)));
      for (const node of nodes) stack.use(node);
      await Promise.all(nodes.map((node) => node.startAgent()));
      await Promise.all(nodes.map((node) => node.knowsOthers(nodes.length - 1)));
      const pods = await Promise.all(nodes.map((node) => node.addPod("web")));
      const answers = await Promise.all(
        nodes.flatMap((from, i) =>
          [...pods.filter((_, k) => k !== i), "192.168.1.1"].map(async (to) => {
            const output = await from.node
              .runIn("/run/netns/web", `ping -n -c 5 -i 0.2 -W 2 ${to}`)
              .catch((caught: Error) => caught.message);
            return [`${from.name} to ${to}`, ...output.matchAll(/icmp_seq=\d+|DUP|\d+% packet loss/g)].join(" ");
          }),
        ),
      );
      const all = "icmp_seq=1 icmp_seq=2 icmp_seq=3 icmp_seq=4 icmp_seq=5 0% packet loss";
      for (const line of answers) expect(line).toMatch(new RegExp(`${all}$`));
    },
    120_000,
  );
});
