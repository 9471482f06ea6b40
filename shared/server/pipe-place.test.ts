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

test("a pipe that somebody serves already is refused by its process, and let go of again", async () => {
  const closed: number[] = [];
  const taken = {
    ...busy,
    open: () => ({ t: "open", handle: 7 }) as const,
    serverOf: () => 1234,
    close: (handle: number) => void closed.push(handle),
  };
  await expect(new PipePlace("\\\\.\\pipe\\x", taken).clear()).rejects.toThrow("process 1234 has it already");
  expect(closed).toEqual([7]);
  await expect(new PipePlace("\\\\.\\pipe\\x", busy).clear()).rejects.toThrow("another program has it already");
});
