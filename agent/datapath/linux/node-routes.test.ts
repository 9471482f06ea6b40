import { beforeEach, describe, expect, test } from "vitest";
import { formatCidr, formatIp, parseCidr, parseIp } from "../../../shared/net/ip.ts";
import { NodeInMemory } from "../../../test/fakes/netlink/kernel.ts";
import { Refusal } from "../../../test/fakes/netlink/messages.ts";
import { addRoute, Errno, listRoutes, type NetlinkSocket, readRoute } from "../../protocols/netlink/mod.ts";
import type { NodeRoute } from "../routes.ts";
import { addGateway, missingGateways } from "./gateway.ts";
import { findLink } from "./host-links.ts";
import { hasNodeRoutes, removeNodeRoutes, setNodeRoutes } from "./node-routes.ts";
import { transportMtu } from "./transport.ts";

const cidr = (text: string) => parseCidr(text)!;
const bytes = (text: string): Uint8Array => {
  const { family, value } = parseIp(text)!;
  return Uint8Array.fromHex(value.toString(16).padStart(family === 4 ? 8 : 32, "0"));
};

let node: NodeInMemory;
let socket: NetlinkSocket;
const link = (name: string) => findLink(socket, { name })!;

/** Two interfaces with these addresses of the node's. */
beforeEach(() => {
  node = new NodeInMemory();
  socket = node.socketIn(node.own) as unknown as NetlinkSocket;
  for (const [name, address, mtu] of [
    ["gw0", "10.1.0.1/24", 1400],
    ["eth0", "192.168.0.5/24", 1450],
  ] as const) {
    const { index } = node.own.add({ name, mtu });
    const { ip, prefix } = cidr(address);
    node.own.addresses.push({ index, family: 2, prefix, ip: bytes(formatIp(ip)) });
  }
});

describe("the node's routes", () => {
  const to = (dst: string, via: string, by: NodeRoute["by"] = "gateway"): NodeRoute => ({
    ...{ dst: cidr(dst), via: parseIp(via)!, by },
  });
  const set = (...routes: readonly NodeRoute[]) =>
    setNodeRoutes(socket, routes, { gateway: link("gw0") }).map(
      ({ route: { dst }, why }) => `${formatCidr(dst)}: ${why}`,
    );
  const standing = () =>
    ([4, 6] as const)
      .flatMap((family) => socket.dump(listRoutes(family), readRoute))
      .map(({ dst, hops: [hop] }) => {
        const name = node.own.links.get(hop?.index ?? 0)?.name;
        return `${formatCidr(dst)} ${hop?.gateway === undefined ? "" : formatIp(hop.gateway)} ${name}`;
      });
  const asked = (act: () => unknown): readonly string[] => {
    const actions: string[] = [];
    node.before = (action) => {
      if (/route/.test(action) && !/list/.test(action)) actions.push(action);
    };
    act();
    node.before = () => undefined;
    return actions;
  };

  test("are exactly those that are wanted, by the gateway or as the node reaches the next hop", () => {
    const [a, b] = [to("10.2.0.0/24", "10.1.0.2"), to("10.3.0.0/24", "192.168.0.6", "transport")];
    const six = to("fd02::/64", "fd01::2");
    expect(set(a, b, six)).toEqual([]);
    expect(standing()).toEqual(["10.2.0.0/24 10.1.0.2 gw0", "10.3.0.0/24 192.168.0.6 eth0", "fd02::/64 fd01::2 gw0"]);
    expect(asked(() => set(a, b, six))).toEqual([]);
    expect(asked(() => set(a, to("10.4.0.0/24", "10.1.0.4")))).toHaveLength(3);
    expect(standing()).toEqual(["10.2.0.0/24 10.1.0.2 gw0", "10.4.0.0/24 10.1.0.4 gw0"]);
    // The same by another way is another route.
    set(to("10.2.0.0/24", "10.1.0.2"), to("10.3.0.0/24", "192.168.0.6"));
    expect(standing()).toEqual(["10.2.0.0/24 10.1.0.2 gw0", "10.3.0.0/24 192.168.0.6 gw0"]);
  });

  test("that are refused keep no others out, and are told with the reason", () => {
    expect(set(to("10.9.0.0/24", "172.16.0.1", "transport"), to("10.2.0.0/24", "10.1.0.2"))).toEqual([
      expect.stringMatching(/^10\.9\.0\.0\/24: .*ENETUNREACH/),
    ]);
    expect(standing()).toEqual(["10.2.0.0/24 10.1.0.2 gw0"]);
    node.before = (action) => {
      if (/(delete|remove) the route/.test(action)) throw new Refusal(Errno.EPERM);
    };
    expect(() => set()).toThrow("EPERM");
  });

  test("go all at once, and those of others stay", () => {
    socket.run(addRoute({ dst: cidr("10.8.0.0/24"), index: link("eth0").index, gateway: parseIp("192.168.0.8")! }));
    expect([hasNodeRoutes(socket), removeNodeRoutes(socket)]).toEqual([false, false]);
    set(to("10.2.0.0/24", "10.1.0.2"));
    expect([hasNodeRoutes(socket), removeNodeRoutes(socket), removeNodeRoutes(socket)]).toEqual([true, true, false]);
    expect(standing()).toEqual(["10.8.0.0/24 192.168.0.8 eth0"]);
  });
});

describe("the MTU towards other nodes", () => {
  test.each<readonly [string, string | undefined, readonly string[], number]>([
    ["the uplink's", "eth0", ["10.1.0.1/24"], 1450],
    ["Ethernet's where there is no such uplink", "eth9", ["10.1.0.1/24"], 1500],
    ["that of the interface with the node's address", undefined, ["10.9.9.9/8", "10.1.0.1/32"], 1400],
    ["Ethernet's where no interface has it", undefined, ["10.1.0.2/24"], 1500],
  ])("is %s", (_name, uplink, addresses, mtu) => {
    expect(transportMtu(socket, uplink, addresses.map(cidr))).toBe(mtu);
  });
});

describe("gateways", () => {
  const lacking = (...subnets: readonly string[]) =>
    missingGateways(socket, subnets.map(cidr), link("gw0")).map(formatCidr);

  test("are missing where the interface has them with another length, or not at all", () => {
    expect(lacking("10.1.0.0/24", "10.1.0.0/25", "10.2.0.0/24")).toEqual(["10.1.0.1/25", "10.2.0.1/24"]);
    const gone = link("gw0");
    node.own.remove(gone.index);
    expect(missingGateways(socket, [cidr("10.1.0.0/24")], gone).map(formatCidr)).toEqual(["10.1.0.1/24"]);
  });

  test("are added, also where they are there already, and others' refusals are errors", () => {
    for (let i = 0; i < 2; i++) addGateway(socket, link("gw0"), cidr("10.2.0.1/24"));
    expect(lacking("10.2.0.0/24")).toEqual([]);
    for (const errno of [Errno.EPERM, Errno.EACCES]) {
      node.before = (action) => {
        if (action.includes("add")) throw new Refusal(errno);
      };
      expect(() => addGateway(socket, link("gw0"), cidr("10.3.0.1/24"))).toThrow();
    }
  });
});
