import { describe, expect, test } from "vitest";
import { ipOf, parseIp } from "../../shared/net/ip.ts";
import { random } from "../../test/support/random.ts";
import { seed } from "../../test/support/seed.ts";
import type { EndpointSlice, SliceEndpoint } from "./endpoint-slice.ts";
import type { Service } from "./service-object.ts";
import { ServiceStore } from "./service-store.ts";

const service = (name: string, more: Partial<Service> = {}): Service => ({
  ...{ namespace: "x", name, created: "" },
  clusterIps: [parseIp("10.96.0.1")!],
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
        const next = service(name, {
          ...{ internalLocal: yes(), externalLocal: yes() },
          ...(yes() ? { clusterIps: [parseIp("10.96.0.1")!, parseIp("fd00::1")!] } : {}),
          ...(yes() ? { healthCheckNodePort: 30_000 + draw(2) } : {}),
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
    expect(store.problems).toEqual(['Service "x/a": "spec.ports[1]" is not understood, and left out']);
    store.putService(service("a"));
    expect(store.problems).toEqual([]);
  });
});
