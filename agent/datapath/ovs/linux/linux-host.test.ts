import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createLogger } from "../../../../shared/log.ts";
import { type Cidr, formatCidr, formatIp, parseCidr, parseIp } from "../../../../shared/net/ip.ts";
import { NodeInMemory, present } from "../../../../test/fakes/netlink/kernel.ts";
import { Refusal } from "../../../../test/fakes/netlink/messages.ts";
import { scratchDir } from "../../../../test/support/scratch-dir.ts";
import {
  addAddress,
  addRoute,
  declareNeighbour,
  Errno,
  listAddresses,
  listNeighbours,
  listRoutes,
  type NetlinkSocket,
  readAddress,
  readNeighbour,
  readRoute,
} from "../../../protocols/netlink/mod.ts";
import type { NodeRoute } from "../../routes.ts";
import { LinuxHost } from "./linux-host.ts";

vi.mock(import("node:fs"), async (original) => {
  const { hostFiles } = await import("../../../../test/fakes/netlink/host-files.ts");
  return hostFiles(await original()) as never;
});

const cidr = (text: string): Cidr => parseCidr(text)!;
let open: DisposableStack;
let node: NodeInMemory;
let socket: NetlinkSocket;
let dataDir: string;
let lines: string[];
let host: LinuxHost;

beforeEach(() => {
  open = new DisposableStack();
  node = new NodeInMemory();
  present.node = node;
  socket = node.socketIn(node.own) as unknown as NetlinkSocket;
  dataDir = open.use(scratchDir()).path;
  lines = [];
  host = freshHost();
});
afterEach(() => open.dispose());

const freshHost = (dir = dataDir) =>
  new LinuxHost(
    socket,
    "gw0",
    dir,
    createLogger("info", (line) => lines.push(line)),
  );
const indexOf = (name: string) => node.own.named(name)!.index;
const give = (name: string, ...addresses: readonly string[]): void => {
  for (const address of addresses) socket.run(addAddress(name, indexOf(name), cidr(address)));
};
const addressesOf = (name: string) =>
  socket
    .dump(listAddresses(indexOf(name)), readAddress)
    .map(({ address }) => formatCidr(address))
    .toSorted();
/** "destination via gateway dev name" of all routes. */
const routes = () =>
  ([4, 6] as const).flatMap((family) =>
    socket.dump(listRoutes(family), readRoute).map(({ dst, hops: [hop] }) => {
      const via = hop?.gateway === undefined ? "" : ` via ${formatIp(hop.gateway)}`;
      return `${formatCidr(dst)}${via} dev ${node.own.links.get(hop?.index ?? 0)?.name}`;
    }),
  );

test("an uplink has a MAC, and an interface that is missing is an error that names it", async () => {
  node.own.add({ name: "nic0", mac: Uint8Array.of(2, 0, 0, 0, 0, 9) });
  expect(await host.macOf("nic0")).toBe("02:00:00:00:00:09");
  expect([await host.hasInterface("nic0"), await host.hasInterface("nic1")]).toEqual([true, false]);
  await expect(host.macOf("nic1")).rejects.toMatchObject({ code: 102, message: expect.stringContaining('"nic1"') });
});

describe("the gateway", () => {
  const gateway = { name: "gw0", mac: "", addresses: [cidr("10.1.0.1/24"), cidr("fd01::1/64")], mtu: 1400 };

  test("is up, speaks by its own address, believes no routers, and has the node forward", async () => {
    node.own.add({ name: "gw0" });
    await host.useGateway(gateway);
    expect(node.own.named("gw0")).toMatchObject({ up: true, mtu: 1400 });
    expect(addressesOf("gw0")).toEqual(["10.1.0.1/24", "fd01::1/64"]);
    const read = (path: string) => node.own.sysctls.get(`/proc/sys/net/${path}`);
    expect(["arp_ignore", "arp_announce"].map((key) => read(`ipv4/conf/gw0/${key}`))).toEqual(["1", "1"]);
    expect(["accept_ra", "accept_dad"].map((key) => read(`ipv6/conf/gw0/${key}`))).toEqual(["0", "0"]);
    expect([read("ipv4/ip_forward"), read("ipv6/conf/all/forwarding")]).toEqual(["1", "1"]);
  });

  test.each([
    [true, 1500],
    [false, 1400],
  ])("is set right where it was not: up %s, MTU %i", async (up, mtu) => {
    node.own.add({ name: "gw0", up, mtu });
    await host.useGateway(gateway);
    expect(node.own.named("gw0")).toMatchObject({ up: true, mtu: 1400 });
  });

  test("loses addresses of subnets that the node has no more, but its own link-local one, and keeps those of another plugin", async () => {
    node.own.add({ name: "gw0", up: true, mtu: 1400 });
    give("gw0", "10.1.0.1/24", "10.9.0.1/24", "fe80::5/64");
    await host.useGateway(gateway);
    expect(addressesOf("gw0")).toEqual(["10.1.0.1/24", "fd01::1/64", "fe80::5/64"]);
    await host.useGateway({ ...gateway, addresses: [] });
    expect(addressesOf("gw0")).toEqual(["10.1.0.1/24", "fd01::1/64", "fe80::5/64"]);
  });
});

describe("the node's addresses", () => {
  beforeEach(() => {
    node.own.add({ name: "nic0", up: true });
    node.own.add({ name: "other", up: true });
    node.own.add({ name: "br0" });
    give("nic0", "192.0.2.7/24", "fd02::7/64", "fe80::7/64");
    give("other", "198.51.100.7/24");
    socket.run(addRoute({ dst: cidr("203.0.113.0/24"), index: indexOf("nic0"), gateway: parseIp("192.0.2.1")! }));
    socket.run(addRoute({ dst: cidr("0.0.0.0/0"), index: indexOf("nic0"), gateway: parseIp("192.0.2.1")! }));
    socket.run(addRoute({ dst: cidr("10.7.0.0/16"), index: indexOf("other") }));
    // Comes and goes with its address.
    socket.run(addRoute({ dst: cidr("192.0.2.0/24"), index: indexOf("nic0"), protocol: 2 }));
  });
  const moved = [
    "203.0.113.0/24 via 192.0.2.1 dev br0",
    "0.0.0.0/0 via 192.0.2.1 dev br0",
    "10.7.0.0/16 dev other",
    "192.0.2.0/24 dev nic0",
  ];

  test("are moved to the bridge with the routes by them, and others' stay; a second time nothing is left to do", async () => {
    for (let i = 0; i < 2; i++) await host.keepAddresses("nic0", "br0");
    expect(addressesOf("br0")).toEqual(["192.0.2.7/24", "fd02::7/64"]);
    expect(addressesOf("nic0")).toEqual(["fe80::7/64"]);
    expect(addressesOf("other")).toEqual(["198.51.100.7/24"]);
    expect(routes().toSorted()).toEqual(moved.toSorted());
    expect(node.own.named("br0")?.up).toBe(true);
    expect(node.own.sysctls.get("/proc/sys/net/ipv6/conf/br0/accept_dad")).toBe("0");
    expect(lines).toEqual([]);
  });

  test("are there before they go, and routes to gateways before those by them", async () => {
    const asked: string[] = [];
    node.before = (action) => void asked.push(action);
    await host.keepAddresses("nic0", "br0");
    const at = (action: string) => asked.indexOf(action);
    const order = [
      'change the interface "br0"',
      'add the address "192.0.2.7/24" to "br0"',
      'add the route to "203.0.113.0/24"',
      'add the route to "0.0.0.0/0"',
      'delete the route to "0.0.0.0/0"',
      'remove the address "192.0.2.7/24" from "nic0"',
    ].map(at);
    expect(order).toEqual(order.toSorted((a, b) => a - b));
    expect(order).not.toContain(-1);
  });

  test("are given back where there is no uplink any more, and not noted any longer", async () => {
    await host.keepAddresses("nic0", "br0");
    await host.moveAddresses("br0", "nic0");
    expect([addressesOf("br0"), addressesOf("nic0")]).toEqual([[], ["192.0.2.7/24", "fd02::7/64", "fe80::7/64"]]);
    node.own.remove(indexOf("br0"));
    node.own.add({ name: "br0" });
    node.own.addresses = [];
    await host.keepAddresses("nic0", "br0");
    expect(addressesOf("br0")).toEqual([]);
  });

  const loseBridge = (): void => {
    node.own.remove(indexOf("br0"));
    node.own.routes = node.own.routes.slice(0, 0);
    node.own.add({ name: "br0" });
  };

  test("come back where they went with the bridge, by this agent and by the next, which is said", async () => {
    for (const next of [host, freshHost()]) {
      await host.keepAddresses("nic0", "br0");
      loseBridge();
      await next.keepAddresses("nic0", "br0");
      expect(addressesOf("br0")).toEqual(["192.0.2.7/24", "fd02::7/64"]);
      expect(routes()).toContain("0.0.0.0/0 via 192.0.2.1 dev br0");
      expect(lines.splice(0).join()).toContain("went with an earlier bridge");
    }
  });

  test.each([
    ["another uplink", { uplink: "other" }],
    ["another boot", { bootId: "another" }],
    ["a later version", { version: 2 }],
    ["routes that are none", { routes: [{ dst: "0.0.0.0/0", header: "AAAA", attributes: [] }], addresses: [] }],
  ])("stay away where the note is of %s", async (_name, changes) => {
    await host.keepAddresses("nic0", "br0");
    const path = join(dataDir, "uplink.json");
    writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, "utf8")), ...changes }));
    loseBridge();
    await host.keepAddresses("nic0", "br0");
    expect(addressesOf("br0")).toEqual([]);
  });

  test("of a family in which the node has another address by now are not put beside that", async () => {
    await host.keepAddresses("nic0", "br0");
    loseBridge();
    give("nic0", "192.0.2.99/24");
    await host.keepAddresses("nic0", "br0");
    expect(addressesOf("br0")).toEqual(["192.0.2.99/24", "fd02::7/64"]);
  });

  test("of which some are there again all come back, and those that were missing are said", async () => {
    await host.keepAddresses("nic0", "br0");
    loseBridge();
    give("nic0", "192.0.2.7/24");
    node.own.named("nic0")!.up = false;
    await host.keepAddresses("nic0", "br0");
    expect(addressesOf("br0")).toEqual(["192.0.2.7/24", "fd02::7/64"]);
    expect(node.own.named("nic0")?.up).toBe(true);
    expect(lines.join()).toContain("fd02::7/64");
    expect(lines.join()).not.toContain("192.0.2.7/24");
  });

  test("are not moved where a route leads out by several ways, of which one is another's", async () => {
    const hop = (index: number): number[] => [8, 0, 0, 0, ...new Uint8Array(Uint32Array.of(index).buffer)];
    const header = Uint8Array.of(2, 24, 0, 0, 254, 3, 0, 1, 0, 0, 0, 0);
    const ways = Uint8Array.from([...hop(indexOf("nic0")), ...hop(indexOf("other"))]);
    node.own.routes.push({
      header,
      attributes: new Map([
        [1, Uint8Array.of(10, 3, 0, 0)],
        [9, ways],
      ]),
    });
    await expect(host.keepAddresses("nic0", "br0")).rejects.toThrow('the one to "10.3.0.0/24" leads out by 2 ways');
    expect(addressesOf("br0")).toEqual([]);
  });

  test("are moved also where the disk takes no note of them, which is said", async () => {
    writeFileSync(join(dataDir, "file"), "");
    await freshHost(join(dataDir, "file")).keepAddresses("nic0", "br0");
    expect(addressesOf("br0")).toHaveLength(2);
    expect(lines).toEqual([expect.stringContaining("they are not noted")]);
  });

  test("are all right where the kernel has done a part of it by itself, and an error where it refuses", async () => {
    let errno: number = Errno.EADDRNOTAVAIL;
    node.before = (action) => {
      if (action === 'remove the address "192.0.2.7/24" from "nic0"') throw new Refusal(errno);
    };
    await host.keepAddresses("nic0", "br0");
    errno = Errno.EPERM;
    await expect(host.keepAddresses("nic0", "br0")).rejects.toMatchObject({ code: 102 });
  });
});

describe("routes to other nodes", () => {
  const mac = "aa:bb:cc:dd:ee:ff";
  const by = (dst: string, via: string, changes: Partial<NodeRoute> = {}): NodeRoute => ({
    dst: cidr(dst),
    via: parseIp(via)!,
    by: "gateway",
    ...changes,
  });
  const neighbours = () =>
    socket
      .dump(listNeighbours(indexOf("gw0")), readNeighbour)
      .map(({ ip, mac: is, permanent }) => `${formatIp(ip)} ${is} ${permanent}`)
      .toSorted();
  beforeEach(() => {
    node.own.add({ name: "gw0", up: true });
    node.own.add({ name: "nic0", up: true });
    give("nic0", "192.0.2.7/24");
  });

  test("are set with the neighbours that nobody answers for, and go with them", async () => {
    const all = [
      by("10.1.3.0/24", "10.1.3.1"),
      by("fd03::/64", "fd03::1", { mac }),
      by("10.1.4.0/24", "192.0.2.9", { by: "transport" }),
    ];
    for (let i = 0; i < 2; i++) expect(await host.setRoutes(all)).toEqual([]);
    expect(routes()).toEqual([
      "10.1.3.0/24 via 10.1.3.1 dev gw0",
      "10.1.4.0/24 via 192.0.2.9 dev nic0",
      "fd03::/64 via fd03::1 dev gw0",
    ]);
    expect(neighbours()).toEqual([`fd03::1 ${mac} true`]);
    await host.setRoutes(all.slice(0, 1), [parseIp("192.0.2.9")!]);
    expect(routes()).toEqual(["10.1.3.0/24 via 10.1.3.1 dev gw0", "10.1.4.0/24 via 192.0.2.9 dev nic0"]);
    await host.setRoutes(all.slice(0, 1));
    expect([routes(), neighbours()]).toEqual([["10.1.3.0/24 via 10.1.3.1 dev gw0"], []]);
  });

  test("leave others' neighbours, and those of other interfaces", async () => {
    const other = Uint8Array.of(2, 0, 0, 0, 0, 7);
    socket.run(declareNeighbour("gw0", indexOf("gw0"), parseIp("fd09::1")!, other));
    socket.run(
      declareNeighbour(
        "nic0",
        indexOf("nic0"),
        parseIp("fd09::2")!,
        Uint8Array.from(Buffer.from("aabbccddeeff", "hex")),
      ),
    );
    await host.setRoutes([]);
    expect(neighbours()).toEqual(["fd09::1 02:00:00:00:00:07 true"]);
    expect(node.own.neighbours).toHaveLength(2);
  });

  test("that the kernel refuses are answered, each once, also where their neighbour was refused before them", async () => {
    node.before = (action) => {
      if (action.startsWith('declare the neighbour "fd03::1"') || /route to "(fd03::|10\.1\.3)/.test(action))
        throw new Refusal(Errno.EINVAL);
    };
    const refused = await host.setRoutes([
      by("10.1.3.0/24", "10.1.3.1"),
      by("fd03::/64", "fd03::1", { mac }),
      by("fd04::/64", "fd04::1", { mac }),
    ]);
    expect(refused.map(({ route, why }) => [formatCidr(route.dst), why])).toEqual([
      ["fd03::/64", expect.stringContaining("declare the neighbour")],
      ["10.1.3.0/24", expect.stringContaining("add the route")],
    ]);
    expect(routes()).toEqual(["fd04::/64 via fd04::1 dev gw0"]);
  });

  test("cannot be set without a gateway", async () => {
    node.own.remove(indexOf("gw0"));
    await expect(host.setRoutes([])).rejects.toMatchObject({ code: 102 });
  });
});
