import { expect, test } from "vitest";
import { ipOf } from "../../shared/net/ip.ts";
import { RecordedMeter, sampled } from "../../test/fakes/recorded-meter.ts";
import { endpointAt, servicePort } from "../../test/fakes/service-port.ts";
import { ServiceMeasures } from "./service-measures.ts";

const prefix = "kubeproxy_sync_proxy_rules_";

test("what was heard is pending until all of it is in force", async () => {
  const meter = new RecordedMeter();
  const source = { changes: { services: 2, endpoints: 5 } };
  const measures = new ServiceMeasures(source, meter);
  const told = async (): Promise<(number | undefined)[]> => {
    const values = await sampled((samples) => measures.tell(samples, new Map(), 0));
    return [
      "service_changes_total",
      "service_changes_pending",
      "endpoint_changes_total",
      "endpoint_changes_pending",
    ].map((name) => values[`${prefix}${name}`]);
  };
  expect(await told()).toEqual([2, 2, 5, 5]);
  // One more comes while the data path works: that is not in force.
  await measures.sync(async () => {
    source.changes = { services: 2, endpoints: 6 };
  });
  expect(await told()).toEqual([2, 2, 6, 6]);
  measures.applied();
  expect(await told()).toEqual([2, 0, 6, 1]);
  await expect(measures.sync(() => Promise.reject(new Error("away")))).rejects.toThrow("away");
  expect(meter.told).toEqual([`${prefix}duration_seconds`, `${prefix}duration_seconds`]);
});

test("the last word and the last change are told once there are some, and no changes of a source that counts none", async () => {
  const measures = new ServiceMeasures({}, undefined);
  const names = async (): Promise<string[]> =>
    Object.keys(await sampled((samples) => measures.tell(samples, new Map(), 3)));
  const always = [
    "pipette_services{state=accepted}",
    "pipette_services{state=refused}",
    `${prefix}no_local_endpoints_total{traffic_policy=internal}`,
    `${prefix}no_local_endpoints_total{traffic_policy=external}`,
    "pipette_service_endpoints",
  ];
  expect(await names()).toEqual(always);
  measures.queued();
  await measures.sync(async () => undefined);
  measures.applied();
  expect(await names()).toEqual([
    ...always,
    `${prefix}last_queued_timestamp_seconds`,
    `${prefix}last_timestamp_seconds`,
  ]);
});

test("how long a change took is told once it is in force, also where that took a second attempt", async () => {
  const meter = new RecordedMeter();
  const programming = "kubeproxy_network_programming_duration_seconds";
  const heard = [Date.now() - 3_000];
  const measures = new ServiceMeasures({ takeTriggers: () => heard.splice(0) }, meter);
  const told = (): string[] => meter.told.filter((name) => name === programming);
  await expect(measures.sync(() => Promise.reject(new Error("away")))).rejects.toThrow("away");
  expect(told()).toEqual([]);
  heard.push(Date.now());
  await measures.sync(async () => undefined);
  measures.applied();
  expect(told()).toEqual([programming, programming]);
  await measures.sync(async () => undefined);
  measures.applied();
  expect(told()).toHaveLength(2);
});

test("services that only other nodes could answer for are counted by the policy that keeps to this one", async () => {
  const measures = new ServiceMeasures({}, undefined);
  const elsewhere = [endpointAt(ipOf(4, 0x0a01_0002n), 80)];
  const port = servicePort({ clusterIp: ipOf(4, 0x0a60_0001n), endpoints: elsewhere });
  const ports = [
    port,
    { ...port, key: "x/inside:h", internal: [] },
    { ...port, key: "x/outside:h", external: [], keepsClient: true },
    { ...port, key: "x/nobody:h", internal: [], external: [], cluster: [], keepsClient: true },
  ];
  const wanted = new Map(ports.map((each) => [each.key, each]));
  const values = await sampled((samples) => measures.tell(samples, wanted, 0));
  const lacking = ["internal", "external"].map(
    (policy) => values[`${prefix}no_local_endpoints_total{traffic_policy=${policy}}`],
  );
  expect(lacking).toEqual([1, 1]);
});
