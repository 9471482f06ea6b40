import { expect, test } from "vitest";
import { proofOf } from "./prove.ts";

const dropped = (table: string) => ({ t: "dropped", table, reason: "no rule" }) as const;
const delivered = { t: "delivered", pod: "x/a", port: "a" } as const;

test.each([
  [delivered, true, "agrees"],
  [delivered, false, "differs"],
  [dropped("IngressMetric"), false, "agrees"],
  [dropped("EgressDefaultRule"), true, "differs"],
  // Nobody comes to the policies' tables.
  [dropped("SpoofGuard"), false, "none"],
  [dropped("ServiceLB"), true, "none"],
] as const)("%j, where policies allow it: %s, %s", (verdict, allowed, t) => {
  expect(proofOf(verdict, allowed, "")).toMatchObject({ t });
});
