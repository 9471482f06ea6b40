import { describe, expect, test } from "vitest";
import { type ApiObject, mapIn } from "../../shared/kubernetes/mod.ts";
import { formatCidr, formatIp } from "../../shared/net/ip.ts";
import {
  type EndpointChoice,
  endpointObject,
  serviceObject,
  sliceObject,
  thisNode,
} from "../../test/fakes/service-objects.ts";
import type { Endpoint, ServicePort } from "../datapath/services.ts";
import { type Decided, decide, type ThisNode } from "./decide.ts";
import { endpointSlices, readSlice } from "./endpoint-slice.ts";
import { readService, services } from "./service-object.ts";

function decided(service: ApiObject, slices: readonly ApiObject[] = [], node: ThisNode = { zone: "z1" }): Decided {
  const read = readService(service);
  if (read === undefined) return { ports: [], problems: [] };
  return decide(
    read,
    slices.flatMap((slice) => readSlice(slice, thisNode) ?? []),
    node,
  );
}

const only = ({ ports: [port, ...more] }: Decided): ServicePort => {
  if (port === undefined || more.length > 0) throw new Error(`${more.length + 1} ports`);
  return port;
};

/** The last part of the addresses, with the port where it is not 8080; a star for those of this node. */
const text = (of: readonly Endpoint[]): string =>
  of
    .map(({ ip, port, isLocal }) => {
      const last = formatIp(ip).split(/[.:]/).at(-1);
      return `${last}${port === 8080 ? "" : `:${port}`}${isLocal ? "*" : ""}`;
    })
    .join(" ");

const policies = {
  Cluster: { internalTrafficPolicy: "Cluster", externalTrafficPolicy: "Cluster" },
  internal: { internalTrafficPolicy: "Local", externalTrafficPolicy: "Cluster" },
  external: { internalTrafficPolicy: "Cluster", externalTrafficPolicy: "Local" },
  both: { internalTrafficPolicy: "Local", externalTrafficPolicy: "Local" },
} as const;

const here = (choice: EndpointChoice = {}): EndpointChoice => ({ on: thisNode, ...choice });
const z = (...zones: string[]): EndpointChoice => ({ zones });
const n = (...nodes: string[]): EndpointChoice => ({ nodes });
const draining = { state: "draining" } as const;
const unready = { state: "unready" } as const;
const dead = { state: "dead" } as const;

/** Endpoints 1, 2, 3, ...; who answers at the cluster IP, from outside, and to those inside at the other addresses. */
const rows: [string, keyof typeof policies, EndpointChoice[], [internal: string, external: string, cluster: string]][] =
  [
    ["all that are ready", "Cluster", [{}, here(), unready], ["1 2*", "1 2*", "1 2*"]],
    ["nobody", "Cluster", [unready, dead], ["", "", ""]],
    ["no condition counts as ready", "Cluster", [{ state: "unsaid" }], ["1", "1", "1"]],
    ["those that drain only where none is ready", "Cluster", [draining, {}], ["2", "2", "2"]],
    ["those that drain", "Cluster", [draining, here(draining), unready, dead], ["1 2*", "1 2*", "1 2*"]],
    ["internal Local", "internal", [{}, here(), {}], ["2*", "1 2* 3", "1 2* 3"]],
    ["internal Local without a local one", "internal", [{}], ["", "1", "1"]],
    ["external Local", "external", [{}, here(), {}], ["1 2* 3", "2*", "1 2* 3"]],
    ["external Local without a local one", "external", [{}], ["1", "", "1"]],
    ["both Local", "both", [{}, here()], ["2*", "2*", "1 2*"]],
    ["both Local without a local one", "both", [{}], ["", "", "1"]],
    ["local ones that drain while others are ready", "both", [{}, here(draining)], ["2*", "2*", "1"]],
    ["local ones that drain only where no local one is ready", "both", [here(draining), here()], ["2*", "2*", "2*"]],
    ["local ones that drain, and others", "both", [here(draining), draining], ["1*", "1*", "1* 2"]],
    ["a local one that is not ready", "external", [here(unready), {}], ["2", "", "2"]],
    ["hints of zones", "Cluster", [z("z1"), z("z2"), z("z2", "z1")], ["1 3", "1 3", "1 3"]],
    ["hints that not all have", "Cluster", [z("z1"), {}], ["1 2", "1 2", "1 2"]],
    ["hints that those that are not ready lack", "Cluster", [z("z1"), z("z2"), unready], ["1", "1", "1"]],
    ["hints for other zones alone", "Cluster", [z("z2"), z("z3")], ["1 2", "1 2", "1 2"]],
    ["hints, and only those that drain", "Cluster", [{ ...draining, ...z("z2") }], ["1", "1", "1"]],
    ["hints do not count for Local", "both", [here(z("z2")), z("z1")], ["1*", "1*", "2"]],
    ["hints of nodes", "Cluster", [n("here"), n("there")], ["1", "1", "1"]],
    [
      "hints of nodes before those of zones",
      "Cluster",
      [
        { ...n("here"), ...z("z2") },
        { ...n("b"), ...z("z1") },
      ],
      ["1", "1", "1"],
    ],
    [
      "hints of nodes for others alone",
      "Cluster",
      [
        { ...n("b"), ...z("z1") },
        { ...n("c"), ...z("z2") },
      ],
      ["1", "1", "1"],
    ],
    ["hints of nodes that not all have", "Cluster", [{ ...n("here"), ...z("z1") }, z("z2")], ["1", "1", "1"]],
    ["hints of nodes for others, and none of zones", "Cluster", [n("b"), n("c")], ["1 2", "1 2", "1 2"]],
  ];

describe("who answers", () => {
  test.each(rows)("%s (%s)", (_, policy, choices, wanted) => {
    const service = serviceObject({ type: "NodePort", ...policies[policy] });
    const slice = sliceObject(choices.map((choice, i) => endpointObject(`10.0.0.${i + 1}`, choice)));
    const { internal, external, cluster } = only(decided(service, [slice]));
    expect([text(internal), text(external), text(cluster)]).toEqual(wanted);
  });

  test("hints of zones do not count on a node without one", () => {
    const slice = sliceObject([endpointObject("10.0.0.1", z("z1")), endpointObject("10.0.0.2", z("z2"))]);
    expect(text(only(decided(serviceObject(), [slice], {})).cluster)).toBe("1 2");
  });

  test("published though not ready: as the slices say, also while it terminates", () => {
    const published = { ...endpointObject("10.0.0.1"), conditions: { ready: true, serving: false, terminating: true } };
    const slice = sliceObject([published, endpointObject("10.0.0.2", draining)]);
    expect(text(only(decided(serviceObject(), [slice])).cluster)).toBe("1");
  });

  test("the policy of outside counts only for a service that outside reaches", () => {
    const slice = sliceObject([endpointObject("10.0.0.1")]);
    const external = (spec: ApiObject) => {
      const port = only(decided(serviceObject({ externalTrafficPolicy: "Local", ...spec }), [slice]));
      return [text(port.external), port.keepsClient];
    };
    expect(external({})).toEqual(["1", false]);
    expect(external({ externalIPs: ["192.0.2.1"] })).toEqual(["", true]);
    expect(external({ type: "LoadBalancer" })).toEqual(["", true]);
  });
});

describe("the slices of a service", () => {
  test("go together: each place once, by what says more, whatever their order", () => {
    const slices = [
      sliceObject([endpointObject("10.0.0.1", draining), endpointObject("10.0.0.2")], {}, "a"),
      sliceObject([endpointObject("10.0.0.2", here(draining)), endpointObject("10.0.0.1")], {}, "b"),
    ];
    const [one, other] = [slices, slices.toReversed()].map((all) => only(decided(serviceObject(), all)));
    expect(text(one?.cluster ?? [])).toBe("1 2*");
    expect(one).toEqual(other);
  });

  test("lead to a port by its name and protocol, each to numbers of its own", () => {
    const ports = [
      { name: "http", port: 80 },
      { name: "dns", port: 53, protocol: "UDP" },
      { name: "none", port: 81 },
    ];
    const slices = [
      sliceObject([endpointObject("10.0.0.1")], {
        ports: [
          { name: "http", port: 8080 },
          { name: "dns", port: 53, protocol: "UDP" },
        ],
      }),
      sliceObject(
        [endpointObject("10.0.0.2")],
        { ports: [{ name: "http", port: 9090 }, { name: "dns", port: 53 }, { name: "none" }] },
        "b",
      ),
      // As of a pod with two names for its ports.
      sliceObject([endpointObject("10.0.0.1")], { ports: [{ name: "http", port: 8081 }] }, "c"),
    ];
    const { ports: found } = decided(serviceObject({ ports }), slices);
    expect(found.map(({ key, protocol, cluster }) => [key, protocol, text(cluster)])).toEqual([
      ["x/web:http", "tcp", "1 1:8081 2:9090"],
      ["x/web:dns", "udp", "1:53"],
      ["x/web:none", "tcp", ""],
    ]);
  });

  test.each([
    ["names", { addressType: "FQDN" }],
    ["a kind of a later day", { addressType: "toString" }],
    ["of no service", { metadata: { namespace: "x", name: "a" } }],
    ["endpoints of no address", { endpoints: [{}, { addresses: [] }, { addresses: ["a"] }, { addresses: [4] }, 5] }],
    ["endpoints of another family", { endpoints: [endpointObject("fd00::1")] }],
    [
      "endpoints that are the node itself or nobody",
      { endpoints: ["127.0.0.1", "0.0.0.0", "224.0.0.1", "169.254.169.254"].map((ip) => endpointObject(ip)) },
    ],
    [
      "ports that are none",
      { ports: [{ port: 0 }, { port: 65_536 }, { port: 1.5 }, { port: "80" }, { port: 80, protocol: "toString" }] },
    ],
  ])("serve nobody: %s", (_, more) => {
    expect(text(only(decided(serviceObject(), [sliceObject([endpointObject("10.0.0.1")], more)])).cluster)).toBe("");
  });
});

describe("a service", () => {
  const spec = { type: "LoadBalancer", ports: [{ port: 80, nodePort: 30080 }] };

  test("of both families is a port of each, with what belongs to each", () => {
    const service = serviceObject(
      {
        ...spec,
        clusterIPs: ["10.96.0.1", "fd00:96::1"],
        externalIPs: ["192.0.2.1", "2001:db8::1", "no address", "127.0.0.1"],
        loadBalancerSourceRanges: [" 198.51.100.7/24 ", "2001:db8:1::/48"],
        sessionAffinity: "ClientIP",
      },
      [
        { ip: "192.0.2.9" },
        { ip: "2001:db8::9", ipMode: "VIP" },
        { ip: "192.0.2.8", ipMode: "Proxy" },
        { hostname: "h" },
      ],
    );
    const slices = [sliceObject([endpointObject("10.0.0.1")]), sliceObject([endpointObject("fd10::2")], {}, "b")];
    const { ports, problems } = decided(service, slices);
    const textOf = (port: ServicePort) => ({
      key: port.key,
      ips: [port.clusterIp, ...port.externalIps, ...port.ingressIps].map(formatIp).join(" "),
      rest: [port.port, port.nodePort, port.affinitySeconds, port.sourceRanges?.map(formatCidr).join()],
      cluster: text(port.cluster),
    });
    expect(ports.map(textOf)).toEqual([
      {
        key: "x/web",
        ips: "10.96.0.1 192.0.2.1 192.0.2.9",
        rest: [80, 30080, 10_800, "198.51.100.0/24"],
        cluster: "1",
      },
      {
        key: "x/web/6",
        ips: "fd00:96::1 2001:db8::1 2001:db8::9",
        rest: [80, 30080, 10_800, "2001:db8:1::/48"],
        cluster: "2",
      },
    ]);
    const messages = [2, 3].map((i) => `"spec.externalIPs[${i}]" is not understood, and left out`);
    expect(problems).toEqual(messages.map((message) => ({ reason: "NotUnderstood", message })));
  });

  test("of IPv6 alone has no suffix, and keeps to its family", () => {
    const port = only(decided(serviceObject({ clusterIPs: ["fd00:96::1"], externalIPs: ["192.0.2.1"] })));
    expect([port.key, port.externalIps]).toEqual(["x/web", []]);
  });

  test.each([
    ["none", undefined, undefined],
    ["one that is no range", ["everybody"], []],
    ["one that is none among others", ["10.0.0.0/33", "10.0.0.0/8"], ["10.0.0.0/8"]],
    ["those of the other family alone", ["2001:db8::/32"], []],
  ])("lets in by the ranges of its sources: %s", (_, loadBalancerSourceRanges, wanted) => {
    expect(only(decided(serviceObject({ ...spec, loadBalancerSourceRanges }))).sourceRanges?.map(formatCidr)).toEqual(
      wanted,
    );
  });

  test.each([
    [{ sessionAffinity: "None" }, undefined],
    [{ sessionAffinity: "ClientIP" }, 10_800],
    [{ sessionAffinity: "ClientIP", sessionAffinityConfig: { clientIP: { timeoutSeconds: 60 } } }, 60],
    [{ sessionAffinity: "ClientIP", sessionAffinityConfig: { clientIP: { timeoutSeconds: 86_401 } } }, 10_800],
    [{ sessionAffinity: "ClientIP", sessionAffinityConfig: { clientIP: { timeoutSeconds: -1 } } }, 10_800],
  ])("keeps clients at their endpoints: %j", (more, seconds) => {
    expect(only(decided(serviceObject(more))).affinitySeconds).toBe(seconds);
  });

  test.each<[string, ApiObject]>([
    ["headless", serviceObject({ clusterIPs: ["None"] })],
    ["without an address yet", serviceObject({ clusterIPs: [], clusterIP: "" })],
    ["an alias of a name", serviceObject({ type: "ExternalName" })],
    ["of another proxy", serviceObject({}, [], { labels: { "service.kubernetes.io/service-proxy-name": "" } })],
    ["without a name", { spec: { clusterIP: "10.96.0.1", ports: [{ port: 80 }] } }],
    ["of nothing", {}],
  ])("is none: %s", (_, object) => expect(services.project(object)).toBeUndefined());

  test("of an older server has one cluster IP", () => {
    const port = only(decided(serviceObject({ clusterIPs: undefined, clusterIP: "10.96.0.2" })));
    expect(formatIp(port.clusterIp)).toBe("10.96.0.2");
  });

  test("is asked for its health only as a load balancer's of the policy Local, and by those that are ready here", () => {
    const slices = [
      sliceObject([
        endpointObject("10.0.0.1", here()),
        endpointObject("10.0.0.2", here(draining)),
        endpointObject("10.0.0.3"),
      ]),
      sliceObject([endpointObject("10.0.0.1", here())], {}, "b"),
    ];
    const healthOf = (more: ApiObject) =>
      decided(serviceObject({ healthCheckNodePort: 32_000, ...more }), slices).healthCheck;
    const local = { type: "LoadBalancer", externalTrafficPolicy: "Local" };
    expect(healthOf(local)).toEqual({ port: 32_000, localEndpoints: 1 });
    expect([healthOf({ ...local, type: "NodePort" }), healthOf({ type: "LoadBalancer" })]).toEqual([
      undefined,
      undefined,
    ]);
    expect(only(decided(serviceObject({ ...local, healthCheckNodePort: 32_000 }))).healthCheckNodePort).toBe(32_000);
  });

  test("has its endpoints answer to the load balancer's own address where its annotation says so", () => {
    const preserves = (value: string) =>
      only(decided(serviceObject({}, [], { annotations: { "preserve-destination": value } }))).preservesDestination;
    expect([preserves("true"), preserves("yes")]).toEqual([true, false]);
  });

  test("names what of its ports is not understood, and has the others", () => {
    const ports = [
      { name: "a", port: 80 },
      { name: "a", port: 81 },
      { name: "b", port: 0 },
      { name: "c", port: 1, protocol: "X" },
      7,
      { name: "again", port: 80 },
      { name: "d", port: 82, nodePort: 30_080 },
      { name: "e", port: 83, nodePort: 30_080 },
    ];
    const { ports: found, problems } = decided(serviceObject({ ports }));
    expect(found.map(({ key }) => key)).toEqual(["x/web:a", "x/web:d"]);
    expect(problems.map(({ message }) => message.slice(0, 15))).toEqual(
      [1, 2, 3, 4, 5, 7].map((i) => `"spec.ports[${i}]"`),
    );
  });

  test("has an address once that it says twice: as the cluster IP, else as the load balancer's", () => {
    const spec = { externalIPs: ["10.96.0.1", "203.0.113.9", "203.0.113.1"] };
    const ingress = [{ ip: "203.0.113.9" }, { ip: "10.96.0.1" }];
    const { externalIps, ingressIps } = only(decided(serviceObject(spec, ingress)));
    expect([externalIps.map(formatIp), ingressIps.map(formatIp)]).toEqual([["203.0.113.1"], ["203.0.113.9"]]);
  });

  test("with more than a node can take is none, and says so", () => {
    const ports = Array.from({ length: 1_000 }, (_, i) => ({ name: `p${i}`, port: i + 1 }));
    const endpoints = Array.from({ length: 200 }, (_, i) => endpointObject(`10.0.0.${i + 1}`));
    const { ports: found, problems } = decided(serviceObject({ ports }), [sliceObject(endpoints)]);
    const message = "it has 200000 endpoints and ports, wanted 100000 at the most";
    expect([found, problems]).toEqual([[], [{ reason: "NotUnderstood", message }]]);
  });
});

test("a version that says nothing new is no change", () => {
  const slices = endpointSlices(thisNode);
  const slice = sliceObject([endpointObject("10.0.0.1", z("z1"))]);
  const annotations = { "endpoints.kubernetes.io/last-change-trigger-time": "2026-11-23T12:00:00.5Z" };
  const newer = {
    ...slice,
    metadata: { ...mapIn(slice, "metadata"), annotations, resourceVersion: "2" },
  };
  const read = [slice, newer, sliceObject([endpointObject("10.0.0.1", z("z2"))])].map((each) => slices.project(each)!);
  expect([slices.same?.(read[0]!, read[1]!), slices.same?.(read[0]!, read[2]!)]).toEqual([true, false]);
  expect(read.map((each) => each.triggeredAtMs)).toEqual([undefined, Date.UTC(2026, 10, 23, 12, 0, 0, 500), undefined]);
  const both = [
    serviceObject(),
    serviceObject({ unknown: 1 }),
    serviceObject({ type: "NodePort", externalTrafficPolicy: "Local" }),
  ].map((each) => services.project(each)!);
  expect([services.same?.(both[0]!, both[1]!), services.same?.(both[0]!, both[2]!)]).toEqual([true, false]);
});
