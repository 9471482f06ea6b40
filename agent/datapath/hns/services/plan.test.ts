import { describe, expect, test } from "vitest";
import { cidr } from "../../../../test/fakes/hns/hns-node.ts";
import type { HcnEndpoint } from "../../../protocols/hcn/mod.ts";
import { type LoadBalancer, type PresentBalancer, readPresent, slotOf, textOf, toDocument } from "./load-balancer.ts";
import { newOwnId } from "./own-ids.ts";
import { planBalancers, planEndpoints, type Resolved, surplusEndpoints } from "./plan.ts";

const theirs = "99999999-0000-4000-8000-000000000001";
const [first, second] = [newOwnId(), newOwnId()];

const balancer = (changes: Partial<LoadBalancer> = {}): LoadBalancer => ({
  vip: "10.96.0.10",
  protocol: 6,
  port: 80,
  internalPort: 8080,
  endpoints: ["a", "b"],
  sourceVip: "10.0.0.1",
  flags: 1,
  mappingFlags: 0,
  distribution: 0,
  ...changes,
});
const wanted = (...all: readonly LoadBalancer[]): ReadonlyMap<string, Resolved> =>
  new Map(
    all.map((one) => [
      slotOf(one),
      { balancer: one, wanted: { ...one, key: "default/web:", kind: "cluster IP", local: [], remote: [] } },
    ]),
  );
const standing = (id: string, one: LoadBalancer): PresentBalancer =>
  readPresent({ id, endpointIds: one.endpoints, document: toDocument(id, one) });

describe("load balancers", () => {
  /** `[in the way] [changes, with what they replace] [surplus] [blocked]`. */
  const drawn = (plan: ReturnType<typeof planBalancers>) => [
    plan.inTheWay.map(({ id }) => id),
    plan.changes.map(({ from }) => from?.id ?? "new"),
    plan.surplus.map(({ id }) => id),
    [...plan.blocked.values()],
  ];
  const want = balancer();
  const unlike = balancer({ endpoints: ["a"] });
  const elsewhere = balancer({ vip: "10.96.0.11" });

  test.each<[string, readonly PresentBalancer[], ReturnType<typeof drawn>]>([
    ["nothing stands: it is made", [], [[], ["new"], [], []]],
    ["it stands: nothing", [standing(first, want)], [[], [], [], []]],
    [
      "it stands with its endpoints in another order: nothing",
      [standing(first, balancer({ endpoints: ["b", "a"] }))],
      [[], [], [], []],
    ],
    ["one of ours says something else: it is changed", [standing(first, unlike)], [[], [first], [], []]],
    ["ours at a place that nobody wants: it goes", [standing(first, elsewhere)], [[], ["new"], [first], []]],
    [
      "two of ours, one right: the other is in the way",
      [standing(first, unlike), standing(second, want)],
      [[first], [], [], []],
    ],
    [
      "two of ours, none right: one is changed",
      [standing(first, unlike), standing(second, unlike)],
      [[second], [first], [], []],
    ],
    ["somebody else's has the place: it stays", [standing(theirs, want)], [[], [], [], [theirs]]],
    ["somebody else's elsewhere: it stays", [standing(theirs, elsewhere)], [[], ["new"], [], []]],
    [
      "ours without its port: it goes",
      [readPresent({ id: first, endpointIds: [], document: {} })],
      [[], ["new"], [first], []],
    ],
    [
      "somebody else's without a port: it stays",
      [readPresent({ id: theirs, endpointIds: [], document: {} })],
      [[], ["new"], [], []],
    ],
  ])("%s", (_, present, plan) => {
    expect(drawn(planBalancers(wanted(want), present))).toEqual(plan);
  });

  test.each<Partial<LoadBalancer>>([
    { endpoints: ["a", "c"] },
    { internalPort: 8081 },
    { sourceVip: "10.0.0.2" },
    { flags: 0 },
    { mappingFlags: 16 },
    { distribution: 2 },
  ])("differ by %j alone", (changes) => {
    expect(textOf(balancer(changes))).not.toBe(textOf(want));
    expect(drawn(planBalancers(wanted(want), [standing(first, balancer(changes))]))).toEqual([[], [first], [], []]);
  });

  test("somebody else's of several ports and addresses blocks each of them", () => {
    const document = {
      FrontendVIPs: ["10.96.0.10", "10.96.0.11"],
      PortMappings: [
        { Protocol: 6, ExternalPort: 80 },
        { Protocol: 17, ExternalPort: 53 },
      ],
    };
    const present = [readPresent({ id: theirs, endpointIds: [], document })];
    const dns = balancer({ vip: "10.96.0.11", protocol: 17, port: 53 });
    expect([...planBalancers(wanted(want, dns), present).blocked.keys()]).toEqual([
      "10.96.0.10 6 80",
      "10.96.0.11 17 53",
    ]);
  });
});

describe("endpoints", () => {
  const endpoint = (id: string, address: string, changes: Partial<HcnEndpoint> = {}): HcnEndpoint => ({
    id,
    name: "",
    networkId: "net",
    namespaceId: "",
    addresses: [{ address, prefixLength: 0 }],
    mac: "02-11-0A-09-01-09",
    isRemote: true,
    document: {},
    ...changes,
  });
  const remote = { ip: "10.9.1.9", mac: "02-11-0A-09-01-09", isRemote: true };
  const provided = { document: { Policies: [{ Type: "ProviderAddress", Settings: { ProviderAddress: "10.0.0.9" } }] } };

  test.each<
    [
      string,
      readonly HcnEndpoint[],
      readonly [standing: readonly string[], made: readonly string[][], taken: readonly string[]],
    ]
  >([
    ["none: it is made", [], [[], [[]], []]],
    ["ours: it serves", [endpoint(first, "10.9.1.9")], [[first], [], []]],
    [
      "another writing of its hardware address: it serves",
      [endpoint(first, "10.9.1.9", { mac: "02-11-0a-09-01-09" })],
      [[first], [], []],
    ],
    [
      "by its second address: it serves",
      [
        endpoint(first, "fd00::9", {
          addresses: [
            { address: "fd00::9", prefixLength: 0 },
            { address: "10.9.1.9", prefixLength: 0 },
          ],
        }),
      ],
      [[first], [], []],
    ],
    [
      "ours with another hardware address: made anew",
      [endpoint(first, "10.9.1.9", { mac: "02-11-00-00-00-00" })],
      [[], [[first]], []],
    ],
    ["ours behind another node: made anew", [endpoint(first, "10.9.1.9", provided)], [[], [[first]], []]],
    ["somebody else's: it serves", [endpoint(theirs, "10.9.1.9")], [[theirs], [], []]],
    ["theirs and ours: ours", [endpoint(theirs, "10.9.1.9"), endpoint(first, "10.9.1.9")], [[first], [], []]],
    ["a pod's: taken", [endpoint(theirs, "10.9.1.9", { isRemote: false })], [[], [], [theirs]]],
  ])("of another node, where there is %s", (_, present, [ids, made, taken]) => {
    const plan = planEndpoints(new Map([[remote.ip, { ...remote, provider: "10.0.0.3" }]]), present);
    expect([[...plan.standing.values()], plan.make.map(({ instead }) => instead), [...plan.taken.values()]]).toEqual([
      ids,
      made,
      taken,
    ]);
  });

  test("go where nothing needs them: ours everywhere, others' where a pod of this node could be", () => {
    const present = [
      endpoint(first, "10.9.1.9"),
      endpoint(second, "10.9.1.10", { networkId: "old" }),
      endpoint(theirs, "10.9.1.11"),
      endpoint("99999999-0000-4000-8000-000000000002", "10.9.0.99"),
      endpoint("99999999-0000-4000-8000-000000000003", "10.9.0.98", { isRemote: false }),
      endpoint("99999999-0000-4000-8000-000000000004", "10.9.0.97", { mac: "00-15-5D-00-00-01" }),
    ];
    const gone = surplusEndpoints(present, new Set([first]), cidr("10.9.0.0/24"));
    expect(gone.map(({ id }) => id)).toEqual([second, "99999999-0000-4000-8000-000000000002"]);
  });
});
