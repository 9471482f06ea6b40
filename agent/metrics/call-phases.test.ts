import { expect, test } from "vitest";
import { RecordedMeter } from "../../test/fakes/recorded-meter.ts";
import { CallPhases, measurePhases } from "./call-phases.ts";

test("a part lasts until the next is entered, and goes on where it is entered again", async () => {
  const beganMs = performance.now();
  const phases = new CallPhases();
  phases.enter("queued");
  phases.enter("policies");
  await Bun.sleep(15);
  phases.enter("interface");
  await Bun.sleep(5);
  phases.enter("policies");
  await Bun.sleep(15);
  const ended = phases.end();
  const wholeMs = performance.now() - beganMs;
  expect(ended.map(({ phase }) => phase)).toEqual(["queued", "policies", "interface"]);
  const [queued = 0, policies = 0, wired = 0] = ended.map(({ ms }) => ms);
  expect(policies).toBeGreaterThanOrEqual(28);
  expect(wired).toBeGreaterThanOrEqual(4);
  expect(queued + policies + wired).toBeLessThanOrEqual(wholeMs + 0.01);
  expect(phases.now).toBe("policies");
});

test("the numbers know larger parts, and not the one in which a call failed", () => {
  const meter = new RecordedMeter();
  const phases = (["queued", "ipam", "policies", "interface", "port"] as const).map((phase) => ({ phase, ms: 500 }));
  measurePhases(meter, "ADD", phases, undefined);
  const named = (phase: string): string => `pipette_cni_phase_duration_seconds{verb=ADD,phase=${phase}}`;
  expect(meter.told).toEqual(["queue", "ipam", "policy", "datapath"].map(named));
  expect(meter.seconds).toEqual([0.5, 0.5, 0.5, 1]);
  const failed = new RecordedMeter();
  measurePhases(failed, "ADD", phases, "port");
  expect(failed.told).toEqual(["queue", "ipam", "policy"].map(named));
});
