import { beforeEach, expect, test, vi } from "vitest";
import { parseCidr } from "../../../shared/net/ip.ts";
import { Kernel, NodeInMemory, present } from "../../../test/fakes/netlink/kernel.ts";
import type { Kernel as RealKernel } from "../../protocols/netlink/mod.ts";
import {
  forwardingProblems,
  ignoreRouters,
  isolateHostEnd,
  readSysctl,
  routersAccepted,
  skipAddressDetection,
  turnOnForwarding,
  writeSysctl,
} from "./node-sysctls.ts";

vi.mock(import("node:fs"), async (original) => {
  const { hostFiles } = await import("../../../test/fakes/netlink/host-files.ts");
  return hostFiles(await original()) as never;
});

const kernel = () => new Kernel() as unknown as RealKernel;
const at = (name: string): string => `/proc/sys/net/${name}`;
const [forward4, forward6] = [at("ipv4/ip_forward"), at("ipv6/conf/all/forwarding")];
const device = at("ipv4/conf/br0/forwarding");
const [ra, redirects6, redirects4] = [
  "ipv6/conf/br0/accept_ra",
  "ipv6/conf/br0/accept_redirects",
  "ipv4/conf/br0/accept_redirects",
].map(at) as [string, string, string];

/** Nothing but these files. */
function files(content: Readonly<Record<string, string>>): Map<string, string> {
  const { sysctls } = present.node.own;
  sysctls.clear();
  for (const [path, value] of Object.entries(content)) sysctls.set(path, value);
  return sysctls;
}
beforeEach(() => {
  present.node = new NodeInMemory();
});

test("a file is read without its end, and one that is missing is nothing", () => {
  files({ [forward4]: "1" });
  expect([readSysctl(forward4), readSysctl(forward6)]).toEqual(["1", undefined]);
});

test("what cannot be written is an error with the file, its value and the one that was wanted", () => {
  files({});
  expect(() => writeSysctl(forward4, "1", "forward")).toThrow(
    expect.objectContaining({
      code: 102,
      message: `Cannot forward: "${forward4}" is "missing" and cannot be written (ENOENT), wanted "1"`,
    }),
  );
});

test("an interface believes no routers once it was told so, and what is off stays untouched", () => {
  const all = files({ [ra]: "2", [redirects6]: "0", [redirects4]: "1" });
  expect(routersAccepted("br0")).toEqual([
    `"br0" believes routers on its link: "${ra}" is "2", wanted "0"`,
    `"br0" believes routers on its link: "${redirects4}" is "1", wanted "0"`,
  ]);
  ignoreRouters("br0");
  expect([...all.values()]).toEqual(["0", "0", "0"]);
  expect(routersAccepted("br0")).toEqual([]);
  // A kernel without the family.
  files({});
  ignoreRouters("br0");
  expect(routersAccepted("br0")).toEqual([]);
});

test("the node's end of a pair has no IPv6, and a gateway no detection of duplicates", () => {
  const [off, dad] = [at("ipv6/conf/v0/disable_ipv6"), at("ipv6/conf/v0/accept_dad")];
  const all = files({ [off]: "0", [dad]: "1" });
  isolateHostEnd(kernel(), "v0");
  skipAddressDetection("v0");
  expect([all.get(off), all.get(dad)]).toEqual(["1", "0"]);
  files({});
  expect([isolateHostEnd(kernel(), "v0"), skipAddressDetection("v0")]).toEqual([undefined, undefined]);
});

const [four, six] = [parseCidr("10.1.0.0/24")!, parseCidr("fd00::/64")!];
test.each<
  readonly [string, Readonly<Record<string, string>>, Parameters<typeof turnOnForwarding>[0], readonly string[]]
>([
  ["on", { [forward4]: "1", [device]: "1" }, [{ subnets: [four], device: "br0" }], []],
  [
    "off",
    { [forward4]: "0", [forward6]: "0" },
    [{ subnets: [four, six] }, { subnets: [four] }],
    ["IPv4 forwarding is off on the node", "IPv6 forwarding is off on the node"],
  ],
  ["off for what nobody uses", { [forward4]: "1", [forward6]: "0" }, [{ subnets: [four] }], []],
  [
    "off for an interface",
    { [forward4]: "1", [device]: "0" },
    [{ subnets: [four], device: "br0" }],
    ['IPv4 forwarding is off for "br0"'],
  ],
  [
    "off for both",
    { [forward4]: "0", [device]: "0" },
    [{ subnets: [four], device: "br0" }],
    ["IPv4 forwarding is off on the node"],
  ],
  ["off for an interface of IPv6 alone", { [forward6]: "1", [device]: "0" }, [{ subnets: [six], device: "br0" }], []],
])("forwarding is %s", (_name, content, networks, problems) => {
  const all = files(content);
  expect(forwardingProblems(networks)).toEqual(problems);
  const before = new Map(all);
  turnOnForwarding(networks);
  expect(forwardingProblems(networks)).toEqual([]);
  for (const [path, value] of all) {
    const isUsed = problems.some((problem) =>
      problem.includes(path === forward4 ? "IPv4" : path === forward6 ? "IPv6" : "IPv4"),
    );
    expect([path, value]).toEqual([path, isUsed ? "1" : before.get(path)]);
  }
});

test("forwarding that cannot be turned on is an error", () => {
  files({});
  expect(() => turnOnForwarding([{ subnets: [six] }])).toThrow("Cannot forward IPv6 packets");
});
