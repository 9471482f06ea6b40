import { beforeEach, describe, expect, test } from "vitest";
import { parseCidr } from "../../../shared/net/ip.ts";
import { Kernel, NodeInMemory, present } from "../../../test/fakes/netlink/kernel.ts";
import type { NamespaceInMemory } from "../../../test/fakes/netlink/namespace.ts";
import type { Kernel as RealKernel } from "../../protocols/netlink/mod.ts";
import { type Plan, planOf } from "./plan.ts";
import { openSandbox, PodEnd } from "./pod-end.ts";

const path = "/run/netns/a";
let pod: NamespaceInMemory;
let kernel: RealKernel;
beforeEach(() => {
  present.node = new NodeInMemory();
  pod = present.node.addPod(path);
  pod.add({ name: "eth0" });
  kernel = new Kernel() as unknown as RealKernel;
});

const cidr = (text: string) => parseCidr(text)!;
const network = { name: "pods", subnets: [cidr("10.77.0.0/24")] };
const plan = (addresses: readonly string[], more: object = {}, of = network): Plan =>
  planOf(of, {
    owner: { network: "pods", sandboxId: "a", ifname: "eth0" },
    container: { id: "a", netns: path, kind: { t: "sandbox" } },
    ipam: { interfaces: [], ips: addresses.map((text) => ({ address: cidr(text) })), routes: [], dns: {} },
    ownLease: true,
    ...more,
  });
const end = (): PodEnd => new PodEnd(kernel, openSandbox(kernel, path));
const file = (ifname: string, name: string): string => `/proc/sys/net/ipv6/conf/${ifname}/${name}`;

describe("a sandbox", () => {
  test.each([
    [{ t: "missing" }, "does not exist"],
    [{ t: "other" }, "is not a network namespace"],
    [{ t: "own" }, "is the network namespace of the node itself"],
    [{ t: "refused", reason: "EACCES" }, "cannot be opened (EACCES)"],
  ])("that %j is not entered", (opened, is) => {
    const other = { namespaceAt: () => opened } as unknown as RealKernel;
    expect(() => openSandbox(other, path)).toThrow(
      expect.objectContaining({
        code: 4,
        message: `Cannot enter the sandbox: CNI_NETNS "${path}" ${is}, wanted the network namespace of a sandbox`,
      }),
    );
  });
});

describe("a pod's interface", () => {
  test("believes no routers, and announces its addresses of both families", () => {
    using side = end();
    const link = side.link("eth0")!;
    const wanted = plan(["10.77.0.5/24", "fd77::5/64"]);
    side.configure(link, wanted);
    side.announce(link, wanted.podMac, wanted);
    expect(
      ["accept_ra", "accept_redirects", "ndisc_notify"].map((name) => pod.sysctls.get(file("eth0", name))),
    ).toEqual(["0", "0", "1"]);
    expect(side.addresses(link)).toHaveLength(2);
    expect(pod.named("lo")?.up).toBe(true);
    pod.remove(link.index);
    expect([side.addresses(link), side.link("eth0")]).toEqual([[], undefined]);
  });

  test("of IPv4 alone says nothing to neighbours of IPv6", () => {
    using side = end();
    const wanted = plan(["10.77.0.5/24"]);
    side.announce(side.link("eth0")!, wanted.podMac, wanted);
    expect(pod.sysctls.get(file("eth0", "ndisc_notify"))).toBe("0");
  });

  test("is set up where its settings cannot be written, but not without its IPv6", () => {
    kernel.writeSysctl = () => {
      throw new Error("read-only file system");
    };
    using side = end();
    const link = side.link("eth0")!;
    const four = plan(["10.77.0.5/24"]);
    side.configure(link, four);
    side.announce(link, four.podMac, four);
    expect(side.addresses(link)).toHaveLength(1);
    pod.sysctls.set(file("eth0", "disable_ipv6"), "1");
    expect(() => side.configure(link, plan(["fd77::5/64"]))).toThrow(
      expect.objectContaining({
        code: 102,
        message: `Cannot turn on IPv6 for "lo" in "${path}": read-only file system, wanted a writable /proc/sys`,
      }),
    );
  });

  test("gets IPv6 turned on where it has such an address, and keeps it off where not", () => {
    pod.sysctls.set(file("eth0", "disable_ipv6"), "1");
    using side = end();
    const link = side.link("eth0")!;
    side.configure(link, plan(["10.77.0.5/24"]));
    expect(pod.sysctls.get(file("eth0", "disable_ipv6"))).toBe("1");
    side.configure(link, plan(["10.77.0.5/24", "fd77::5/64"]));
    expect([file("eth0", "disable_ipv6"), file("lo", "disable_ipv6")].map((each) => pod.sysctls.get(each))).toEqual([
      "0",
      "0",
    ]);
    expect(side.addresses(link)).toHaveLength(2);
  });
});

describe("the plan of an attachment", () => {
  test("takes the MTU that was asked for, else the network's, else Ethernet's", () => {
    expect([
      plan([], { mtu: 1300 }, { ...network, mtu: 1400 } as never).mtu,
      plan([], {}, { ...network, mtu: 1400 } as never).mtu,
      plan([]).mtu,
    ]).toEqual([1300, 1400, 1500]);
  });

  test.each(["ff:ff:ff:ff:ff:ff", "01:00:5e:00:00:01", "00:00:00:00:00:00", "02:00", "x"])(
    "refuses the MAC %j, which is of no single interface",
    (mac) => {
      expect(() => plan([], { mac })).toThrow(expect.objectContaining({ code: 7 }));
    },
  );

  test("has the MAC that was asked for, else one of its owner", () => {
    const asked = plan([], { mac: "02:00:5E:10:00:01" });
    expect([asked.podMac.toHex(), asked.macRequested]).toEqual(["02005e100001", true]);
    expect([plan([]).podMac, plan([]).macRequested]).toEqual([plan([]).podMac, false]);
    expect(plan([]).podMac.toHex()).not.toBe("02005e100001");
  });
});
