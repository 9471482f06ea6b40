import { expect, test } from "vitest";
import { CniError } from "../../../shared/errors.ts";
import { NetlinkError } from "../../protocols/netlink/mod.ts";
import { interfaceError } from "./kernel-errors.ts";

test("the kernel's refusal becomes one sentence with its number's name and its own words", () => {
  const error = interfaceError('attach "eth0"', new NetlinkError('create "web-1"', 17, "File exists already"));
  expect(error.code).toBe(102);
  expect(error.message).toBe(
    'Cannot attach "eth0": cannot create "web-1": the kernel answers EEXIST (File exists already)',
  );
});

test("never says what a runtime takes for the success of a DEL", () => {
  for (const words of ["Device not found", "No such file or directory", "NOT FOUND"]) {
    const { message } = interfaceError('detach "eth0"', new NetlinkError("change it", 2, words));
    expect(message.toLowerCase()).not.toMatch(/not found|no such file/);
  }
});

test("our own errors pass as they are, everything else is an internal one", () => {
  const own = new CniError(4, "Cannot enter");
  expect(interfaceError("attach", own)).toBe(own);
  expect(interfaceError("attach", new TypeError("x is undefined")).code).toBe(100);
});
