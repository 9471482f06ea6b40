import { describe, expect, test } from "vitest";
import type { ActiveFault, Fault } from "../../../../test/fakes/hns/faults.ts";
import { ip } from "../../../../test/fakes/hns/hns-node.ts";
import { port } from "../../../../test/fakes/hns/service-ports.ts";
import { apply, other, own, ServicesNode, servicesOf, web } from "../../../../test/fakes/hns/services-node.ts";

const hns = new ServicesNode();

describe("a call that goes wrong", () => {
  const fault = (what: Fault): ActiveFault => hns.fake.service.fault(what);
  const db = port({ key: "default/db:sql", clusterIp: ip("10.96.0.11"), internal: [own] });

  test("concerns its own service alone, and is made again after a pause", async () => {
    const services = await hns.start({ listingMs: 50 });
    {
      using _ = fault({ call: "HcnCreateLoadBalancer", match: "10.96.0.10", hresult: 0x8007000e });
      const refused = await apply(services, web(), db);
      expect(refused).toEqual([{ key: "default/web:http", reason: expect.stringContaining("E_OUTOFMEMORY") }]);
      expect([hns.places(), hns.places({ to: "10.96.0.11" })]).toEqual([["nowhere"], ["10.9.0.7:8080"]]);
      // Its pause is not over.
      expect(await hns.changesOf(() => apply(services, web(), db))).toEqual({});
    }
    await expect.poll(() => hns.places(), { timeout: 5_000 }).toEqual(["10.9.0.7:8080", "10.9.1.9:8080"]);
  });

  test("of an endpoint elsewhere leaves the others of its service", async () => {
    const services = await hns.start();
    using _ = fault({ call: "HcnCreateEndpoint", match: "10.9.1.9", hresult: 0x80004005 });
    expect(await apply(services, web())).toEqual([
      { key: "default/web:http", reason: expect.stringContaining("endpoint 10.9.1.9") as string },
    ]);
    expect(hns.places()).toEqual(["10.9.0.7:8080"]);
  });

  test("deletes at the second attempt, as Windows Server 2019 has it", async () => {
    const services = await hns.start();
    await apply(services, web());
    fault({ call: "HcnDeleteLoadBalancer", hresult: 0x80004005, times: 1 });
    await apply(services);
    expect(hns.balancers).toEqual([]);
  });

  test("does not delete: told, kept and tried again; its endpoints stay as long", async () => {
    const services = await hns.start();
    await apply(services, web());
    {
      using _ = fault({ call: "HcnDeleteLoadBalancer", hresult: 0x80004005 });
      await apply(services);
      expect([hns.balancers.length, hns.remotes]).toEqual([1, ["10.9.1.9"]]);
    }
    await Bun.sleep(1_100);
    await apply(services);
    expect([hns.balancers, hns.remotes]).toEqual([[], []]);
  });

  test.each(["HcnEnumerateLoadBalancers", "HcnOpenNetwork"])("%s is no absence: nothing is changed", async (call) => {
    const services = await hns.start();
    await apply(services, web());
    const before = hns.ids;
    const next = hns.again();
    await next.start();
    {
      using _ = fault({ call, hresult: 0x80004005 });
      await expect(apply(servicesOf(next), web())).rejects.toMatchObject({ code: 11 });
    }
    expect([hns.ids, hns.remotes]).toEqual([before, ["10.9.1.9"]]);
    await apply(servicesOf(next), web());
    expect(hns.ids).toEqual(before);
  });

  test("is any one of all that a change makes: the others are done, and in the end everything is as wanted", async () => {
    const services = await hns.start();
    const ports = [web({ nodePort: 30_080, external: [own, other] }), db];
    for (const mishap of [{ hresult: 0x80004005 }, { holdMs: "until released" }, { afterwards: 0x800706be }] as const) {
      await apply(services);
      const { calls } = hns.fake.service;
      const before = calls.length;
      await apply(services, ...ports);
      const count = calls.slice(before).filter(({ fn }) => !fn.startsWith("HcnClose")).length;
      await apply(services);
      expect(count).toBeGreaterThan(5);
      for (let n = 0; n < count; n++) {
        using one = fault({ ...mishap, call: "*", skip: n, times: 1 });
        await apply(services, ...ports).catch(() => undefined);
        one[Symbol.dispose]();
        const next = hns.again();
        await next.start();
        const what = `call ${n} ${JSON.stringify(mishap)}`;
        expect([what, await apply(servicesOf(next), ...ports)]).toEqual([what, []]);
        expect([what, hns.places(), hns.places({ to: "10.96.0.11" })]).toEqual([
          what,
          ["10.9.0.7:8080", "10.9.1.9:8080"],
          ["10.9.0.7:8080"],
        ]);
        expect([what, hns.balancers.length, hns.remotes]).toEqual([what, 3, ["10.9.1.9"]]);
        await apply(servicesOf(next));
        await apply(services);
      }
    }
  }, 60_000);

  test("makes HNS hang: after three the rest waits", async () => {
    const services = await hns.start();
    const many = Array.from({ length: 10 }, (_, i) =>
      port({ key: `default/s${i}:`, clusterIp: ip(`10.96.1.${i}`), internal: [own] }),
    );
    using hang = fault({ call: "HcnCreateLoadBalancer", holdMs: "until released" });
    await expect(apply(services, ...many)).rejects.toMatchObject({ code: 11 });
    expect(hang.hits).toBe(3);
  });

  test("HNS has restarted: everything is made again with its pods' endpoints", async () => {
    const services = await hns.start({ listingMs: 10, servicesListingMs: 10 });
    await apply(services, web());
    hns.fake.service.restart();
    await expect.poll(() => hns.dataPath.missing?.().length).toBe(2);
    for (const missing of hns.dataPath.missing?.() ?? []) await hns.dataPath.remake?.(missing, undefined);
    await expect.poll(() => hns.places()).toEqual(["10.9.0.7:8080", "10.9.1.9:8080"]);
  });

  test("shows another document than it was given: no change of anybody's, but one that comes later is", async () => {
    const services = await hns.start();
    hns.fake.service.store.hiddenOfBalancers = "SourceVIP";
    await apply(services, web({ internal: [own] }));
    expect(await services.differences()).toEqual([]);
    expect(await hns.changesOf(() => apply(services, web({ internal: [own] })))).toEqual({});
    for (const balancer of hns.balancers) Object.assign(balancer, { Flags: 0 });
    expect(await services.differences()).toHaveLength(1);
  });
});
