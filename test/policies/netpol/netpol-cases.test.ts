import { expect, test } from "vitest";
import { evaluate, type Pod } from "../../../shared/policy/mod.ts";
import { clusterOf } from "../node-policies.ts";
import { netpolCases } from "./cases.ts";
import { isReached, nine, type Places, worldOf } from "./netpol-case.ts";

const places: Places = {
  nodeOf: (pod) => `node-${pod}`,
  ipsOf: (pod) => [`10.0.${nine.indexOf(pod)}.1`, `fd00::${nine.indexOf(pod) + 1}`],
};

test("there are 48 cases, each with a name of its own", () => {
  expect(new Set(netpolCases.map(({ name }) => name)).size).toBe(48);
});

test.each(netpolCases)("$name", ({ steps }) => {
  for (const family of [4, 6] as const)
    for (const [i, step] of steps.entries()) {
      const world = worldOf(step, places, family);
      const end = (key: string) => {
        const pod = world.pods.find(({ namespace, name }) => `${namespace}/${name}` === key) as Pod;
        const ip = pod.ips.find((each) => each.family === family);
        return { t: "pod", pod, ...(ip === undefined ? {} : { ip }) } as const;
      };
      for (const { port, protocol = "TCP", reached } of step.looks)
        for (const from of nine)
          for (const to of nine) {
            const expected = isReached(reached, from, to);
            if (expected === undefined) continue;
            const question = { source: end(from), destination: end(to), traffic: { protocol, port } };
            const { allowed } = evaluate(clusterOf(world), question);
            expect.soft(allowed, `step ${i}: ${from} to ${to} by ${protocol} ${port}`).toBe(expected);
          }
    }
});
