import { expect, test } from "vitest";
import { parseAddress } from "./transport.ts";

const path = (text: string) => ({ t: "path", path: text });
const pipe = "\\\\.\\pipe\\C:openvswitchvarrunopenvswitchbr-int.mgmt";

test.each([
  ["unix:/run/openvswitch/br-int.mgmt", false, path("/run/openvswitch/br-int.mgmt")],
  ["unix:C:\\openvswitch\\var\\run\\openvswitch\\br-int.mgmt", true, path(pipe)],
  ["unix:C:/openvswitch/var/run/openvswitch/br-int.mgmt", true, path(pipe)],
  [`unix:${pipe}`, true, path(pipe)],
  [pipe, true, path(pipe)],
  ["tcp:127.0.0.1:6654", false, { t: "tcp", host: "127.0.0.1", port: 6654 }],
  ["tcp:10.0.0.1", false, { t: "tcp", host: "10.0.0.1", port: 6653 }],
  ["tcp:[fd00::1]:6653", false, { t: "tcp", host: "fd00::1", port: 6653 }],
])("reads %s", (text, isWindows, address) => {
  expect(parseAddress(text, isWindows)).toEqual(address);
});

test.each([
  ["", "it is of no form that is known"],
  ["unix:", "its path is empty"],
  ["\\\\.\\pipe\\", "it is of no form that is known"],
  ["ssl:10.0.0.1:6653", "it is of no form that is known"],
  ["tcp:switch.example:6653", '"switch.example" is not an IP address'],
  ["tcp:fd00::1", "it is of no form that is known"],
  ["tcp:10.0.0.1:0", "its port is 0"],
  ["tcp:10.0.0.1:65536", "its port is 65536"],
])("refuses %j", (text, is) => {
  expect(() => parseAddress(text, false)).toThrow(`Cannot read the address "${text}": ${is}, wanted unix:PATH`);
});
