import { expect, test } from "vitest";
import { CniError } from "../../../shared/errors.ts";
import { hnsError } from "./hns-errors.ts";

test("an error of ours stays as it is, a foreign one becomes an internal one that names what was done", () => {
  const own = new CniError(7, "Cannot do it: no");
  expect(hnsError("attach", own)).toBe(own);
  expect(hnsError("attach", new Error("broken"))).toMatchObject({ code: 100, message: "Cannot attach: broken" });
});
