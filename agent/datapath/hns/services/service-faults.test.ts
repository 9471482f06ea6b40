import { describe, expect, test, vi } from "vitest";
import type { ActiveFault, Fault } from "../../../../test/fakes/hns/faults.ts";
import { ip } from "../../../../test/fakes/hns/hns-node.ts";
import { endpoint, port } from "../../../../test/fakes/hns/service-ports.ts";
import { apply, other, own, ServicesNode, servicesOf, web } from "../../../../test/fakes/hns/services-node.ts";

const hns = new ServicesNode();

/** Stops the clock by which pauses are counted. @param aheadMs how much later than now */
const clockAt = (aheadMs: number): Disposable =>
  vi.spyOn(performance, "now").mockReturnValue(performance.now() + aheadMs);
const afterPauseMs = 10_000;

describe("a call that goes wrong", () => {
  const fault = (what: Fault): ActiveFault => hns.fake.service.fault(what);
  const db = port({ key: "default/db:sql", clusterIp: ip("10.96.0.11"), internal: [own] });

  test("concerns its own service alone, and is made again after a pause", async () => {
    const services = await hns.start({ listingMs: 50 });
    {
      using _ = fault({ call: "HcnCreateLoadBalancer", match: "10.96.0.10", hresult: 0x8007000e });
      using _clock = clockAt(0);
      const refused = await apply(services, web(), db);
      expect(refused).toEqual([
        { key: "default/web:http", reason: expect.stringMatching(/E_OUTOFMEMORY.*; 0 load balancers have a block/) },
      ]);
      expect([hns.places(), hns.places({ to: "10.96.0.11" })]).toEqual([["nowhere"], ["10.9.0.7:8080"]]);
      // Its pause is not over; what stands is looked at again, since the call may have been done all the same.
      expect(await hns.changesOf(() => apply(services, web(), db))).toEqual({ HcnEnumerateLoadBalancers: 1 });
      expect(await hns.changesOf(() => apply(services, web(), db))).toEqual({});
    }
    await expect.poll(() => hns.places(), { timeout: 30_000 }).toEqual(["10.9.0.7:8080", "10.9.1.9:8080"]);
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
    using _clock = clockAt(afterPauseMs);
    await apply(services);
    expect([hns.balancers, hns.remotes]).toEqual([[], []]);
  });

  test("deletes no load balancer that is to be another: it leads where it led, and its endpoints stay", async () => {
    const services = await hns.start();
    const [c, d] = [endpoint("10.9.1.10"), endpoint("10.9.1.11")];
    await apply(services, web({ internal: [own, other, c, d] }));
    const places = hns.places();
    {
      using _ = fault({ call: "HcnDeleteLoadBalancer", hresult: 0x80004005 });
      const refused = await apply(services, web());
      expect(refused).toEqual([{ key: "default/web:http", reason: expect.stringContaining("80004005") }]);
      expect([hns.places(), hns.remotes.length]).toEqual([places, 3]);
    }
    using _clock = clockAt(afterPauseMs);
    expect(await apply(services, web())).toEqual([]);
    expect([hns.places(), hns.remotes]).toEqual([["10.9.0.7:8080", "10.9.1.9:8080"], ["10.9.1.9"]]);
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
