import { afterAll, beforeAll, expect, test } from "vitest";
import { packetEnds } from "../../agent/datapath/packet-ends.ts";
import type { NodePolicies, PodRule, Verdict } from "../../agent/datapath/policies.ts";
import { ownerKey } from "../../shared/cni/owner-key.ts";
import { parseIp } from "../../shared/net/ip.ts";
import { eventually } from "../support/agent-process.ts";
import { describeWith } from "../support/requires.ts";
import { call, NamedServer } from "./named-server.ts";
import { ServiceNode } from "./service-node.ts";

const ip = (text: string) => parseIp(text)!;
const policy = { namespace: "default", name: "p", uid: "u" };
/** Longer than what a switch whose machine is busy needs for a packet. */
const refusedMs = 500;

describeWith("verdicts of policies on Open vSwitch", ["root", "openvswitch"], () => {
  let node: ServiceNode;
  const servers = new DisposableStack();
  const told: string[] = [];
  const tell = ({ direction, owner, rule, packet }: Verdict): void => {
    const port = packetEnds(packet)?.ports?.destination;
    told.push([direction, rule?.id ?? "refused", owner?.sandboxId ?? "nobody", port].join(" "));
  };

  beforeAll(async () => {
    node = await ServiceNode.start(2);
    servers.use(await NamedServer.start(node.pod(1).namespace, "pod1", 8080));
  });
  afterAll(async () => {
    servers.dispose();
    await node?.[Symbol.asyncDispose]();
  });

  test.each([4, 6] as const)(
    "of IPv%i: each connection that rules let through, and each refused packet",
    async (family) => {
      const [client, server] = [node.pod(0), node.pod(1)];
      const rule = (id: string, direction: "egress" | "ingress", changes: Partial<PodRule> = {}): PodRule => ({
        ...{ id, policy, direction },
        targets: [direction === "egress" ? client.owner : server.owner],
        peers: { sets: [{ name: id, ips: [ip((direction === "egress" ? server : client)[family])] }], blocks: [] },
        ports: [{ protocol: "TCP", first: 8080, last: 8089 }],
        ...changes,
      });
      const rules = [rule("out", "egress"), rule("in", "ingress", { ports: [{ protocol: "TCP", first: 8080 }] })];
      const wanted: NodePolicies = {
        rules: new Map(rules.map((one) => [one.id, one])),
        isolated: new Map([
          [ownerKey(client.owner), { owner: client.owner, directions: ["egress"], by: [policy] }],
          [ownerKey(server.owner), { owner: server.owner, directions: ["ingress"], by: [policy] }],
        ]),
      };
      await node.startAgent(wanted, "known", tell);
      const [from, to] = [client.owner.sandboxId, server.owner.sandboxId];
      // The connection for reports comes up beside the program's.
      await eventually(async () => {
        await call(client.namespace, server[family], 9999, refusedMs);
        return told.some((line) => line === `egress refused ${from} 9999`);
      }, "the first report");
      told.length = 0;
      // Which the sender's side allows.
      const closed = 8080 + family;
      expect(await call(client.namespace, server[family], 8080)).toMatchObject({ name: "pod1" });
      expect(await call(client.namespace, server[family], closed, refusedMs)).toBeUndefined();
      // Others are of refused attempts that are repeated.
      const of = (port: number) => told.filter((line) => line.endsWith(` ${port}`));
      await eventually(() => of(closed).length > 0, "the report of the refused packet");
      expect(of(8080).toSorted()).toEqual([`egress out ${from} 8080`, `ingress in ${to} 8080`]);
      expect(new Set(of(closed))).toEqual(new Set([`ingress refused ${to} ${closed}`]));
    },
  );
});
