import { describe, expect, test } from "vitest";
import { linuxPaths } from "./paths.linux.ts";
import { windowsPaths } from "./paths.windows.ts";

describe("a path that a network configuration may name", () => {
  test.each(["C:\\data", "d:/data/x.log", "C:\\", "C:\\a b\\..\\c", "C:\\console\\com10x", "C:\\.hidden\\x"])(
    "on Windows is %s",
    (path) => expect(windowsPaths.isLocal(path)).toBe(true),
  );

  test.each([
    "data",
    "\\data",
    "C:data",
    "\\\\host\\share\\x",
    "//host/share/x",
    "\\\\.\\pipe\\x",
    "\\\\.\\PhysicalDrive0",
    "\\\\?\\C:\\x",
    "C:\\x:stream",
    "C:\\x::$DATA",
    "C:\\con",
    "C:\\NUL\\x",
    "C:\\x\\aux.log",
    "C:\\COM1",
    "C:\\lpt9.txt",
    "C:\\COM\u00b9",
    "C:\\x.",
    "C:\\x \\y",
    "C:\\x\0",
    "",
  ])("on Windows is not %j", (path) => expect(windowsPaths.isLocal(path)).toBe(false));

  test("on Linux is an absolute one", () => {
    expect(["/", "/a/../b", "/con", "/a:b"].filter((path) => !linuxPaths.isLocal(path))).toEqual([]);
    expect(["", "a", "./a", "C:\\a", "/a\0b"].filter(linuxPaths.isLocal)).toEqual([]);
  });
});

test.each(["con", "NUL", "com1.x", "aux.json", "pods."])("no network on Windows has the name %s", (name) =>
  expect([windowsPaths.isFileName(name), linuxPaths.isFileName(name)]).toEqual([false, true]),
);
