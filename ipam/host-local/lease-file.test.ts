import { describe, expect, test } from "vitest";
import { formatIp, parseIp } from "../../shared/net/ip.ts";
import { addressName, addressOfName, cursorName, holderText, parseHolder, rangeSetOfCursor } from "./lease-file.ts";

describe("names", () => {
  test.each([
    ["10.1.2.3", "10.1.2.3", "10.1.2.3"],
    ["fd00::2", "fd00::2", "fd00__2"],
    ["fd00:1:2:3:4:5:6:7", "fd00:1:2:3:4:5:6:7", "fd00_1_2_3_4_5_6_7"],
  ])("%s", (address, here, onWindows) => {
    const ip = parseIp(address)!;
    expect(addressName(ip, false)).toBe(here);
    expect(addressName(ip, true)).toBe(onWindows);
    for (const name of [here, onWindows]) expect(formatIp(addressOfName(name)!)).toBe(address);
  });

  test.each(["", "lock", "10.1.2", "10.1.2.03", "fd00_2", "fd00:_2", "10.1.2.3.tmp", "last_reserved_ip.0"])(
    "%j is no address",
    (name) => {
      expect(addressOfName(name)).toBeUndefined();
    },
  );

  test("cursors", () => {
    expect(cursorName(3)).toBe("last_reserved_ip.3");
    expect(rangeSetOfCursor("last_reserved_ip.0")).toBe(0);
    expect(rangeSetOfCursor("last_reserved_ip.12")).toBe(12);
    for (const name of ["last_reserved_ip.", "last_reserved_ip.01", "last_reserved_ip.x", "last_reserved_ip.12345678"])
      expect(rangeSetOfCursor(name)).toBeUndefined();
  });
});

describe("texts", () => {
  test.each([
    ["c1\r\neth0", { containerId: "c1", ifname: "eth0" }],
    // host-local compares without the blanks around.
    [" c1\r\neth0\r\n\n", { containerId: "c1", ifname: "eth0" }],
    ["c1", { containerId: "c1", ifname: "" }],
    ["c1\n", { containerId: "c1", ifname: "" }],
  ])("%j", (text, holder) => {
    expect(parseHolder(text)).toEqual(holder);
    expect(holderText(holder)).toBe(text.trim());
  });

  test.each([
    ["", "it is empty"],
    ["\r\n", "it is empty"],
    ["c1\neth0", "its lines end with LF, wanted CR LF"],
    ["c1\r\neth0\r\nmore", "it has more than two lines"],
    ["../x\r\neth0", 'its first line is "../x", wanted a container id'],
    ["c1\r\nnot/one", 'its second line is "not/one", wanted an interface name'],
    ["c1\r\neth0\nmore", 'its second line is "eth0\\nmore", wanted an interface name'],
    ["\u0000".repeat(9), "its first line is"],
  ])("%j: %s", (text, reason) => {
    expect(parseHolder(text)).toContain(reason);
  });
});
