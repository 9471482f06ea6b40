import { expect, test } from "vitest";
import type { Owner } from "../../shared/cni/types.ts";
import { RecordedMeter, sampled } from "../../test/fakes/recorded-meter.ts";
import type { DeniedCount, PodRule } from "../datapath/policies.ts";
import { PolicyMeasures } from "./policy-measures.ts";

const owner = (sandboxId: string): Owner => ({ network: "pods", sandboxId, ifname: "eth0" });
const rule = (direction: PodRule["direction"]): Pick<PodRule, "direction"> => ({ direction });
const denied = (sandboxId: string, packets: number): DeniedCount => ({
  ...{ owner: owner(sandboxId), direction: "ingress", packets, bytes: 0 },
});

test("a change counts from its first word until it is in force, over attempts that fail", async () => {
  const meter = new RecordedMeter();
  const measures = new PolicyMeasures(meter);
  await measures.realize(async () => undefined);
  expect(meter.told).toEqual([]);
  measures.changed();
  await Bun.sleep(20);
  measures.changed();
  await expect(measures.realize(() => Promise.reject(new Error("away")))).rejects.toThrow("away");
  expect(meter.told).toEqual([]);
  expect(await measures.realize(async () => "done")).toBe("done");
  expect(meter.told).toEqual(["pipette_policy_realization_seconds"]);
  expect(meter.seconds[0]).toBeGreaterThanOrEqual(0.019);
  await measures.realize(async () => undefined);
  expect(meter.told).toHaveLength(1);
});

test("packets that were refused are never fewer than before, whatever pods go and come", async () => {
  const measures = new PolicyMeasures(undefined);
  const rules = new Map([
    ["a", rule("ingress")],
    ["b", rule("ingress")],
  ]);
  const drops = async (...counted: readonly DeniedCount[]): Promise<number | undefined> => {
    const counts = async () => ({ rules: [], denied: counted });
    const told = await sampled((samples) => measures.tell(samples, rules, { counts }));
    expect([told["pipette_policy_rules{direction=ingress}"], told["pipette_policy_rules{direction=egress}"]]).toEqual([
      2, 0,
    ]);
    return told["pipette_policy_drops_total{direction=ingress}"];
  };
  expect(await drops(denied("x", 5))).toBe(5);
  expect(await drops(denied("x", 7), denied("y", 1))).toBe(8);
  // One is gone; another one counts anew.
  expect(await drops(denied("y", 3))).toBe(10);
  expect(await drops(denied("x", 2), denied("y", 1))).toBe(13);
});

test("rules are told also where nobody can say what was refused", async () => {
  const told: string[] = [];
  const measures = new PolicyMeasures(undefined);
  const counts = () => Promise.reject(new Error("the switch is away"));
  const telling = measures.tell({ set: (name) => void told.push(name) }, new Map(), { counts });
  await expect(telling).rejects.toThrow("away");
  expect(told).toEqual(["pipette_policy_rules", "pipette_policy_rules"]);
});
