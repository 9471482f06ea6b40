import { expect, test } from "vitest";
import type { FindingsDocument } from "../shared/documents/mod.ts";
import { createLogger } from "../shared/log.ts";
import { sampled } from "../test/fakes/recorded-meter.ts";
import { eventually } from "../test/support/eventually.ts";
import { DoctorLooks } from "./doctor-looks.ts";

const finding = (severity: "error" | "warning" | "note") => ({
  ...{ severity, code: "c", what: "w", why: "y", todo: "t", repairable: false },
});
const json = (findings: FindingsDocument["findings"]): { readonly json: Uint8Array } => ({
  json: new TextEncoder().encode(
    JSON.stringify({ kind: "findings", version: 1, node: "a", leases: 0, interfaces: 0, findings, omitted: 0 }),
  ),
});

test("a scrape is told what the last look has found, and looks at nothing itself", async () => {
  let looks = 0;
  let next: () => { readonly json: Uint8Array } = () => json([finding("error"), finding("error"), finding("note")]);
  await using doctor = new DoctorLooks({
    look: async () => {
      looks++;
      return next();
    },
    logger: createLogger("error", () => undefined),
    times: { firstMs: 5, everyMs: 40 },
  });
  expect(await sampled(doctor.measure)).toEqual({});
  await eventually(async () => "pipette_doctor_findings{severity=error}" in (await sampled(doctor.measure)), "a look");
  const before = await sampled(doctor.measure);
  expect(before).toMatchObject({
    "pipette_doctor_findings{severity=error}": 2,
    "pipette_doctor_findings{severity=warning}": 0,
    "pipette_doctor_findings{severity=note}": 1,
  });
  next = () => {
    throw new Error("it cannot look");
  };
  const upTo = looks;
  await eventually(async () => looks > upTo + 2, "looks that fail");
  // What was found stays, with its time.
  expect(await sampled(doctor.measure)).toMatchObject({ "pipette_doctor_findings{severity=error}": 2 });
  next = () => json([]);
  await eventually(
    async () => (await sampled(doctor.measure))["pipette_doctor_findings{severity=error}"] === 0,
    "another look",
  );
  const after = await sampled(doctor.measure);
  const time = "pipette_doctor_look_timestamp_seconds";
  expect(after[time]).toBeGreaterThan(before[time] ?? Number.NaN);
});
