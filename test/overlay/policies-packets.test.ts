import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { NodePolicies, PodRule } from "../../agent/datapath/policies.ts";
import { ownerKey } from "../../shared/cni/owner-key.ts";
import { parseCidr, parseIp } from "../../shared/net/ip.ts";
import type { Direction } from "../../shared/policy/mod.ts";
import { endpointAt, servicePort } from "../fakes/service-port.ts";
import { eventually } from "../support/agent-process.ts";
import { describeWith } from "../support/requires.ts";
import { Conversation } from "./lab/conversation.ts";
import { call, DatagramClient, NamedServer } from "./named-server.ts";
import { gatewayAddress, outside, ServiceNode, type TestPod } from "./service-node.ts";

const ip = (text: string) => parseIp(text)!;
const policy = { namespace: "default", name: "p", uid: "u" };
const nothing: NodePolicies = { rules: new Map(), isolated: new Map() };
/** Longer than what a switch whose machine is busy needs for a packet, and shorter than TCP's patience. */
const noticedMs = 500;
/** Of `Conversation`. */
const talk = 7171;

/**
 * TCP sends anything that was lost again after 200 ms at the earliest. What holds up the whole machine is no loss, and
 * holds up others as well.
 */
const lossMs = (other: Conversation): number => Math.max(200, 2 * other.longestSilenceMs);

describeWith("packets of pods with policies", ["root", "openvswitch", "nft"], () => {
  let node: ServiceNode;
  const servers = new DisposableStack();
  beforeAll(async () => {
    node = await ServiceNode.start(3);
    for (const i of [0, 1, 2]) servers.use(await NamedServer.start(node.pod(i).namespace, `pod${i}`, 8080));
    servers.use(await NamedServer.start(node.outside, "outside", 8080));
  });
  afterAll(async () => {
    servers.dispose();
    await node?.[Symbol.asyncDispose]();
  });
  beforeEach(() => node.policies.enforce(nothing));

  /** Between pod 0 and pod 1, to a port of pod 1. */
  const rule = (id: string, direction: Direction, changes: Partial<PodRule> = {}): PodRule => {
    const [self, other] = direction === "egress" ? [0, 1] : [1, 0];
    const { owner } = node.pod(self);
    const ips = [ip(node.pod(other)[4]), ip(node.pod(other)[6])];
    return {
      id,
      policy,
      direction,
      targets: [owner],
      peers: { sets: [{ name: `pod${other}`, ips }], blocks: [] },
      ports: [{ protocol: "TCP", first: talk }],
      ...changes,
    };
  };
  /** Pod 0 may send, and pod 1 receive, what these rules say. */
  const only = (...rules: readonly PodRule[]): NodePolicies => ({
    rules: new Map(rules.map((one) => [one.id, one])),
    isolated: new Map([
      [ownerKey(node.pod(0).owner), { owner: node.pod(0).owner, directions: ["egress"], by: [policy] }],
      [ownerKey(node.pod(1).owner), { owner: node.pod(1).owner, directions: ["ingress"], by: [policy] }],
    ]),
  });
  const enforce = async (...rules: readonly PodRule[]): Promise<void> => {
    expect(await node.policies.enforce(only(...rules))).toEqual([]);
  };
  const from = () => node.pod(0).namespace;

  describe.each([4, 6] as const)("IPv%i", (family) => {
    const to = (i: number): string => node.pod(i)[family];
    /** Of a pod without policies, by the same switch. */
    const unconcerned = () => Conversation.start(node.pod(2).namespace, node.outside, outside[family]);

    test("what no rule allows does not pass, in either direction of isolation", async () => {
      const web = { ports: [{ protocol: "TCP", first: 8000, last: 8100 }] } as const;
      await enforce(rule("out", "egress", web), rule("in", "ingress", web));
      expect(await call(from(), to(1), 8080)).toMatchObject({ name: "pod1" });
      await enforce(rule("out", "egress", web));
      expect(await call(from(), to(1), 8080, noticedMs)).toBeUndefined();
      await enforce(rule("in", "ingress", web));
      expect(await call(from(), to(1), 8080, noticedMs)).toBeUndefined();
      await enforce(rule("out", "egress", web), rule("in", "ingress", { ports: [{ protocol: "UDP", first: 8080 }] }));
      expect(await call(from(), to(1), 8080, noticedMs)).toBeUndefined();
      // Who is not isolated in a direction is free in it.
      expect(await call(node.pod(1).namespace, to(2), 8080)).toMatchObject({ name: "pod2" });
      expect(await call(node.pod(2).namespace, to(0), 8080)).toMatchObject({ name: "pod0" });
    });

    test("datagrams, and ICMP where a rule names no ports", async () => {
      const dns = { ports: [{ protocol: "UDP", first: 8080 }] } as const;
      const ping = (i: number, patienceS = 1) =>
        from()
          .run(`ping -n -q -c 1 -W ${patienceS} ${to(i)}`)
          .then(
            () => true,
            () => false,
          );
      using client = await DatagramClient.open(from(), family);
      await enforce(rule("out", "egress", dns), rule("in", "ingress", dns));
      expect(await client.ask(to(1), 8080)).toMatchObject({ name: "pod1" });
      expect(await ping(1)).toBe(false);
      const { ports: _, ...anything } = rule("any", "egress");
      const { ports: __, peers: ___, ...anybody } = rule("anybody", "ingress");
      await enforce(anything, anybody);
      expect(await ping(1, 20)).toBe(true);
      expect(await ping(2)).toBe(false);
    });

    test("the node reaches its pods, and pods themselves through a service, whatever policies say", async () => {
      await enforce();
      expect(await call(node.namespace, to(1), 8080)).toMatchObject({ name: "pod1" });
      const clusterIp = { 4: "10.96.0.10", 6: "fd00:96::10" }[family];
      const service = (i: number) => servicePort({ key: `web:${family}`, clusterIp, endpoints: [endpointAt(to(i))] });
      await node.serve(service(0));
      expect(await call(from(), clusterIp, 80)).toEqual({ name: "pod0", seenAs: gatewayAddress[family] });
      expect(await call(node.namespace, clusterIp, 80)).toMatchObject({ name: "pod0" });
      // Others are judged by the endpoint and its port, not by the service.
      await node.serve(service(1));
      expect(await call(from(), clusterIp, 80, noticedMs)).toBeUndefined();
      const target = { ports: [{ protocol: "TCP", first: 8080 }] } as const;
      await enforce(rule("out", "egress", target), rule("in", "ingress", target));
      expect(await call(from(), clusterIp, 80)).toEqual({ name: "pod1", seenAs: to(0) });
      await node.serve();
    });

    test("the world is who a block says", async () => {
      const world = {
        t: "block",
        cidr: parseCidr(family === 4 ? "198.51.100.0/24" : "fd00:51::/64")!,
        except: [],
      } as const;
      await enforce();
      expect(await call(from(), outside[family], 8080, noticedMs)).toBeUndefined();
      await enforce(
        rule("out", "egress", { peers: { sets: [], blocks: [world] }, ports: [{ protocol: "TCP", first: 8080 }] }),
      );
      expect(await call(from(), outside[family], 8080)).toMatchObject({ name: "outside" });
    });

    test("a rule that goes cuts what it alone allowed, at once, and nothing else loses a packet", async () => {
      const both = [rule("in", "ingress"), rule("one", "egress"), rule("other", "egress")];
      await enforce(...both);
      using kept = await Conversation.start(from(), node.pod(1).namespace, to(1));
      using free = await unconcerned();
      await enforce(...both.slice(0, 2));
      await kept.goesOn();
      await enforce(rule("in", "ingress"), rule("other", "egress"));
      await kept.goesOn();
      await enforce(rule("in", "ingress"), rule("renamed", "egress"));
      await kept.goesOn();
      expect(kept.longestSilenceMs).toBeLessThan(lossMs(free));
      await enforce(rule("in", "ingress"));
      expect(await isSilent(kept)).toBe(true);
      // One that is allowed again goes on.
      await enforce(...both);
      await kept.goesOn();
      await enforce(rule("one", "egress"));
      expect(await isSilent(kept)).toBe(true);
      await node.policies.enforce(nothing);
      await kept.goesOn();
    });

    test("a member that leaves a set is cut, and those that stay are not", async () => {
      const members = (name: string, ...numbers: number[]) => {
        const ips = numbers.map((i) => ip(to(i)));
        return rule("in", "ingress", { peers: { sets: [{ name, ips }], blocks: [] } });
      };
      const { peers: _, ...anybody } = rule("out", "egress");
      await enforce(members("clients", 0, 2), anybody);
      using leaving = await Conversation.start(from(), node.pod(1).namespace, to(1));
      await enforce(members("clients", 2), anybody);
      expect(await isSilent(leaving)).toBe(true);
      await enforce(members("clients", 2, 0), anybody);
      await leaving.goesOn();
      await enforce(members("clients", 0), anybody);
      await leaving.goesOn();
    });

    test.each(["egress", "ingress"] as const)(
      "who asks once for a stream has it as long as a rule allows it: %s",
      async (end) => {
        // Of its own in each test: a second after a service has gone, its connections are forgotten.
        const host = end === "egress" ? 11 : 12;
        const clusterIp = { 4: `10.96.0.${host}`, 6: `fd00:96::${host}` }[family];
        const endpoints = [endpointAt(to(1), talk)];
        await node.serve(
          servicePort({ key: `stream:${end}:${family}`, clusterIp, protocol: "udp", port: 53, endpoints }),
        );
        const stream = { ports: [{ protocol: "UDP", first: talk }] } as const;
        const rules = [rule("in", "ingress", stream), rule("out", "egress", stream)];
        const kept = rules.filter(({ direction }) => direction !== end);
        await enforce(...rules);
        const any = family === 4 ? "0.0.0.0" : "::";
        using _ = await streaming(node.pod(1), any);
        using direct = await Stream.start(node.pod(0), any, to(1), talk);
        using served = await Stream.start(node.pod(0), any, clusterIp, 53);
        await enforce(...kept, rule("another", end, stream));
        await Bun.sleep(noticedMs);
        for (const one of [direct, served]) expect([one.lost, one.isSilentFor(noticedMs / 2)]).toEqual([0, false]);
        await enforce(...kept);
        await Bun.sleep(2 * noticedMs);
        for (const one of [direct, served]) expect(one.isSilentFor(noticedMs)).toBe(true);
        await node.serve();
      },
    );

    test("an agent that starts again, and a switch, cut nothing and open nothing", async () => {
      const rules = [rule("in", "ingress"), rule("out", "egress")];
      await enforce(...rules);
      using kept = await Conversation.start(from(), node.pod(1).namespace, to(1));
      using free = await unconcerned();
      using forbidden = new Knocker(await DatagramClient.open(from(), family), to(1));
      await node.startAgent(only(...rules));
      await kept.goesOn();
      expect(kept.longestSilenceMs).toBeLessThan(lossMs(free));
      await node.vswitch.stop("ovs-vswitchd");
      await node.vswitch.startSwitch();
      await kept.goesOn();
      await Bun.sleep(noticedMs);
      expect(forbidden.answers).toBe(0);
      expect(await node.policies.differences()).toEqual([]);
    });
  });

  /** Whether nothing more comes within a second of now. */
  async function isSilent(conversation: Conversation): Promise<boolean> {
    await Bun.sleep(noticedMs);
    const heard = conversation.answered;
    await Bun.sleep(noticedMs);
    return conversation.answered === heard;
  }

  test("packets, bytes and connections are counted by rule, and refusals by pod", async () => {
    const web = { ports: [{ protocol: "TCP", first: 8080 }] } as const;
    await enforce(rule("out", "egress", web), rule("in", "ingress", web));
    for (let i = 0; i < 3; i++) await call(from(), node.pod(1)[4], 8080);
    await call(from(), node.pod(2)[4], 8080, noticedMs);
    await call(node.pod(2).namespace, node.pod(1)[6], 8080, noticedMs);
    const counts = async () => {
      const { rules, denied } = await node.policies.counts();
      const [out, into] = ["out", "in"].map((id) => rules.find((one) => one.id === id));
      const [sent, received] = (["egress", "ingress"] as const).map((direction) =>
        denied.find((one) => one.direction === direction),
      );
      return { out, into, sent, received };
    };
    // The switch adds what it has counted every moment.
    await eventually(async () => (await counts()).received?.packets ?? 0, "the switch to have counted");
    const { out, into, sent, received } = await counts();
    expect(out).toMatchObject({ sessions: 3 });
    expect(into).toMatchObject({ sessions: 3 });
    // A handshake of three, an answer and its end at least.
    expect(out?.packets).toBeGreaterThanOrEqual(3 * 5);
    expect(out?.bytes).toBeGreaterThan(3 * 5 * 60);
    expect(sent).toMatchObject({ owner: node.pod(0).owner });
    expect(sent?.packets).toBeGreaterThan(0);
    expect(received).toMatchObject({ owner: node.pod(1).owner });
    // As long as the rule is there, also if what it names changes. Not to pod 2, whose kernel still asks for its connection.
    await enforce(
      rule("out", "egress", { ...web, targets: [node.pod(0).owner, node.pod(1).owner] }),
      rule("in", "ingress", web),
    );
    expect((await counts()).out?.sessions).toBe(3);
  });

  test("what somebody else takes away is told", async () => {
    await enforce(rule("out", "egress"));
    expect(await node.policies.differences()).toEqual([]);
    await node.ofctl("del-flows", "table=132,ip,nw_src=10.10.1.2");
    expect(await node.policies.differences()).toEqual([
      expect.stringMatching(/^the switch lacks 1 flow, .*nw_src=10\.10\.1\.2/),
    ]);
    await node.startAgent(only(rule("out", "egress")));
    expect(await node.policies.differences()).toEqual([]);
  });
});

/** Sends datagrams with numbers to whoever has asked once. */
async function streaming({ namespace }: TestPod, hostname: string): Promise<Disposable> {
  const askers: { readonly port: number; readonly address: string; sent: number }[] = [];
  const source = await namespace.within(() =>
    Bun.udpSocket({
      hostname,
      port: talk,
      socket: { data: (_, __, port, address) => void askers.push({ port, address, sent: 0 }) },
    }),
  );
  const timer = setInterval(() => {
    for (const asker of askers) source.send(String(++asker.sent), asker.port, asker.address);
  }, 5);
  return {
    [Symbol.dispose]: () => {
      clearInterval(timer);
      source.close();
    },
  };
}

/** What comes to one who has asked once. */
class Stream implements Disposable {
  /** Numbers that were left out on the way. */
  lost = 0;
  #last = 0;
  #heardAt = performance.now();
  #close = (): void => undefined;

  static async start({ namespace }: TestPod, hostname: string, address: string, port: number): Promise<Stream> {
    const stream = new Stream();
    const socket = { data: (_: unknown, bytes: Buffer) => stream.#hear(Number(bytes.toString())) };
    const sink = await namespace.within(() => Bun.udpSocket({ hostname, socket }));
    stream.#close = () => sink.close();
    sink.send("?", port, address);
    await eventually(() => stream.#last > 0, "the stream");
    return stream;
  }

  isSilentFor(ms: number): boolean {
    return performance.now() - this.#heardAt > ms;
  }

  [Symbol.dispose](): void {
    this.#close();
  }

  #hear(number: number): void {
    this.lost += number - this.#last - 1;
    this.#last = number;
    this.#heardAt = performance.now();
  }
}

/** Asks again and again from one port, and counts the answers. */
class Knocker implements Disposable {
  answers = 0;
  readonly #client: DatagramClient;
  readonly #timer: NodeJS.Timeout;

  constructor(client: DatagramClient, address: string) {
    this.#client = client;
    this.#timer = setInterval(() => {
      void client.ask(address, 8080, 50).then((answer) => {
        if (answer !== undefined) this.answers++;
      });
    }, 10);
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.#client[Symbol.dispose]();
  }
}
