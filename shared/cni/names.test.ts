import { describe, expect, test } from "vitest";
import { wrongContainerId, wrongDeviceName, wrongIfname, wrongNetworkName, wrongPluginType } from "./names.ts";

const x = (count: number): string => "x".repeat(count);

describe.each<readonly [string, (text: string) => string | undefined, number]>([
  ["a container's id", wrongContainerId, 128],
  ["a network's name", wrongNetworkName, 80],
])("%s", (_name, wrong, most) => {
  test.each(["a", "0", "Z", "z", "9", "A", "a_.-", "a..", "k8s-pod_1.2", x(most)])("may be %j", (text) => {
    expect(wrong(text)).toBeUndefined();
  });

  test.each<readonly [string, string]>([
    ["", "empty"],
    [x(most + 1), `${most + 1} characters long`],
    ...[
      "-a",
      ".a",
      "_a",
      "/",
      ":",
      "@",
      "[",
      "`",
      "{",
      "a/b",
      "a:b",
      "a@",
      "a[",
      "a`",
      "a{",
      "a b",
      "ä",
      "aä",
      "a,",
    ].map((text) => [text, JSON.stringify(text)] as const),
  ])("may not be %j", (text, is) => {
    expect(wrong(text)).toBe(is);
  });
});

describe("an interface's name", () => {
  test.each(["eth0", "a", x(15), "...", ".a", "ü1", "a,b", "a\\b", "veth@if3"])("may be %j", (text) => {
    expect(wrongIfname(text)).toBeUndefined();
  });

  test.each<readonly [string, string]>([
    ["", "empty"],
    [x(16), `"${x(16)}" of 16 bytes`],
    [`${x(14)}ü`, `"${x(14)}ü" of 16 bytes`],
    ...[".", "..", "a/b", "a:b", "eth%d", "a b", "a\u00a0b"].map((text) => [text, JSON.stringify(text)] as const),
  ])("may not be %j", (text, is) => {
    expect(wrongIfname(text)).toBe(is);
  });

  test.each(["a\tb", "a\u001fb", "a\u007f", "\u0000"])("has no control characters: %j", (text) => {
    expect(wrongIfname(text)).toBeDefined();
  });

  test("of the node itself has no other signs either", () => {
    expect(["br-int", "eth0.1", "a_b", "Z"].map(wrongDeviceName)).toEqual(Array(4).fill(undefined));
    for (const text of ["a,b", "ü1", "veth@if3", ",a", "a,"]) expect(wrongDeviceName(text)).toBe(JSON.stringify(text));
    expect([wrongDeviceName(""), wrongDeviceName("a/b")]).toEqual(["empty", '"a/b"']);
  });
});

describe("a plugin's type", () => {
  test.each(["bridge", "pipette-ipam.exe", "a b", "~", "!", x(240)])("may be %j", (text) => {
    expect(wrongPluginType(text)).toBeUndefined();
  });

  test.each<readonly [string, string]>([
    ["", "empty"],
    [x(241), "241 characters long"],
    ...["a/b", "../a", "a\\b", "c:a", "a.", "a ", "ä", "a\u007f", "a\u001f"].map(
      (text) => [text, JSON.stringify(text)] as const,
    ),
  ])("may not be %j", (text, is) => {
    expect(wrongPluginType(text)).toBe(is);
  });
});
