import { expect, test } from "vitest";
import { CniError } from "../../../shared/errors.ts";
import { NetlinkError, SetnsError } from "../../protocols/netlink/mod.ts";
import { interfaceError, runEach, throwFirst } from "./kernel-errors.ts";

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

test("a namespace that went away is a wrong environment", () => {
  const error = interfaceError('attach "eth0"', new SetnsError("/run/netns/a", 22));
  expect(error).toMatchObject({
    code: 4,
    message: 'Cannot attach "eth0": cannot enter the network namespace "/run/netns/a": the kernel answers EINVAL',
  });
});

test("messages go a hundred at a time, each for itself, and what is so already is no refusal", () => {
  const batches: number[] = [];
  const socket = {
    batch: (messages: readonly number[]) => {
      batches.push(messages.length);
      return messages.map((number) => ({ 150: new NetlinkError("add", 17), 201: new NetlinkError("add", 1) })[number]);
    },
  };
  const messages = Array.from({ length: 202 }, (_, i) => i);
  const refusals = runEach(socket as never, messages as never, 17);
  expect([batches, [...refusals.keys()]]).toEqual([[100, 100, 2], [201]]);
  expect(() => throwFirst(refusals)).toThrow("EPERM");
  expect(throwFirst(new Map())).toBeUndefined();
});
