import { expect, test } from "vitest";
import { CniError } from "../shared/errors.ts";
import { retryable } from "./del.ts";

test("an error of a DEL keeps its code and loses the words that containerd takes for success", () => {
  const error = retryable(new CniError(5, "Lease Not Found in x", { details: "open /x: No such file or directory" }));
  expect(error.code).toBe(5);
  expect(error.message).toBe("Lease absent in x");
  expect(error.details).toBe("open /x: absent file or directory");
});
