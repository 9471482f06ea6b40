import { expect, test } from "vitest";
import { winError } from "../os/win32.windows.ts";
import { PipePlace } from "./pipe-place.windows.ts";

/** A pipe of which a crowd has every instance at every look. */
const busy = {
  open: () => ({ t: "failed", error: winError.pipeBusy }) as const,
  waitForInstance: () => undefined,
  serverOf: () => undefined,
  close: () => undefined,
};

test("a pipe whose instances are all taken is lost only where nobody is served any more", () => {
  const place = new PipePlace("\\\\.\\pipe\\x", busy);
  for (let served = 1; served < 20; served++) expect(place.fate(served)).toBeUndefined();
  expect([place.fate(19), place.fate(19), place.fate(19)]).toEqual([undefined, "takes nobody", "takes nobody"]);
});
