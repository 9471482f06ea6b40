import { describe, expect, test } from "vitest";
import { ipOf, parseIp } from "../../shared/net/ip.ts";
import { random } from "../../test/support/random.ts";
import { seed } from "../../test/support/seed.ts";
import type { ServicePort } from "../datapath/services.ts";
import type { EndpointSlice, SliceEndpoint } from "./endpoint-slice.ts";
import type { Service } from "./service-object.ts";
import { ServiceStore } from "./service-store.ts";

const service = (name: string, more: Partial<Service> = {}): Service => ({
  ...{ namespace: "x", name, uid: `uid-${name}`, created: "2026-01-01T00:00:00Z" },
  // Of each its own.
  clusterIps: [ipOf(4, 0x0a600000n + BigInt(Number.parseInt(name, 36)))],
  ports: [{ name: "a", protocol: "tcp", port: 80 }],
  ...{ externalIps: [], ingressIps: [], internalLocal: false, externalLocal: false },
  ...{ preservesDestination: false, problems: [] },
  ...more,
});

const endpoint = (number: number, more: Partial<SliceEndpoint> = {}): SliceEndpoint => ({
  ...{ ip: ipOf(4, BigInt(0x0a000000 + number)), isLocal: false, state: "ready" },
  ...more,
});

const slice = (of: string, name: string, endpoints: readonly SliceEndpoint[]): EndpointSlice => ({
  ...{ namespace: "x", name, service: of, family: 4, endpoints },
  ports: [{ name: "a", protocol: "tcp", port: 8080 }],
});

/** All addresses with ports, and ports of the node, that anybody has. */
const placesOf = ({ wanted, healthChecks }: ServiceStore): readonly string[] => [
  ...[...wanted.values()].flatMap(({ clusterIp, externalIps, ingressIps, nodePort, port, protocol }) => [
    ...[clusterIp, ...externalIps, ...ingressIps].map((ip) => `${ip.value} ${port} ${protocol}`),
    // One for both families.
    ...(nodePort === undefined || clusterIp.family === 6 ? [] : [`${nodePort} ${protocol}`]),
  ]),
  ...Array.from(healthChecks.values(), ({ port }) => `${port} tcp`),
];

/** Less the port that a sentence says another has. */
function without({ nodePort, healthCheckNodePort, ...port }: ServicePort, messages: readonly string[]): object {
  const keeps = (what: string): boolean => !messages.some((message) => message.startsWith(what));
  return {
    ...port,
    ...(nodePort !== undefined && keeps("node port") ? { nodePort } : {}),
    ...(healthCheckNodePort !== undefined && keeps("health") ? { healthCheckNodePort } : {}),
  };
}

describe("a store of services", () => {
  test("in whatever order things come and go, says what follows from what is there in the end", () => {
    const draw = random(seed);
    const pick = <T>(of: readonly T[]): T => of[draw(of.length)]!;
    const yes = (): boolean => draw(2) === 0;
    const names = ["s0", "s1", "s2"];
    const anyEndpoint = (): SliceEndpoint =>
      endpoint(draw(6), {
        ...{ isLocal: yes(), state: yes() ? "ready" : "draining" },
        ...(yes() ? { zones: [pick(["z1", "z2"])] } : {}),
        ...(draw(4) === 0 ? { forThisNode: yes() } : {}),
      });
    const store = new ServiceStore();
    const services = new Map<string, Service>();
    const slices = new Map<string, EndpointSlice>();
    let zone: string | undefined;
    for (let i = 0; i < 3_000; i++) {
      const [name, kind] = [pick(names), draw(20)];
      const key = `${name}-${draw(3)}`;
      const [oldService, oldSlice] = [services.get(name), slices.get(key)];
      if (kind === 0) {
        zone = pick(["z1", "z2", undefined]);
        store.setNode(zone === undefined ? {} : { zone });
      } else if (kind < 4 && oldService !== undefined) {
        store.deleteService(oldService);
        services.delete(name);
      } else if (kind < 10) {
        const [ofNode, nodePort] = [draw(3), 30_000 + draw(2)];
        const next = service(name, {
          ...{ internalLocal: yes(), externalLocal: yes() },
          ...(draw(8) === 0 ? { clusterIps: [parseIp("10.96.0.1")!, parseIp("fd00::1")!] } : {}),
          // Few for many, so that they are had twice.
          created: `2026-01-0${1 + draw(2)}T00:00:00Z`,
          externalIps: [1, 2].filter(yes).map((last) => ipOf(4, 0x0a600000n + BigInt(last))),
          ports: [{ name: "a", protocol: "tcp", port: 80, ...(ofNode === 1 ? { nodePort } : {}) }],
          ...(ofNode === 2 ? { healthCheckNodePort: nodePort } : {}),
        });
        store.putService(next);
        services.set(name, next);
      } else if (kind < 14 && oldSlice !== undefined) {
        store.deleteSlice(oldSlice);
        slices.delete(key);
      } else {
        const next = slice(name, key, Array.from({ length: draw(4) }, anyEndpoint));
        store.putSlice(next);
        slices.set(key, next);
      }
      if (draw(4) > 0) continue;
      const anew = new ServiceStore();
      if (zone !== undefined) anew.setNode({ zone });
      for (const each of [...slices.values()].reverse()) anew.putSlice(each);
      for (const each of services.values()) anew.putService(each);
      expect(store.wanted).toEqual(anew.wanted);
      expect(store.healthChecks).toEqual(anew.healthChecks);
      expect(store.problems).toEqual(anew.problems);
      const had = placesOf(store);
      expect(new Set(had).size).toBe(had.length);
    }
  });

  test("keeps what is as before the same object, and leaves what it gave away as it was", () => {
    const store = new ServiceStore();
    for (const name of ["a", "b"]) {
      store.putService(service(name));
      store.putSlice(slice(name, `${name}-1`, [endpoint(1)]));
    }
    const before = store.wanted;
    expect([...before.keys()].sort()).toEqual(["x/a:a", "x/b:a"]);
    // The same again, in another slice.
    store.putSlice(slice("a", "a-2", [endpoint(1)]));
    store.deleteSlice(slice("a", "a-1", []));
    expect(store.wanted).toBe(before);
    store.putSlice(slice("a", "a-2", [endpoint(1), endpoint(2)]));
    const after = store.wanted;
    expect([after.get("x/b:a") === before.get("x/b:a"), after.get("x/a:a") === before.get("x/a:a")]).toEqual([
      true,
      false,
    ]);
    expect(before.get("x/a:a")?.cluster).toHaveLength(1);
    store.deleteService(service("a"));
    expect([store.wanted.size, after.size]).toEqual([1, 2]);
  });

  test("says of each service what is not understood of it", () => {
    const store = new ServiceStore();
    store.putService(service("a", { problems: ["spec.ports[1]"] }));
    const message = '"spec.ports[1]" is not understood, and left out';
    expect(store.problems).toEqual(new Map([["x/a", [{ reason: "NotUnderstood", message }]]]));
    store.putService(service("a"));
    expect(store.problems).toEqual(new Map());
  });

  const day = (number: number): string => `2026-01-0${number}T00:00:00Z`;
  const external = [parseIp("203.0.113.9")!, parseIp("203.0.113.10")!];
  const port = { name: "a", protocol: "tcp", port: 80, nodePort: 30_080 } as const;
  const left = "is left to service";
  const olds = "which has it too and is older";
  const hisIp = "whose cluster IP it is";

  test.each<[what: string, old: Partial<Service>, young: Partial<Service>, left: object, messages: readonly string[]]>([
    [
      "an external IP, of which it keeps the other",
      { externalIps: external.slice(0, 1) },
      { externalIps: external },
      { externalIps: external.slice(1) },
      [`203.0.113.9 port 80/tcp ${left} "x/zz", ${olds}`],
    ],
    [
      "a load balancer's address that is another's external IP",
      { externalIps: external },
      { ingressIps: external.slice(1) },
      { ingressIps: [] },
      [`203.0.113.10 port 80/tcp ${left} "x/zz", ${olds}`],
    ],
    [
      "a node port",
      { ports: [port] },
      { ports: [port], externalIps: external },
      { externalIps: external },
      [`node port 30080/tcp ${left} "x/zz", ${olds}`],
    ],
    [
      "a health-check node port",
      { healthCheckNodePort: 32_000 },
      { healthCheckNodePort: 32_000 },
      {},
      [`health-check node port 32000 ${left} "x/zz", ${olds}`],
    ],
    [
      "the same port of another protocol",
      { ports: [port] },
      { ports: [{ ...port, protocol: "udp" }] },
      { nodePort: 30_080 },
      [],
    ],
    [
      "the same address with another port",
      { externalIps: external },
      { externalIps: external, ports: [{ ...port, port: 81 }] },
      { externalIps: external },
      [],
    ],
  ])("of two services the older has %s, until it goes", (_, old, young, wanted, messages) => {
    const store = new ServiceStore();
    const first = service("zz", { created: day(1), ...old });
    const second = service("aa", { created: day(2), ...young });
    store.putService(second);
    const whole = store.wanted.get("x/aa:a");
    store.putService(first);
    expect(store.wanted.get("x/aa:a")).toEqual({ ...without(whole!, messages), ...wanted });
    expect(store.healthChecks.has("x/aa")).toBe("healthCheckNodePort" in young && messages.length === 0);
    expect(store.problems.get("x/aa")?.map(({ message }) => message) ?? []).toEqual(messages);
    expect(store.problems.get("x/zz")).toBeUndefined();
    store.deleteService(first);
    expect(store.wanted.get("x/aa:a")).toEqual(whole);
    expect(store.problems.size).toBe(0);
  });

  test("a cluster IP is taken away by no external IP, however old, and of those of one second the first by name has it", () => {
    const store = new ServiceStore();
    const ip = parseIp("10.96.7.7")!;
    store.putService(service("aa", { created: day(1), externalIps: [ip] }));
    store.putService(service("bb", { created: day(2), clusterIps: [ip], externalIps: external }));
    store.putService(service("cc", { created: day(2), externalIps: external.slice(0, 1) }));
    expect(store.wanted.get("x/aa:a")?.externalIps).toEqual([]);
    expect([...store.problems]).toEqual([
      [
        "x/aa",
        [{ key: "x/aa:a", reason: "AddressConflict", message: `10.96.7.7 port 80/tcp ${left} "x/bb", ${hisIp}` }],
      ],
      [
        "x/cc",
        [{ key: "x/cc:a", reason: "AddressConflict", message: `203.0.113.9 port 80/tcp ${left} "x/bb", ${olds}` }],
      ],
    ]);
    expect(store.wanted.get("x/bb:a")).toMatchObject({ clusterIp: ip, externalIps: external });
    // One that has no address of its own left is none.
    store.putService(service("dd", { created: day(3), clusterIps: [ip] }));
    expect(store.wanted.has("x/dd:a")).toBe(false);
  });
});
