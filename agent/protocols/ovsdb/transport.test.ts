import { describe, expect, test } from "vitest";
import { OvsdbError } from "./ovsdb-error.ts";
import { type OvsdbAddress, parseAddress } from "./transport.ts";

const pipe = "\\\\.\\pipe\\C:openvswitchvarrunopenvswitchdb.sock";

describe("addresses of a database", () => {
  const good: readonly [text: string, onWindows: boolean, address: OvsdbAddress][] = [
    ["unix:/run/openvswitch/db.sock", false, { t: "unix", path: "/run/openvswitch/db.sock" }],
    ["/run/openvswitch/db.sock", false, { t: "unix", path: "/run/openvswitch/db.sock" }],
    ["tcp:10.0.0.1:6641", false, { t: "tcp", host: "10.0.0.1", port: 6641 }],
    ["tcp:10.0.0.1", true, { t: "tcp", host: "10.0.0.1", port: 6640 }],
    ["tcp:[fd00::1]:1", false, { t: "tcp", host: "fd00::1", port: 1 }],
    ["tcp:[::1]", false, { t: "tcp", host: "::1", port: 6640 }],
    [pipe, true, { t: "pipe", name: pipe }],
    [`pipe:${pipe}`, true, { t: "pipe", name: pipe }],
    [`unix:${pipe}`, true, { t: "pipe", name: pipe }],
    ["unix:C:\\openvswitch\\var\\run\\openvswitch\\db.sock", true, { t: "pipe", name: pipe }],
    ["unix:C:/openvswitch/var/run/openvswitch/db.sock", true, { t: "pipe", name: pipe }],
    ["C:/openvswitch\\var/run/openvswitch/db.sock", true, { t: "pipe", name: pipe }],
  ];
  test.each(good)("%s", (text, onWindows, address) => {
    expect(parseAddress(text, onWindows)).toEqual(address);
  });

  const bad: readonly [text: string, onWindows: boolean][] = [
    ["", false],
    ["unix:", false],
    ["unix:db.sock", false],
    ["unix:/run/a\0b", false],
    ["tcp:", false],
    ["tcp:10.0.0.1:0", false],
    ["tcp:10.0.0.1:65536", false],
    ["tcp:[10.0.0.1]:1", false],
    ["tcp:fd00::1:6640", false],
    ["ssl:10.0.0.1:6640", false],
    ["pipe:/run/db.sock", false],
    ["/run/openvswitch/db.sock", true],
    ["C:", true],
    ["\\\\.\\pipe\\", true],
    [`\\\\.\\pipe\\${"x".repeat(248)}`, true],
    [`C:\\${"x".repeat(256)}`, true],
  ];
  test.each(bad)("not %j", (text, onWindows) => {
    expect(() => parseAddress(text, onWindows)).toThrow(OvsdbError);
    expect(() => parseAddress(text, onWindows)).toThrow(
      /^Cannot connect to a database: the address is .*, wanted "unix:/,
    );
  });
});
