import { expect, test } from "vitest";
import type { Owner } from "../../shared/cni/types.ts";
import { parseIp } from "../../shared/net/ip.ts";
import { type Endpoint, evaluate, isSubject, type Pod, readPod, readPolicy } from "../../shared/policy/mod.ts";
import { drawCluster, drawQuestion } from "../fakes/random-cluster.ts";
import { random } from "../support/random.ts";
import { seed } from "../support/seed.ts";
import { clusterOf, lets, nodePolicies, type World } from "./node-policies.ts";

const ownerOf = ({ namespace, name }: Pod): Owner => ({
  network: "pods",
  sandboxId: `${namespace}-${name}`,
  ifname: "eth0",
});

test("what nodes are told by this helper is what the evaluator says", () => {
  let [asked, denied] = [0, 0];
  for (let drawn = 0; drawn < 60; drawn++) {
    const next = random(seed + drawn);
    const cluster = drawCluster(next);
    const pods = new Map(cluster.pods.map((plain) => [plain, readPod({ ...plain })]));
    const world: World = {
      pods: [...pods.values()].filter((pod) => pod !== undefined),
      policies: cluster.policies.flatMap((plain) => readPolicy({ ...plain }) ?? []),
      namespaces: cluster.namespaces,
    };
    const wanted = nodePolicies(world, ownerOf);
    for (let i = 0; i < 50; i++) {
      const question = drawQuestion(cluster, next);
      const [source, destination] = [question.source, question.destination].map((end): Endpoint => {
        const [ip, pod] = [parseIp(end.ip), end.pod && pods.get(end.pod)];
        if (ip === undefined) throw new Error(end.ip);
        return pod === undefined ? { t: "outside", ip } : { t: "pod", pod, ip };
      });
      if (source?.ip === undefined || destination?.ip === undefined) throw new Error("no address");
      const { traffic } = question;
      const { egress, ingress } = evaluate(clusterOf(world), { source, destination, traffic });
      const packet = { source: source.ip, destination: destination.ip, ...traffic };
      for (const [side, end, direction] of [
        [egress, source, "egress"],
        [ingress, destination, "ingress"],
      ] as const) {
        if (side.t === "exempt" || end.t !== "pod" || !isSubject(end.pod)) continue;
        asked++;
        if (side.t === "denied") denied++;
        expect(lets(wanted, ownerOf(end.pod), direction, packet), JSON.stringify(question)).toBe(side.t !== "denied");
      }
    }
  }
  expect(asked).toBeGreaterThan(500);
  expect(denied).toBeGreaterThan(50);
});
