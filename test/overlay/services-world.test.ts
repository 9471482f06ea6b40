import { afterAll, beforeAll, expect, test } from "vitest";
import type { ApiObject } from "../../shared/kubernetes/mod.ts";
import { readPolicy } from "../../shared/policy/mod.ts";
import { compileExecutables } from "../conformance/plugin.ts";
import { eventually } from "../support/agent-process.ts";
import { describeWith } from "../support/requires.ts";
import { Conversation } from "./lab/conversation.ts";
import { type Answer, call, DatagramClient } from "./named-server.ts";
import { greeting } from "./service-places.ts";
import {
  type Client,
  clients,
  isOutside,
  nodeOf,
  type PlaceName,
  places,
  ServiceWorld,
  type WorldService,
} from "./service-world.ts";

const families = [4, 6] as const;
type Family = (typeof families)[number];

/** What comes of a question: endpoints by their names, of which any answers; or a word. By node 1 and node 2. */
type ByNode = readonly [string, string];
const both = (outcome: string): ByNode => [outcome, outcome];

interface Row extends WorldService {
  /** Who answers at the cluster IP; at the other addresses pods and nodes; and there those from outside. */
  readonly clusterIp: ByNode;
  readonly inside: ByNode;
  readonly outside: ByNode;
  /** Those from outside at the load balancer's IPs, where that is something else. */
  readonly ingress?: ByNode;
}

const everywhere = (outcome: string) => ({
  clusterIp: both(outcome),
  inside: both(outcome),
  outside: both(outcome),
});
const externalLocal = { externalTrafficPolicy: "Local" };
const internalLocal = { internalTrafficPolicy: "Local" };

const table: readonly Row[] = [
  { name: "any", endpoints: { near: "ready", far: "ready" }, ...everywhere("near far") },
  { name: "dns", protocol: "UDP", endpoints: { near: "ready", far: "ready" }, ...everywhere("near far") },
  {
    name: "sticky",
    spec: { sessionAffinity: "ClientIP" },
    endpoints: { near: "ready", far: "ready" },
    ...everywhere("near far"),
  },
  {
    name: "external-local",
    spec: externalLocal,
    endpoints: { near: "ready", far: "ready" },
    ...everywhere("near far"),
    outside: ["near", "far"],
  },
  {
    name: "external-local-udp",
    protocol: "UDP",
    spec: externalLocal,
    endpoints: { near: "ready", far: "ready" },
    ...everywhere("near far"),
    outside: ["near", "far"],
  },
  {
    name: "internal-local",
    spec: internalLocal,
    endpoints: { near: "ready", far: "ready" },
    ...everywhere("near far"),
    clusterIp: ["near", "far"],
  },
  {
    name: "one-side",
    spec: { ...externalLocal, ...internalLocal },
    endpoints: { far: "ready" },
    clusterIp: ["silent", "far"],
    inside: both("far"),
    outside: ["silent", "far"],
  },
  { name: "hosts", endpoints: { host1: "ready", host2: "ready" }, ...everywhere("host1 host2") },
  {
    name: "hosts-local",
    spec: externalLocal,
    endpoints: { host1: "ready", host2: "ready" },
    ...everywhere("host1 host2"),
    outside: ["host1", "host2"],
  },
  { name: "beyond", endpoints: { beyond: "ready" }, ...everywhere("beyond") },
  { name: "draining", endpoints: { near: "draining", far: "draining" }, ...everywhere("near far") },
  { name: "half-draining", endpoints: { near: "draining", far: "ready" }, ...everywhere("far") },
  {
    name: "draining-here",
    spec: { ...externalLocal, ...internalLocal },
    endpoints: { near: "draining", far: "ready" },
    clusterIp: ["near", "far"],
    inside: both("far"),
    outside: ["near", "far"],
  },
  { name: "dead", endpoints: { near: "dead", far: "ready" }, ...everywhere("far") },
  { name: "unready", endpoints: { near: "unready", far: "unready" }, ...everywhere("refused") },
  { name: "nobody", spec: { ...externalLocal, ...internalLocal }, endpoints: {}, ...everywhere("refused") },
  {
    name: "ranges",
    spec: { loadBalancerSourceRanges: ["10.10.0.0/16", "fd10::/48", "172.30.1.0/24", "fd30:b::/64"] },
    endpoints: { near: "ready", far: "ready" },
    ...everywhere("near far"),
    ingress: ["silent", "near far"],
  },
];

/** Longer than what a busy machine needs for a packet. */
const silentMs = 1_000;
/** Of one client at one place. */
const calls = 2;

interface Cell {
  readonly row: Row;
  readonly client: Client;
  readonly place: PlaceName;
  readonly family: Family;
}

const cells: readonly Cell[] = table.flatMap((row) =>
  families.flatMap((family) =>
    clients.flatMap((client) =>
      // Nobody leads the world to cluster IPs.
      (isOutside(client) ? places.slice(1) : places).map((place) => ({ row, client, place, family })),
    ),
  ),
);

function outcomeOf({ row, client, place }: Cell): string {
  const { clusterIp, inside, outside, ingress = outside } = row;
  const others = isOutside(client) ? (place === "ingress" ? ingress : outside) : inside;
  return (place === "clusterIp" ? clusterIp : others)[nodeOf(client) - 1] ?? "";
}

const needs = ["root", "openvswitch", "nft", "etcd", "openssl"] as const;

describeWith("services of two nodes that follow an API server", needs, () => {
  let world: ServiceWorld;

  beforeAll(async () => {
    compileExecutables();
    world = await ServiceWorld.start();
  }, 180_000);
  afterAll(() => world?.[Symbol.asyncDispose]());

  const addressOf = ({ row, client, place, family }: Cell) => world.addressOf(row, place, client, family);

  async function ask(cell: Cell, patienceMs?: number): Promise<Answer | undefined> {
    const namespace = world.namespaceOf(cell.client);
    if (cell.row.protocol !== "UDP") return call(namespace, ...addressOf(cell), patienceMs);
    using client = await DatagramClient.open(namespace, cell.family);
    return await client.ask(...addressOf(cell), patienceMs ?? 5_000);
  }

  /** As whom a pod sees the client: its node answers for it where the pod is on another. */
  function seenAs({ client, family }: Cell, server: "near" | "far"): string {
    const isNear = (server === "near" ? 1 : 2) === nodeOf(client);
    return isOutside(client) && !isNear ? world.gateway(nodeOf(client), family) : world.ownAddress(client, family);
  }

  test("each kind is answered by whom it should be, whoever asks, and wherever", { timeout: 180_000 }, async () => {
    world.put(...table);
    await world.inForce();
    const wrong: unknown[] = [];
    const heard = new Map(table.map(({ name }) => [name, new Set<string>()]));
    const question = async (cell: Cell): Promise<void> => {
      const outcome = outcomeOf(cell);
      const text = `${cell.row.name} IPv${cell.family}: ${cell.client} at ${cell.place} (${addressOf(cell).join(" ")})`;
      if (outcome === "silent" || outcome === "refused") {
        const patienceMs = outcome === "silent" ? silentMs : 10_000;
        const answer = await greeting(world.namespaceOf(cell.client), addressOf(cell), patienceMs);
        if (answer !== outcome) wrong.push([text, outcome, answer]);
        return;
      }
      const answers: (Answer | undefined)[] = [];
      for (let i = 0; i < calls; i++) answers.push(await ask(cell));
      for (const answer of answers) {
        const { name = "nobody", seenAs: as = "" } = answer ?? {};
        heard.get(cell.row.name)?.add(name);
        if (!outcome.split(" ").includes(name)) wrong.push([text, outcome, name]);
        if ((name === "near" || name === "far") && as !== seenAs(cell, name))
          wrong.push([text, `${name} sees ${seenAs(cell, name)}`, as]);
      }
      if (cell.row.name === "sticky" && new Set(answers.map((answer) => answer?.name)).size > 1)
        wrong.push([text, "the same endpoint", answers]);
    };
    for (let i = 0; i < cells.length; i += 24) await Promise.all(cells.slice(i, i + 24).map(question));
    expect(wrong).toEqual([]);
    // Of those that may answer nobody was left out, in some hundred calls of each service.
    for (const row of table) {
      const named = [...row.clusterIp, ...row.inside, ...row.outside].flatMap((outcome) => outcome.split(" "));
      const wanted = new Set(named.filter((name) => name !== "silent" && name !== "refused"));
      expect([row.name, [...(heard.get(row.name) ?? [])].sort()]).toEqual([row.name, [...wanted].sort()]);
    }
  });

  const named = (name: string): Row => {
    const found = table.find((each) => each.name === name);
    if (found === undefined) throw new Error(`There is no service ${name}`);
    return found;
  };

  /** Has new connections come meanwhile, of which none may fail. */
  async function underTraffic(work: () => Promise<void>): Promise<void> {
    let isOver = false;
    const failed: string[] = [];
    const asking = (["pod1", "node1", "outside1", "outside2"] as const).flatMap((client) =>
      families.map(async (family) => {
        const cell: Cell = { row: named("any"), client, place: isOutside(client) ? "nodePort" : "clusterIp", family };
        let answered = 0;
        while (!isOver) {
          if ((await ask(cell, 10_000)) === undefined) failed.push(`${client} IPv${family} after ${answered}`);
          else answered++;
          await Bun.sleep(5);
        }
        if (answered === 0) failed.push(`all of ${client} IPv${family}`);
      }),
    );
    try {
      await work();
    } finally {
      isOver = true;
      await Promise.all(asking);
    }
    expect(failed).toEqual([]);
  }

  test.each(families)(
    "an endpoint elsewhere answers the node and whom it hides, though both ask from one port: IPv%i",
    async (family) => {
      const service: Row = { ...named("dns"), name: "one-port", endpoints: { far: "ready" } };
      world.put(service);
      await world.inForce();
      const port = 40_000 + family;
      using fromNode = await DatagramClient.open(world.namespaceOf("node1"), family, port);
      using fromOutside = await DatagramClient.open(world.namespaceOf("outside1"), family, port);
      for (let i = 0; i < 3; i++)
        for (const [asking, client, place] of [
          [fromNode, "node1", "clusterIp"],
          [fromOutside, "outside1", "nodePort"],
        ] as const) {
          const answer = await asking.ask(...world.addressOf(service, place, client, family), 5_000);
          expect([client, answer]).toEqual([client, { name: "far", seenAs: world.gateway(1, family) }]);
        }
      world.remove(service);
    },
  );

  const reaches = (client: Client, name: string, service: Row) =>
    eventually(
      async () => (await ask({ row: service, client, place: "clusterIp", family: 4 }, silentMs))?.name === name,
      `${name} to answer ${client}`,
    );

  test("changes and killed agents cost no connection, new or open", { timeout: 180_000 }, async () => {
    const ways = [
      ["pod1", "clusterIp", 4],
      ["node2", "clusterIp", 6],
      ["outside1", "ingress", 6],
      ["outside2", "external", 4],
    ] as const;
    const talks = ways.map(
      (_, i): WorldService => ({ name: `talk-${i}`, port: 7_171 + i, endpoints: { near: "ready" } }),
    );
    world.put(...talks);
    await world.inForce();
    using stack = new DisposableStack();
    const conversations = await Promise.all(
      ways.map(async ([client, place, family], i) => {
        const address = world.addressOf(talks[i] ?? named("any"), place, client, family);
        const [from, to] = [world.namespaceOf(client), world.pod("near").namespace];
        return stack.use(await Conversation.start(from, to, ...address));
      }),
    );
    const goOn = () => Promise.all(conversations.map((each) => each.goesOn()));
    const other: Row = { ...named("any"), name: "other" };
    await underTraffic(async () => {
      // Another one comes, changes and goes, and so do endpoints of what is asked.
      for (const server of ["near", "far", "near"] as const) {
        const endpoints = { [server]: "ready" } as const;
        world.put({ ...other, endpoints }, { ...named("any"), endpoints });
        for (const client of ["pod1", "pod2"] as const) await reaches(client, server, other);
        await goOn();
      }
      world.remove(other);
      world.put(named("any"));
      for (const node of world.lab.nodes) {
        await node.agent.end("SIGKILL");
        await goOn();
        await node.startAgent();
      }
      await world.inForce();
      await goOn();
    });
    for (const talk of talks) world.remove(talk);
  });

  /** Instead of those before. */
  function enforce(...specs: readonly ApiObject[]): void {
    const { computation } = world.policies;
    for (const i of [0, 1]) {
      const [name, spec] = [`p${i}`, specs[i]];
      const policy = readPolicy({ metadata: { namespace: "default", name, uid: `uid-${name}` }, spec: spec ?? {} });
      if (spec === undefined) computation.deletePolicy(`default/${name}`);
      else if (policy !== undefined) computation.putPolicy(policy);
    }
    world.policies.changed();
  }

  test("policies judge by the endpoint, and by whom it sees: the client where its address is kept", async () => {
    const [near, far] = [
      { ...named("any"), name: "to-near", endpoints: { near: "ready" } },
      { ...named("any"), name: "to-far", endpoints: { far: "ready" } },
    ] as const;
    const kept = named("external-local");
    world.put(kept, near, far);
    const questions = [
      [near, "pod1", "clusterIp"],
      [far, "pod1", "clusterIp"],
      [near, "pod2", "clusterIp"],
      [far, "pod2", "nodePort"],
      [near, "outside1", "nodePort"],
      [far, "outside1", "nodePort"],
      [kept, "outside1", "external"],
      [kept, "outside2", "external"],
    ] as const;
    /** In force once those are answered, and no others. */
    async function answeredAre(...wanted: readonly string[]): Promise<void> {
      const text = async (family: Family): Promise<string> => {
        const asked = questions.map(async ([row, client, place]) => {
          const address = world.addressOf(row, place, client, family);
          const said = await greeting(world.namespaceOf(client), address, silentMs);
          return said === "answered" ? [`${client} ${row.name}`] : [];
        });
        return (await Promise.all(asked)).flat().join(", ");
      };
      let found: readonly string[] = [];
      const isSo = async () => {
        found = await Promise.all(families.map(text));
        return found.every((each) => each === wanted.join(", "));
      };
      await eventually(isSo, "the policies").catch(() => expect(found).toEqual(families.map(() => wanted.join(", "))));
    }
    const pods = { matchExpressions: [{ key: "name", operator: "In", values: ["near", "far"] }] };
    const ports = [{ port: 8080 }];
    const letIn = (...from: readonly ApiObject[]) => ({ podSelector: pods, ingress: [{ from, ports }] });
    const blocks = (client: (family: Family) => string) =>
      families.map((family) => ({ ipBlock: { cidr: `${client(family)}/${family === 4 ? 32 : 128}` } }));
    const outside = blocks((family) => world.ownAddress("outside1", family));

    enforce(letIn({ podSelector: { matchLabels: { name: "pod1" } } }));
    await answeredAre("pod1 to-near", "pod1 to-far");
    enforce(letIn(...outside));
    await answeredAre("outside1 to-near", "outside1 external-local");
    // The other node's pod sees the node that has chosen it.
    enforce(letIn(...outside, ...blocks((family) => world.gateway(1, family))));
    await answeredAre("outside1 to-near", "outside1 to-far", "outside1 external-local");
    const to = [{ podSelector: { matchLabels: { name: "far" } } }];
    enforce({ podSelector: { matchLabels: { name: "pod1" } }, policyTypes: ["Egress"], egress: [{ to, ports }] });
    await answeredAre(
      ...["pod1 to-far", "pod2 to-near", "pod2 to-far", "outside1 to-near", "outside1 to-far"],
      ...["outside1 external-local", "outside2 external-local"],
    );
    enforce();
    for (const service of [near, far]) world.remove(service);
  });
});
