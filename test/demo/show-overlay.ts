import { writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { external } from "../overlay/lab/addresses.ts";
import { Lab } from "../overlay/lab/lab.ts";
import type { LabNode } from "../overlay/lab/lab-node.ts";
import type { LabPod } from "../overlay/lab/lab-pod.ts";
import { seenBy, TcpServer, tcpPort } from "../overlay/lab/tcp.ts";
import { knowsSubnetOf, tracesOn } from "../overlay/lab/traces.ts";
import { eventually } from "../support/agent-process.ts";
import type { NetworkNamespace } from "../support/network-namespace.ts";
import type { Outcome, Screen } from "./screen.ts";

const service = { address: "10.96.0.10", port: 80 } as const;

/** Two nodes, a pod on each, and what lies between. Everything ends with the show, also when a step fails. */
export async function showOverlay(screen: Screen): Promise<void> {
  const started = performance.now();
  const services = join(tmpdir(), "services.json");
  writeFileSync(services, JSON.stringify({ services: [] }));
  await using lab = await startNodes(screen, services);
  const [one, two] = [lab.node(1), lab.node(2)];
  const bare = [await tracesOn(one), await tracesOn(two)];
  const [web, db] = await addPods(screen, one, two);
  await showPackets(screen, lab, web, db);
  await showService(screen, services, web, db);
  await showTrace(screen, web, db);

  screen.title("And away again");
  for (const pod of [web, db])
    await screen.step(`DEL ${pod.name} on ${pod.node.name}`, async () => ({ value: await pod.remove() }));
  writeFileSync(services, JSON.stringify({ services: [] }));
  await screen.step("nothing is left", async () => {
    for (const [i, node] of [one, two].entries())
      await eventually(async () => isDeepStrictEqual(await tracesOn(node), bare[i]), `the end of ${node.name}'s pods`);
    return { value: undefined, note: "no lease, port, flow or interface" };
  });
  await leave(screen, one, two, db.address(4));
  console.log(`\nAll of it took ${((performance.now() - started) / 1000).toFixed(1)} s.`);
}

async function startNodes(screen: Screen, services: string): Promise<Lab> {
  screen.title("Two nodes on one link");
  const lab = await screen.step("start two nodes", async () => ({
    value: await Lab.ground({ nodes: ["a", "a"], registryMembers: 3, ovs: { services: { file: services } } }),
    note: "a network namespace with an Open vSwitch of its own each",
  }));
  await screen.step("start etcd", async () => ({ value: await lab.startRegistry(), note: "three members" }));
  for (const node of lab.nodes)
    await screen.step(`start the agent of ${node.name}`, async () => ({
      value: await node.startAgent(),
      note: `at ${node.addresses.join(" and ")}`,
    }));
  await screen.step("the nodes", async () => ({ value: undefined, note: "pipette nodes list" }));
  screen.block(await lab.node(1).pipette("nodes", "list", "--config", lab.node(1).home.configFile));
  return lab;
}

async function addPods(screen: Screen, one: LabNode, two: LabNode): Promise<readonly [LabPod, LabPod]> {
  screen.title("A pod on each");
  const add = (node: LabNode, name: string): Promise<LabPod> =>
    screen.step(`ADD ${name} on ${node.name}`, async () => {
      const pod = await node.addPod(name, { project: "demo" });
      return { value: pod, note: pod.addresses.join(", ") };
    });
  return [await add(one, "web"), await add(two, "db")];
}

async function showPackets(screen: Screen, lab: Lab, web: LabPod, db: LabPod): Promise<void> {
  const { wire, namespace: outside } = lab.underlay;
  for (const address of db.addresses)
    await screen.step(`ping from ${web.name} to ${db.name}`, async () => {
      let ping: Outcome<undefined> = { value: undefined };
      const kinds = await wire.during(async () => {
        ping = await pinged(web.namespace, address);
      });
      return { ...ping, note: `${ping.note}; on the link: ${kinds.join(", ")}` };
    });
  await screen.step("TCP from db to web", () => connected(db.namespace, web.address(4), tcpPort, web.namespace, "web"));
  await screen.step("TCP from web to the world outside", () =>
    connected(web.namespace, external[0], tcpPort, outside, "it"),
  );
}

async function showService(screen: Screen, file: string, web: LabPod, db: LabPod): Promise<void> {
  screen.title("A service");
  const endpoints = [{ ip: db.address(4), port: tcpPort }];
  const entry = { name: "demo/db", clusterIp: service.address, protocol: "tcp", port: service.port, endpoints };
  await screen.step("write it into the file of services", async () => {
    writeFileSync(file, JSON.stringify({ services: [entry] }));
    return { value: undefined, note: `${service.address} port ${service.port} is db's port ${tcpPort}` };
  });
  await screen.step("TCP from web to the service", () =>
    connected(web.namespace, service.address, service.port, db.namespace, "db"),
  );
}

async function showTrace(screen: Screen, web: LabPod, db: LabPod): Promise<void> {
  screen.title("The way of a packet from web to db");
  const { home, vswitch } = web.node;
  const options = ["--config", home.configFile, "--control", vswitch.control];
  const text = await screen.step("ask Open vSwitch", async () => ({
    value: await web.node.pipette("trace", "demo/web", db.address(4), ...options),
    note: `pipette trace demo/web ${db.address(4)}`,
  }));
  screen.block(text);
}

async function leave(screen: Screen, one: LabNode, two: LabNode, address: string): Promise<void> {
  await screen.step(`release ${two.name}`, async () => {
    await two.agent.end();
    if (!(await knowsSubnetOf(one, address))) throw new Error(`${one.name} had no way to ${address}, wanted one`);
    await one.pipette("nodes", "release", two.name, "--config", one.home.configFile);
    await eventually(async () => !(await knowsSubnetOf(one, address)), `${one.name} to forget ${two.name}`);
    return { value: undefined, note: `${one.name} has no flow and no route to it any more` };
  });
}

async function pinged(from: NetworkNamespace, address: string): Promise<Outcome<undefined>> {
  const output = await from.run(`ping -n -c 2 -i 0.2 -W 2 ${address}`);
  const trips = [...output.matchAll(/time=([\d.]+)/g)].map((match) => Number(match[1]));
  if (trips.length !== 2) throw new Error(`${trips.length} of 2 pings came back, wanted both`);
  return { value: undefined, ms: Math.min(...trips), note: `${address}, 2 of 2 came back` };
}

/** A service takes a moment to be in the switch. */
async function connected(
  from: NetworkNamespace,
  address: string,
  port: number,
  to: NetworkNamespace,
  whom: string,
): Promise<Outcome<undefined>> {
  using _server = new TcpServer(to);
  const seen = await eventually(() => seenBy(from, address, { port, patienceMs: 1_000 }), `an answer of ${address}`);
  return { value: undefined, note: `${address} port ${port}; ${whom} sees ${seen}` };
}
