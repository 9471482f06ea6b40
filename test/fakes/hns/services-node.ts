import { afterEach } from "vitest";
import type { DataPath } from "../../../agent/datapath/datapath.ts";
import type { HnsDataPathOptions } from "../../../agent/datapath/hns/options.ts";
import type { RefusedService, ServicePort, ServiceProxy } from "../../../agent/datapath/services.ts";
import { assert } from "../../../shared/assert.ts";
import type { Document } from "./documents.ts";
import type { FakeHns } from "./fake-hns.ts";
import { type HnsNode, hnsNode, namespaceA, namespaceB, requestFor } from "./hns-node.ts";
import { type BalancedPacket, type Destination, whereTo } from "./load-balancers.ts";
import { endpoint, port, portsOf } from "./service-ports.ts";

/** No listing of its own but where a test waits for one. */
const never = { listingMs: 3_600_000, servicesListingMs: 3_600_000 };

export const settings = { proxyAll: true, nodePortAddresses: [] };

/** Pods of the node, and one of another. */
export const own = endpoint("10.9.0.7", true);
export const second = endpoint("10.9.0.8", true);
export const other = endpoint("10.9.1.9");

/** 10.96.0.10 port 80. */
export const web = (changes: Partial<ServicePort> = {}): ServicePort => port({ internal: [own, other], ...changes });

export function servicesOf({ services }: DataPath): ServiceProxy {
  assert(services !== undefined, "the data path balances services");
  return services;
}

export const apply = (proxy: ServiceProxy, ...ports: readonly ServicePort[]): Promise<readonly RefusedService[]> =>
  proxy.apply(portsOf(...ports), new AbortController().signal);

export const addressOf = (document: Document): string =>
  (document["IpConfigurations"] as { IpAddress: string }[])[0]?.IpAddress ?? "";

/** For unit tests of services: one node for each test, and what they ask of it. */
export class ServicesNode {
  #node: HnsNode | undefined;

  constructor() {
    afterEach(async () => {
      await this.#node?.[Symbol.asyncDispose]();
      this.#node = undefined;
    });
  }

  /** Starts it, with pods at 10.9.0.7 and 10.9.0.8. */
  async start(
    more: Partial<HnsDataPathOptions> = {},
    changes: object = {},
    Minor = 3,
    Major = 13,
  ): Promise<ServiceProxy> {
    this.#node = hnsNode({ type: "L2Bridge", ...changes }, { services: settings, ...never, ...more });
    this.fake.service.store.version = { Major, Minor };
    await this.dataPath.start();
    await this.dataPath.attach(requestFor("a", namespaceA, 7));
    await this.dataPath.attach(requestFor("b", namespaceB, 8));
    return servicesOf(this.dataPath);
  }

  get fake(): FakeHns {
    return this.#started.fake;
  }

  get dataPath(): DataPath {
    return this.#started.dataPath;
  }

  /** As after a restart of the agent. */
  again(more?: Partial<HnsDataPathOptions>): DataPath {
    return this.#started.again(more);
  }

  get balancers(): readonly Document[] {
    return [...this.fake.service.store.loadBalancers.values()];
  }

  get ids(): readonly unknown[] {
    return this.balancers.map(({ ID }) => ID);
  }

  /** Addresses of endpoints that are elsewhere. */
  get remotes(): readonly string[] {
    return this.fake.endpoints.filter(({ Flags }) => Flags === 1).map(addressOf);
  }

  /** Where packets of so many connections to the service go, each place once, sorted. */
  places(packet: Partial<BalancedPacket> = {}): readonly string[] {
    const found = Array.from({ length: 64 }, (_, i) => this.goes({ ...packet, fromPort: 40_000 + i }));
    return [...new Set(found.map((one) => (one === undefined ? "nowhere" : `${one.to}:${one.port}`)))].sort();
  }

  goes(packet: Partial<BalancedPacket> = {}): Destination | undefined {
    const usual = { from: "10.9.0.8", fromPort: 40_000, to: "10.96.0.10", port: 80, protocol: "tcp" as const };
    return whereTo(this.fake.service.store, { ...usual, ...packet }, ["192.168.1.5", "fd01::5"]);
  }

  /** How often functions were called during `run`, without those that look at one object. */
  async changesOf(run: () => Promise<unknown>): Promise<Readonly<Record<string, number>>> {
    const { calls } = this.fake.service;
    const before = calls.length;
    await run();
    const names = calls.slice(before).flatMap(({ fn }) => (/^Hcn(Open|Query|Close)/.test(fn) ? [] : [fn]));
    const counted = Map.groupBy(names, (name) => name);
    return Object.fromEntries([...counted].map(([name, all]) => [name, all.length]));
  }

  get #started(): HnsNode {
    assert(this.#node !== undefined, "the node is started");
    return this.#node;
  }
}
