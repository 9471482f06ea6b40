import { setTimeout as sleep } from "node:timers/promises";
import { createBridgeDataPath } from "../../agent/datapath/bridge/mod.ts";
import type { DataPath } from "../../agent/datapath/datapath.ts";
import type { Endpoint, ServicePort, ServiceProxy } from "../../agent/datapath/services.ts";
import type { Cidr } from "../../shared/net/ip.ts";
import { call, NamedServer } from "../overlay/named-server.ts";
import { NetworkNamespace } from "../support/network-namespace.ts";
import type { NetworkSandbox } from "../support/network-sandbox.ts";
import { bridgeName, ip, loggerInto, network, requestFor } from "./bridge-fixture.ts";

/** Where everybody listens. */
export const serverPort = 8080;

/** Who can call, and be called: pods of the node, the node itself, another node with pods behind it, and a stranger. */
export type Place = "a" | "b" | "node" | "other" | "outside";

export const addresses = {
  a: { 4: "10.77.0.10", 6: "fd77::10" },
  b: { 4: "10.77.0.11", 6: "fd77::11" },
  node: { 4: "192.0.2.1", 6: "2001:db8:1::1" },
  other: { 4: "192.0.2.2", 6: "2001:db8:1::2" },
  /** A pod of the other node. */
  remote: { 4: "10.78.0.10", 6: "fd78::10" },
  outside: { 4: "198.51.100.2", 6: "2001:db8:2::2" },
  /** The node, as pods see it. */
  gateway: { 4: "10.77.0.1", 6: "fd77::1" },
} as const;

export interface NodeServices {
  readonly proxyAll: boolean;
  readonly nodePortAddresses: readonly Cidr[];
}

const everything: NodeServices = { proxyAll: true, nodePortAddresses: [] };

/** A node with a kernel bridge, two pods, another node and a stranger who sends everything to the node. */
export class ServicedNode implements AsyncDisposable {
  /** What data paths logged at `warn` or above. */
  readonly lines: string[] = [];
  readonly #stack = new AsyncDisposableStack();
  readonly #places = new Map<Place, NetworkNamespace>();
  dataPath = this.#open(everything);

  static async start(sandbox: NetworkSandbox): Promise<ServicedNode> {
    const made = new ServicedNode();
    const stack = made.#stack;
    const home = stack.use(NetworkNamespace.current());
    made.#places.set("node", home);
    await made.dataPath.start();
    // The kernel would spare some of its refusals.
    home.sysctl({ "ipv4/icmp_ratelimit": 0, "ipv6/icmp/ratelimit": 0 });
    const links = [
      { place: "other", own: "192.0.2", own6: "2001:db8:1" },
      { place: "outside", own: "198.51.100", own6: "2001:db8:2" },
    ] as const;
    for (const { place, own, own6 } of links) {
      const there = stack.use(NetworkNamespace.create());
      made.#places.set(place, there);
      await there.ip("link set lo up", `link add up0 type veth peer name ${place} netns ${home.path}`);
      await home.ip(
        `link set ${place} up`,
        `addr add ${own}.1/24 dev ${place}`,
        `addr add ${own6}::1/64 dev ${place} nodad`,
      );
      await there.ip(
        "link set up0 up",
        `addr add ${own}.2/24 dev up0`,
        `addr add ${own6}::2/64 dev up0 nodad`,
        `route add default via ${own}.1`,
        `route add default via ${own6}::1`,
      );
    }
    const other = made.at("other");
    await other.ip(`addr add ${addresses.remote[4]}/32 dev lo`, `addr add ${addresses.remote[6]}/128 dev lo nodad`);
    await home.ip(
      `route add 10.78.0.0/24 via ${addresses.other[4]}`,
      `route add fd78::/64 via ${addresses.other[6]}`,
      `route add default via ${addresses.other[4]}`,
      `route add default via ${addresses.other[6]}`,
    );
    for (const [place, number] of [
      ["a", 10],
      ["b", 11],
    ] as const) {
      const netns = await sandbox.addPod();
      await made.dataPath.attach(requestFor(place, netns, number));
      made.#places.set(place, stack.use(NetworkNamespace.at(netns)));
    }
    for (const [place, namespace] of made.#places) stack.use(await NamedServer.start(namespace, place, serverPort));
    return made;
  }

  #open(services: NodeServices | "off"): DataPath {
    const made = createBridgeDataPath({
      networks: [network],
      ...(services === "off" ? {} : { services }),
      leasedTo: () => [],
      logger: loggerInto(this.lines),
    });
    this.#stack.use(made);
    return made;
  }

  /** An agent that begins anew. @param services `"off"`: others balance services */
  async restart(services: NodeServices | "off" = everything): Promise<DataPath> {
    await this.dataPath[Symbol.asyncDispose]();
    this.dataPath = this.#open(services);
    await this.dataPath.start();
    return this.dataPath;
  }

  get services(): ServiceProxy {
    const { services } = this.dataPath;
    if (services === undefined) throw new Error("the data path balances no services");
    return services;
  }

  /** Puts exactly these in force. @returns what was refused */
  async apply(...ports: readonly ServicePort[]): Promise<readonly string[]> {
    const wanted = new Map(ports.map((port) => [port.key, port]));
    const refused = await this.services.apply(wanted, new AbortController().signal);
    return refused.map(({ key, reason }) => `${key}: ${reason}`);
  }

  at(place: Place): NetworkNamespace {
    const found = this.#places.get(place);
    if (found === undefined) throw new Error(`there is no "${place}"`);
    return found;
  }

  /** What becomes of one TCP connection: who answers, and whom that sees; `refused`; or `silence`. */
  async fate(from: Place, address: string, port = serverPort, patienceMs = 4_000): Promise<string> {
    const begun = performance.now();
    const answer = await call(this.at(from), address, port, patienceMs);
    if (answer !== undefined) return `${answer.name} sees ${answer.seenAs}`;
    return performance.now() - begun < patienceMs * 0.9 ? "refused" : "silence";
  }

  /** The same of one datagram. */
  async datagramFate(from: Place, address: string, port: number, patienceMs = 4_000): Promise<string> {
    const { promise, resolve } = Promise.withResolvers<string>();
    const timer = setTimeout(() => resolve("silence"), patienceMs);
    const socket = await this.at(from).within(() =>
      Bun.udpSocket({
        hostname: address.includes(":") ? "::" : "0.0.0.0",
        connect: { hostname: address, port },
        socket: {
          data: (_, bytes) => resolve(bytes.toString().replace(" ", " sees ")),
          error: () => resolve("refused"),
        },
      }),
    );
    try {
      socket.send("?");
      return await promise;
    } catch {
      // The node's own kernel refuses it before it is sent.
      return "refused";
    } finally {
      clearTimeout(timer);
      socket.close();
    }
  }

  /** Who answers so many calls, sorted, each once. */
  async answering(from: Place, address: string, port: number, count = 40): Promise<string> {
    const fates = await Promise.all(Array.from({ length: count }, () => this.fate(from, address, port)));
    return [...new Set(fates.map((fate) => fate.split(" ")[0]))].sort().join(" ");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
    await sleep(0);
  }
}

export const endpoint = (address: string, changes: Partial<Endpoint> = {}): Endpoint => ({
  ip: ip(address),
  port: serverPort,
  weight: 1,
  isLocal: false,
  ...changes,
});

/** A service with these endpoints everywhere. */
export function service(
  clusterIp: string,
  endpoints: readonly Endpoint[],
  changes: Partial<ServicePort> = {},
): ServicePort {
  return {
    key: `default/${clusterIp}:http`,
    protocol: "tcp",
    port: 80,
    clusterIp: ip(clusterIp),
    externalIps: [],
    ingressIps: [],
    internal: endpoints,
    external: endpoints,
    cluster: endpoints,
    keepsClient: false,
    preservesDestination: false,
    ...changes,
  };
}

export const tableName = `pipette-services-${bridgeName}`;
