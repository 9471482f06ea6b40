import { expect, test } from "vitest";
import { LiveValue } from "../../shared/async/live-value.ts";
import type { KubernetesEvents } from "../../shared/kubernetes/mod.ts";
import { createLogger } from "../../shared/log.ts";
import { parseIp } from "../../shared/net/ip.ts";
import { ServiceProxyInMemory } from "../../test/fakes/service-proxy.ts";
import { eventually } from "../../test/support/eventually.ts";
import type { ServicePort } from "../datapath/services.ts";
import type { HealthCheck, ServiceProblem } from "./decide.ts";
import { NodeServices } from "./node-services.ts";
import type { ServiceSource } from "./service-source.ts";

type State = ReadonlyMap<string, ServicePort>;
type Happening = Parameters<KubernetesEvents["tell"]>[0];

class Source extends LiveValue<State> implements ServiceSource {
  fault: string | undefined;
  problems: ReadonlyMap<string, readonly ServiceProblem[]> = new Map();
  healthChecks: ReadonlyMap<string, HealthCheck> = new Map();
  isDisposed = false;

  tell(...keys: readonly string[]): void {
    this.set(new Map(keys.map((key) => [key, portOf(key)])));
  }

  referenceOf(service: string) {
    const [namespace = "", name = ""] = service.split("/");
    return name === "gone" ? undefined : { namespace, name, uid: `uid-${name}`, more: "" };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.isDisposed = true;
  }
}

const portOf = (key: string): ServicePort => ({
  ...{ key, protocol: "tcp", port: 80, clusterIp: parseIp("10.96.0.1")! },
  ...{ externalIps: [], ingressIps: [], internal: [], external: [], cluster: [] },
  ...{ keepsClient: false, preservesDestination: false },
});

function set(retryMs = 10) {
  const [source, proxy, lines] = [new Source(), new ServiceProxyInMemory(), [] as string[]];
  const logger = createLogger("warn", (line) => void lines.push(line));
  const told: Happening[] = [];
  const times = { sourceMs: 200, applyMs: 200, retry: { firstMs: retryMs, longestMs: retryMs } };
  return {
    source,
    proxy,
    lines,
    told,
    services: new NodeServices({
      ...{ node: "n1", source, proxy, config: { proxyAll: true, nodePortAddresses: [] }, logger, times },
      events: { tell: (happening) => void told.push(happening) },
    }),
  };
}

const keysIn = (state: State): readonly string[] => [...state.keys()];

test("what the source says first is in force when the start goes on, and each later state after it", async () => {
  const { source, proxy, services } = set();
  await using _ = services;
  source.tell("a");
  await services.begin();
  expect(keysIn(proxy.inForce)).toEqual(["a"]);
  expect(services.summary).toBe("services: 1 ports in force");
  source.tell("a", "b");
  await eventually(() => proxy.inForce.size === 2, "the second state");
});

test("nothing is changed before the source knows all, and the start does not wait for it", async () => {
  const { source, proxy, services } = set();
  await using _ = services;
  source.fault = "the API server is away";
  await services.begin();
  expect(proxy.calls).toBe(0);
  expect(services.summary).toBe("services: none are known yet: the API server is away");
  expect(services.fault).toBe("the API server is away");
  expect(await services.differences()).toEqual([]);
  source.tell("a");
  await eventually(() => proxy.applied.length === 1, "the first state");
});

test("the start does not wait for a data path that takes long", async () => {
  const { source, proxy, services } = set();
  await using _ = services;
  proxy.gate = new Promise(() => undefined);
  source.tell("a");
  await services.begin();
  expect(services.summary).toBe("services: 1 ports being put in force");
});

test("a newer state ends the change to an older one, and changes never overlap", async () => {
  const { source, proxy, services, lines } = set();
  await using _ = services;
  const gate = Promise.withResolvers<void>();
  proxy.gate = gate.promise;
  source.tell("a");
  await services.begin();
  source.tell("b");
  await eventually(() => proxy.calls === 2, "the change to the second state");
  source.tell("c");
  await eventually(() => proxy.calls === 3, "the change to the third state");
  gate.resolve();
  await eventually(() => proxy.applied.length === 1, "a state in force");
  expect(keysIn(proxy.inForce)).toEqual(["c"]);
  expect(lines).toEqual([]);
});

test("what is refused is told, and holds up no other", async () => {
  // Longer than a test.
  const { source, proxy, services, lines } = set(2 ** 30);
  await using _ = services;
  proxy.cannot.add("a");
  source.tell("a", "b");
  await services.begin();
  expect([services.refusalOf("a"), services.refusalOf("b")]).toEqual(["a test says so", undefined]);
  expect(services.summary).toBe("services: 2 ports in force, 1 of them refused");
  expect(services.degraded).toEqual(['Service "a" is not in force as it is to be: a test says so']);
  source.tell("a", "c");
  await eventually(() => proxy.inForce.has("c"), "another service");
  expect(lines.map((line) => JSON.parse(line).error)).toEqual([
    '1 service ports are refused, the first of them "a": a test says so',
  ]);
});

test("what is refused is tried again until it is taken", async () => {
  const { source, proxy, services } = set();
  await using _ = services;
  proxy.cannot.add("a");
  source.tell("a");
  await services.begin();
  proxy.cannot.clear();
  await eventually(() => services.refusalOf("a") === undefined, "the refused one");
});

test("what is not as a service says stands with its port, in status, and once as an Event of the service", async () => {
  const { source, proxy, services, told } = set();
  await using _ = services;
  const held = Bun.listen({ hostname: "::", port: 0, socket: { data: () => undefined } });
  const message = "203.0.113.9 port 80/tcp is left to another";
  source.problems = new Map([["x/web", [{ key: "x/web:http", reason: "AddressConflict", message }]]]);
  source.healthChecks = new Map([["x/lb", { port: held.port, localEndpoints: 1 }]]);
  proxy.cannot.add("x/web:http");
  proxy.cannot.add("x/gone");
  source.tell("x/web:http", "x/web:dns", "x/lb:http", "x/gone");
  await services.begin();
  source.tell("x/web:http", "x/lb:http", "x/more", "x/gone");
  await eventually(() => proxy.inForce.has("x/more"), "another state");
  const health = `its health is not told: port ${held.port} of node "n1" cannot be had (EADDRINUSE)`;
  expect(told).toEqual(
    [
      { of: "web", reason: "AddressConflict", message },
      { of: "web", reason: "NotInForce", message: "x/web:http: a test says so" },
      { of: "lb", reason: "FailedToStartServiceHealthcheck", message: health },
    ].map(({ of: name, ...rest }) => ({ kind: "Service", of: { namespace: "x", name, uid: `uid-${name}` }, ...rest })),
  );
  expect(["x/web:http", "x/web:dns"].map((key) => services.refusalOf(key))).toEqual([
    `a test says so; ${message}`,
    undefined,
  ]);
  expect(services.degraded).toEqual([
    'Service "x/web:http" is not in force as it is to be: a test says so',
    'Service "x/gone" is not in force as it is to be: a test says so',
    `Service "x/web": ${message}`,
    `Service "x/lb": ${health}`,
  ]);
  held.stop(true);
});

test("a data path that is away is asked again, and its fault is told", async () => {
  const { source, proxy, services, lines } = set();
  await using _ = services;
  proxy.away = "the switch is away";
  source.tell("a");
  await services.begin();
  expect(proxy.applied).toEqual([]);
  proxy.away = undefined;
  await eventually(() => proxy.applied.length === 1, "the state in force");
  expect(lines.map((line) => JSON.parse(line).error)).toEqual(["the switch is away"]);
  await eventually(() => services.summary === "services: 1 ports in force", "the end of the change");
  proxy.away = "the switch is away again";
  expect(await services.differences()).toEqual(["what is in force is not known: the switch is away again"]);
  expect(services.degraded).toEqual([]);
});

test("its end ends a change that is under way, and the source", async () => {
  const { source, proxy, services } = set();
  proxy.gate = new Promise(() => undefined);
  source.tell("a");
  await services.begin();
  await services[Symbol.asyncDispose]();
  expect(source.isDisposed).toBe(true);
  source.tell("b");
  await Bun.sleep(50);
  expect(proxy.calls).toBe(1);
});
