import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { BridgeServices } from "../../agent/datapath/bridge/services/bridge-services.ts";
import type { ServicePort } from "../../agent/datapath/services.ts";
import { Kernel, type NetlinkSocket } from "../../agent/protocols/netlink/mod.ts";
import { ownerKey } from "../../shared/cni/owner-key.ts";
import { parseMac } from "../../shared/net/mac.ts";
import { Conversation } from "../overlay/lab/conversation.ts";
import { addressOf, clients, outcomeOf, places, randomServices, type ServedWorld } from "../overlay/service-model.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { random } from "../support/random.ts";
import { describeWith } from "../support/requires.ts";
import { seed } from "../support/seed.ts";
import { bridgeName, cidr, ownerOf } from "./bridge-fixture.ts";
import { addresses, endpoint, ServicedNode, service, tableName } from "./serviced-node.ts";

const vip = "10.96.0.1";
/** Longer than what a busy machine needs for a packet. */
const silentMs = 700;
/** Of one change in small worlds. */
const mostSteps = 30;
const never = new AbortController().signal;

const server = (place: keyof typeof addresses, family: 4 | 6) => ({
  ip: addresses[place][family],
  isLocal: ["a", "b", "node"].includes(place),
});
const both = (place: keyof typeof addresses) => ({ 4: [addresses[place][4]], 6: [addresses[place][6]] });
const serving = ["a", "b", "node", "other"] as const;
const world: ServedWorld = {
  servers: { 4: serving.map((place) => server(place, 4)), 6: serving.map((place) => server(place, 6)) },
  sources: { pod: both("a"), node: both("node"), outside: both("outside") },
};
const placeOf = { pod: "a", node: "node", outside: "outside" } as const;

describeWith("services of a kernel bridge that change", ["linux", "root", "nft"], () => {
  const stack = new AsyncDisposableStack();
  let sandbox: NetworkSandbox;
  let node: ServicedNode;

  beforeAll(async () => {
    sandbox = stack.use(await NetworkSandbox.enter("pt-sc-"));
    node = stack.use(await ServicedNode.start(sandbox));
  });
  beforeEach(() => node.apply());
  afterAll(() => stack.disposeAsync());

  const web = (...names: (keyof typeof addresses)[]): ServicePort =>
    service(
      vip,
      names.map((name) => endpoint(addresses[name][4])),
    );

  test("random services do what a model says, from one world to the next", async () => {
    const below = random(seed);
    const names = new Map<string, string>(
      serving.flatMap((name) => ([4, 6] as const).map((family) => [addresses[name][family], name] as const)),
    );
    const wrong: unknown[] = [];
    const question = async (service: ServicePort): Promise<void> => {
      for (const client of clients) {
        const place = places[below(places.length)] ?? "nodePort";
        const outcome = outcomeOf(world, service, place, client);
        const [address, port] = addressOf(service, place, addresses.node);
        const patienceMs = outcome.t === "silent" ? silentMs : 5_000;
        const answer = (await node.fate(placeOf[client], address, port, patienceMs)).split(" ")[0] ?? "";
        const right =
          outcome.t === "one of"
            ? outcome.ips.map((ip) => names.get(ip))
            : outcome.t.replace("silent", "silence").split(" or ");
        if (!right.includes(answer)) wrong.push({ key: service.key, client, place, outcome, answer });
      }
    };
    let before: readonly ServicePort[] = [];
    for (let round = 0; round < 2; round++) {
      const others = randomServices(200, below, world);
      // Half of them stay as they are.
      const services = others.map((service, i) => (below(2) === 0 ? (before[i] ?? service) : service));
      expect(await node.apply(...services)).toEqual([]);
      for (let i = 0; i < services.length; i += 100) await Promise.all(services.slice(i, i + 100).map(question));
      expect(wrong, `world ${round} of seed ${seed}`).toEqual([]);
      expect(await node.services.differences()).toEqual([]);
      before = services;
    }
  });

  /** Connections whose first packet was lost, of all that pod b has begun, which nobody here leaves without an answer. */
  async function repeatedCalls(): Promise<number> {
    const lines = (await node.at("b").run("cat /proc/net/netstat")).split("\n").map((line) => line.split(" "));
    const [names = [], values = []] = lines.filter(([kind]) => kind === "TcpExt:");
    return Number(values[names.indexOf("TCPSynRetrans")]);
  }

  test("no connection is lost while services and agents change", async () => {
    const below = random(seed);
    const talk = 7_171;
    const talking = (...names: (keyof typeof addresses)[]) =>
      service(
        "10.96.0.7",
        names.map((name) => endpoint(addresses[name][4], { port: talk })),
        { port: talk },
      );
    await node.apply(talking("b"), web("b"));
    using held = await Conversation.start(node.at("a"), node.at("b"), "10.96.0.7", talk);
    const repeated = await repeatedCalls();
    let isOver = false;
    let calls = 0;
    const failed: string[] = [];
    const calling = (async () => {
      for (; !isOver; calls++) {
        const fate = await node.fate("b", vip, 80);
        if (!/^(a|b|other) /.test(fate)) failed.push(fate);
      }
    })();
    for (let i = 0; i < 30; i++) {
      const own = (["a", "b", "other"] as const).filter(() => below(2) === 0);
      const others = randomServices(below(20), below, world);
      const changes = below(2) === 0 ? {} : { affinitySeconds: 1 + below(10) };
      const chosen = { ...web(...(own.length === 0 ? (["other"] as const) : own)), ...changes };
      await node.apply(talking(...(below(2) === 0 ? (["a"] as const) : (["b"] as const))), chosen, ...others);
      if (i % 10 === 9) await node.restart();
    }
    isOver = true;
    await calling;
    expect(failed).toEqual([]);
    expect((await repeatedCalls()) - repeated).toBe(0);
    expect(calls).toBeGreaterThan(10);
    await held.goesOn();
  });

  test("an agent that begins anew, and one that is asked for differences, lets others go on while it reads what stands", async () => {
    const many = Array.from({ length: 100 }, (_, i) => ({
      ...service(
        `10.96.7.${i + 1}`,
        Array.from({ length: 40 }, (_, k) => endpoint(`10.78.1.${k + 1}`)),
      ),
      key: `x/many-${i}`,
    }));
    await node.apply(...many);
    /** Turns of the event loop meanwhile. */
    const turnsOf = async (work: () => Promise<unknown>): Promise<number> => {
      let [turns, isOver] = [0, false];
      const count = (): void => {
        turns++;
        if (!isOver) setImmediate(count);
      };
      setImmediate(count);
      await work();
      isOver = true;
      return turns;
    };
    await node.restart();
    // The kernel cuts what it says of 4,000 endpoints into some twenty datagrams.
    expect(await turnsOf(() => node.apply(...many))).toBeGreaterThan(10);
    expect(await turnsOf(async () => expect(await node.services.differences()).toEqual([]))).toBeGreaterThan(10);
  });

  test("an agent that is killed before any step leaves services whole, and the next one brings about the rest", async () => {
    using kernel = new Kernel();
    using filters = kernel.openPacketFilterSocket();
    using reading = kernel.openPacketFilterSocket();
    const [{ address }] = JSON.parse(await sandbox.node(`ip -j link show ${bridgeName}`));
    const options = {
      options: { proxyAll: true, nodePortAddresses: [] },
      bridges: () => [{ name: bridgeName, mac: parseMac(address)! }],
      endConnections: () => undefined,
    };
    const services = (socket: NetlinkSocket): BridgeServices =>
      new BridgeServices(bridgeName, { socket, reading, ...options });
    const below = random(seed);
    const sticky = { affinitySeconds: 60 };
    const worlds = [
      [web("a"), ...randomServices(10, below, world)],
      [{ ...web("b"), ...sticky }, ...randomServices(30, below, world)],
      [web("other", "b"), ...randomServices(5, below, world)],
    ].map((ports) => new Map(ports.map((port) => [port.key, port])));
    let killed = 0;
    let last = "";
    for (const wanted of worlds) {
      let isDone = false;
      for (let steps = 0; !isDone && steps < mostSteps; steps++) {
        isDone = await services(killedAfter(filters, steps))
          .apply(wanted, never)
          .then(
            () => true,
            (error: Error) => {
              if (error.message.includes("killed")) return false;
              throw error;
            },
          );
        if (isDone) break;
        killed++;
        if (last !== "") expect([last, answersOf(wanted)]).toContain(await node.answering("node", vip, 80));
      }
      expect(isDone).toBe(true);
      const next = services(filters);
      expect(await next.apply(wanted, never)).toEqual([]);
      expect(await next.differences()).toEqual([]);
      last = answersOf(wanted);
      expect(await node.answering("node", vip, 80)).toBe(last);
    }
    expect(killed).toBeGreaterThan(5);
    await node.restart();
  });

  test.each([
    ["the table", () => `delete table inet ${tableName}`],
    ["an element", () => `delete element inet ${tableName} inside4 { ${vip} . tcp . 80 }`],
    ["an endpoint", () => `delete element inet ${tableName} endpoints4 { ${vip} . tcp . 80 . 0x00000000 }`],
    ["a way of choosing", () => `flush chain inet ${tableName} endpoints4-1`],
    ["the rules that lead to services", () => `flush chain inet ${tableName} inside`],
    ["everything", () => "flush ruleset"],
  ])("what somebody has deleted is seen and put back: %s", async (_, command) => {
    await node.apply(web("b"));
    expect(await node.services.differences()).toEqual([]);
    await sandbox.nodeWith("nft -f -", command());
    expect(await node.services.differences()).not.toEqual([]);
    // As a repair does it.
    await node.dataPath.start();
    expect(await node.services.differences()).toEqual([]);
    expect(await node.fate("a", vip, 80)).toMatch(/^b /);
  });

  test("of two services with one address the first has it, and the other is named until it is free", async () => {
    const second = { ...web("a"), key: "default/second:http" };
    expect(await node.apply(web("b"), second)).toEqual([
      `default/second:http: ${vip} port 80 belongs to the service "default/${vip}:http"`,
    ]);
    expect(await node.fate("a", vip, 80)).toMatch(/^b /);
    expect(await node.apply(second)).toEqual([]);
    expect(await node.fate("a", vip, 80)).toMatch(/^a /);
  });

  test("what one service gives up another has at once, whichever comes first", async () => {
    const other = service("10.96.0.2", [endpoint(addresses.b[4])]);
    await node.apply({ ...web("a"), nodePort: 30_081 }, { ...other, nodePort: 30_082 });
    expect(await node.apply({ ...web("a"), nodePort: 30_082 }, { ...other, nodePort: 30_083 })).toEqual([]);
    expect(await node.answering("outside", addresses.node[4], 30_082)).toBe("a");
    expect(await node.answering("outside", addresses.node[4], 30_083)).toBe("b");
    expect(await node.services.differences()).toEqual([]);
  });

  test("policies judge by the endpoint, and by whom it sees as the client", async () => {
    const policy = { namespace: "default", name: "p", uid: "u" };
    const ports = [{ protocol: "TCP", first: 8_080 }] as const;
    const at = [addresses.node[4], 30_080] as const;
    const enforce = (sender: string): Promise<unknown> => {
      const [target, asking] = [ownerOf("b"), ownerOf("a")];
      const block = (ip: string) => ({
        sets: [],
        blocks: [{ t: "block", cidr: cidr(`${ip}/32`), except: [] }] as const,
      });
      const rules = [
        { id: "in", policy, direction: "ingress", targets: [target], peers: block(sender), ports },
        { id: "out", policy, direction: "egress", targets: [asking], peers: block(addresses.b[4]), ports },
      ] as const;
      return node.dataPath.policies!.enforce({
        rules: new Map(rules.map((rule) => [rule.id, rule])),
        isolated: new Map([
          [ownerKey(target), { owner: target, directions: ["ingress"], by: [policy] }],
          [ownerKey(asking), { owner: asking, directions: ["egress"], by: [policy] }],
        ]),
      });
    };
    const local = { ...web("b"), nodePort: at[1], keepsClient: true };
    await node.apply(local);
    await enforce(addresses.a[4]);
    expect(await node.fate("a", vip, 80)).toBe(`b sees ${addresses.a[4]}`);
    expect(await node.fate("a", ...at)).toBe(`b sees ${addresses.a[4]}`);
    expect(await node.fate("outside", ...at, silentMs)).toBe("silence");
    await enforce(addresses.outside[4]);
    expect(await node.fate("a", vip, 80, silentMs)).toBe("silence");
    expect(await node.fate("outside", ...at)).toBe(`b sees ${addresses.outside[4]}`);
    // Where the node hides the client: policies see it all the same.
    await node.apply({ ...local, keepsClient: false });
    expect(await node.fate("outside", ...at)).toBe(`b sees ${addresses.gateway[4]}`);
    await enforce(addresses.a[4]);
    expect(await node.fate("outside", ...at, silentMs)).toBe("silence");
    await node.dataPath.policies!.enforce({ rules: new Map(), isolated: new Map() });
  });
});

/** Who answers at the first service of a world. */
function answersOf(services: ReadonlyMap<string, ServicePort>): string {
  const [first] = services.values();
  const names = serving.filter((name) =>
    first?.internal.some(({ ip: { value } }) => value === endpoint(addresses[name][4]).ip.value),
  );
  return names.join(" ");
}

/** A socket by which no change is made any more after so many: whoever uses it has been killed. */
function killedAfter(socket: NetlinkSocket, changes: number): NetlinkSocket {
  let left = changes;
  return new Proxy(socket, {
    get(target, name) {
      if (name === "transact")
        return (...args: Parameters<NetlinkSocket["transact"]>) => {
          if (left-- === 0) throw new Error("killed");
          return target.transact(...args);
        };
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
