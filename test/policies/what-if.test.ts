import { expect, test } from "vitest";
import { ClusterView } from "../../agent/commands/policy/cluster-view.ts";
import type { EndClass } from "../../agent/commands/policy/pod-classes.ts";
import { type WhatIf, whatIf } from "../../agent/commands/policy/what-if.ts";
import { formatIp, type Ip, parseIp } from "../../shared/net/ip.ts";
import {
  type Endpoint,
  evaluate,
  isSubject,
  type NetworkPolicy,
  type Pod,
  readPod,
  readPolicy,
} from "../../shared/policy/mod.ts";
import { drawCluster, RandomObjects } from "../fakes/random-cluster.ts";
import { random } from "../support/random.ts";
import { seed } from "../support/seed.ts";

const worlds = 12;
const ports = [1, 52, 53, 54, 79, 80, 81, 82, 8079, 8080, 8081, 65_535];
const traffics = [
  ...["TCP", "UDP", "SCTP"].flatMap((protocol) => ports.map((port) => ({ protocol, port }))),
  { protocol: "ICMP", port: 0 },
];
const outside = ["1.2.3.4", "10.0.3.200", "2001:db8::1", "fd00::77"];

/** `red/pod-1 10.0.0.1` */
type Named = { readonly name: string; readonly endpoint: Endpoint & { readonly ip: Ip } };

function expected(before: ClusterView, after: ClusterView, ends: readonly Named[]): string[] {
  const lines: string[] = [];
  for (const { name: from, endpoint: source } of ends)
    for (const { name: to, endpoint: destination } of ends) {
      if (source.ip.family !== destination.ip.family || (source.t === "outside" && destination.t === "outside"))
        continue;
      for (const traffic of traffics) {
        const question = { source, destination, traffic };
        const [was, is] = [before, after].map((cluster) => evaluate(cluster, question).allowed);
        if (was !== is) lines.push(`${from} -> ${to} ${traffic.protocol} ${traffic.port} ${is ? "opened" : "closed"}`);
      }
    }
  return lines.sort();
}

const podOf = (end: Endpoint): Pod | undefined => (end.t === "pod" ? end.pod : undefined);

/** What the changes say of the same ends and ports. */
function told({ changes }: WhatIf, ends: readonly Named[]): string[] {
  const isIn = (end: EndClass, { endpoint }: Named): boolean =>
    end.t === "pods"
      ? endpoint.t === "pod" && end.pods.includes(endpoint.pod)
      : endpoint.t === "outside" &&
        end.ranges.some(
          ({ first, last }) =>
            first.family === endpoint.ip.family && first.value <= endpoint.ip.value && endpoint.ip.value <= last.value,
        );
  const lines = changes.flatMap(({ from, to, family, opened, closed }) =>
    ends
      .filter((source) => isIn(from, source))
      .flatMap((source) =>
        ends
          .filter((end) => isIn(to, end) && end.endpoint.ip.family === source.endpoint.ip.family)
          .filter(({ endpoint: { ip } }) => family === undefined || ip.family === family)
          .filter(({ endpoint }) => endpoint.t === "outside" || podOf(endpoint) !== podOf(source.endpoint))
          .flatMap((end) =>
            traffics.flatMap((traffic) =>
              ([opened, closed] as const).flatMap((ranges, i) =>
                ranges
                  .filter(({ protocol }) => protocol === traffic.protocol)
                  .filter(({ first = 0, last = 0 }) => first <= traffic.port && traffic.port <= last)
                  .map(
                    () =>
                      `${source.name} -> ${end.name} ${traffic.protocol} ${traffic.port} ${i === 0 ? "opened" : "closed"}`,
                  ),
              ),
            ),
          ),
      ),
  );
  return lines.sort();
}

test("says of random changes exactly what two evaluations of every pair, before and after, differ in", () => {
  let changed = 0;
  for (let world = 0; world < worlds; world++) {
    const next = random(seed * 7919 + world);
    const { pods, policies, namespaces } = drawCluster(next);
    const draw = new RandomObjects(next);
    const read = (object: object): NetworkPolicy[] =>
      [readPolicy(object as Record<string, unknown>)].filter((policy) => policy !== undefined);
    const old = policies.flatMap(read);
    const kept = old.filter(() => draw.chance(80));
    const added = draw.list(2, (i) => draw.policy(100 + i)).flatMap(read);
    // Each has a twin, so that there are several of one kind.
    const known = pods.flatMap((pod, i) => {
      const one = readPod(pod as unknown as Record<string, unknown>);
      const ips = one?.ips.map((ip) => ({ ...ip, value: ip.value + 0x1000n })) ?? [];
      return one === undefined ? [] : [one, { ...one, name: `twin-${i}`, uid: `twin-${i}`, ips }];
    });
    const before = new ClusterView(
      known,
      [...namespaces].map(([name, labels]) => ({ name, labels })),
      old,
    );
    const after = before.withPolicies([...kept, ...added]);
    const ends: Named[] = [
      ...known.filter(isSubject).flatMap((pod) =>
        pod.ips.map((ip) => ({
          name: `${pod.namespace}/${pod.name} ${formatIp(ip)}`,
          endpoint: { t: "pod", pod, ip } as const,
        })),
      ),
      ...outside.map((name) => ({ name, endpoint: { t: "outside", ip: parseIp(name) as Ip } as const })),
    ];
    const lines = told(whatIf(before, after), ends);
    expect(lines, `world ${world}`).toEqual(expected(before, after, ends));
    changed += lines.length;
  }
  expect(changed).toBeGreaterThan(300);
});
