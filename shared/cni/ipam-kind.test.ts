import { expect, test } from "vitest";
import { Fields } from "../schema/json-fields.ts";
import { ipamKind } from "./ipam-kind.ts";

test.each([
  [{}, "agent"],
  [{ ipam: {} }, "agent"],
  [{ ipam: { type: "" } }, "agent"],
  [{ ipam: { type: "pipette-ipam" } }, "own"],
  [{ ipam: { type: "pipette" } }, "own"],
  [{ ipam: { type: "host-local" } }, "delegated"],
] as const)("%j: %s", (conf, wanted) => {
  expect(ipamKind(new Fields(conf))).toBe(wanted);
});
