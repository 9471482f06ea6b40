import { expect, test } from "vitest";
import { LiveValue } from "../../shared/async/live-value.ts";
import { createLogger } from "../../shared/log.ts";
import { parseIp } from "../../shared/net/ip.ts";
import { ServiceProxyInMemory } from "../../test/fakes/service-proxy.ts";
import { eventually } from "../../test/support/eventually.ts";
import type { ServicePort } from "../datapath/services.ts";
import { NodeServices } from "./node-services.ts";
import type { ServiceSource } from "./service-source.ts";

type State = ReadonlyMap<string, ServicePort>;

class Source extends LiveValue<State> implements ServiceSource {
  fault: string | undefined;
  isDisposed = false;

  tell(...keys: readonly string[]): void {
    this.set(new Map(keys.map((key) => [key, portOf(key)])));
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
  const times = { sourceMs: 200, applyMs: 200, retry: { firstMs: retryMs, longestMs: retryMs } };
  return { source, proxy, lines, services: new NodeServices({ source, proxy, logger, times }) };
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
  expect(await services.degraded()).toEqual([
    "The services are not followed, and those in force stay: the API server is away",
  ]);
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
  expect(await services.degraded()).toEqual(['Service "a" is not in force as it is to be: a test says so']);
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
