import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { execa } from "execa";
import { formatIp, ipOf } from "../../shared/net/ip.ts";
import { asInstalled } from "../bench/pods.ts";
import { table } from "../bench/report.ts";
import { passes, type Row } from "../bench/row.ts";
import { summarize } from "../bench/stats.ts";
import { compileExecutables, executables } from "../conformance/plugin.ts";
import { AgentHome, bridgeName, eventually } from "../support/agent-process.ts";
import { NetworkNamespace } from "../support/network-namespace.ts";
import { runInside } from "../support/own-network.ts";
import { PacketFilterMonitor } from "../support/packet-filter-monitor.ts";
import { processorMs, processorTickMs } from "../support/processor-time.ts";
import { scratchDir } from "../support/scratch-dir.ts";
import { ApiServer } from "./api-server.ts";
import { kubernetesProgram, whyNoKubernetes } from "./assets.ts";
import { Daemon } from "./cluster/daemon.ts";
import { addNode, shipped } from "./registry-node.ts";
import { agentToken } from "./service-account.ts";

/**
 * `npm run bench:kube-proxy [-- --services 10000 --endpoints 10 --rounds 20]`: services of a real API server on a kernel
 * bridge, by the compiled agent and by the real kube-proxy in its nftables mode, one after the other in one network: until
 * all are in the kernel, and for each change of one endpoint the time from the API server's answer to the kernel's word of
 * it and the processor time of the program and all that it starts. Exit status 1 where the budget is broken.
 */
const { values } = parseArgs({
  options: {
    services: { type: "string", default: "10000" },
    endpoints: { type: "string", default: "10" },
    rounds: { type: "string", default: "20" },
  },
});
const [services, endpoints, rounds] = [Number(values.services), Number(values.endpoints), Number(values.rounds)];
/** When it is given up, on a machine that has much else to do. */
const longestMs = 20 * 60_000;
/** Longer than kube-proxy's shortest time between two changes of the kernel. */
const pauseMs = 1_500;
const budget = { budget: 0.2, aim: 0.05 } as const;
const names = { namespace: "x", node: "here", address: "192.0.2.1" } as const;

const lacking = ["kube-apiserver", "kube-proxy"].flatMap((name) => whyNoKubernetes(name) ?? []);
if (lacking.length > 0) {
  console.error(`Cannot measure against kube-proxy: ${lacking.join("; ")}`);
  process.exit(1);
}

interface Figures {
  readonly allMs: number;
  readonly changeMs: readonly number[];
  /** Processor time of all changes. */
  readonly changesCpuMs: number;
  readonly residentMb: number;
}

/** A program that puts services into the kernel. */
interface Side {
  readonly name: string;
  start(): Promise<void>;
  /** Whether it says that all are in the kernel. */
  isComplete(): Promise<boolean>;
  pid(): number;
  end(): Promise<void>;
}

async function measure(): Promise<number> {
  await compileExecutables();
  await execa("ip", ["link", "set", "lo", "up"]);
  await execa("ip", ["link", "add", "up0", "type", "veth", "peer", "name", "wire"]);
  for (const words of ["set up0 up", "set wire up"]) await execa("ip", ["link", ...words.split(" ")]);
  await execa("ip", ["addr", "add", `${names.address}/24`, "dev", "up0"]);
  await using server = await ApiServer.start({ flags: { "service-cluster-ip-range": "10.96.0.0/12" } });
  await using scratch = scratchDir();
  await shipped(server);
  await addNode(server, names.node, names.address);
  await server.create("/api/v1/namespaces", { metadata: { name: names.namespace } });
  await store(server);
  const sides = [await pipette(server), kubeProxy(server, scratch.path)];
  const figures: Figures[] = [];
  for (const side of sides) figures.push(await figuresOf(side, server));
  const [ours, peer] = figures as [Figures, Figures];
  const text = `${services} services with ${endpoints} endpoints each`;
  const compared = (what: string, of: (figures: Figures) => readonly number[]): Row => {
    const [a, b] = [summarize(of(ours)), summarize(of(peer))];
    return {
      measure: `${text}, ${what}`,
      unit: "ratio",
      ours: a,
      peer: b,
      value: a.median / b.median,
      peerName: "kube-proxy",
    };
  };
  const rows: Row[] = [
    compared("ms from the start until all are in the kernel", ({ allMs }) => [allMs]),
    { ...compared("ms until one endpoint's change is in the kernel", ({ changeMs }) => changeMs) },
    { ...compared("processor ms of one endpoint's change", ({ changesCpuMs }) => [changesCpuMs / rounds]), ...budget },
    { measure: `agent's resident memory, ${text}`, unit: "MB", value: ours.residentMb },
    { measure: `kube-proxy's resident memory, ${text}`, unit: "MB", value: peer.residentMb },
  ];
  console.log(`\n${table(rows)}`);
  return rows.every(passes) ? 0 : 1;
}

const clusterIp = (service: number): string => formatIp(ipOf(4, 0x0a60_1000n + BigInt(service)));
const endpointIp = (number: number): string => formatIp(ipOf(4, 0x0a80_0002n + BigInt(number)));
const nameOf = (service: number): string => `s${service}`;
const slicesPath = `/apis/discovery.k8s.io/v1/namespaces/${names.namespace}/endpointslices`;

const endpointsOf = (service: number, first = endpointIp(service * endpoints)): object[] =>
  Array.from({ length: endpoints }, (_, i) => ({
    addresses: [i === 0 ? first : endpointIp(service * endpoints + i)],
    conditions: { ready: true, serving: true, terminating: false },
  }));

/** As the API server and the controller of EndpointSlices would have stored them. */
async function store(server: ApiServer): Promise<void> {
  const all = Array.from({ length: services }, (_, i) => i);
  const metadata = (i: number) => ({
    name: nameOf(i),
    namespace: names.namespace,
    uid: crypto.randomUUID(),
    creationTimestamp: new Date().toISOString(),
  });
  const port = { name: "http", protocol: "TCP", port: 80 };
  await server.store(
    "services/specs",
    { apiVersion: "v1", kind: "Service" },
    all.map((i) => {
      const ip = {
        clusterIP: clusterIp(i),
        clusterIPs: [clusterIp(i)],
        ipFamilies: ["IPv4"],
        ipFamilyPolicy: "SingleStack",
      };
      const ports = [{ ...port, targetPort: 8080 }];
      const spec = { type: "ClusterIP", ...ip, ports, sessionAffinity: "None", internalTrafficPolicy: "Cluster" };
      return { metadata: metadata(i), spec };
    }),
  );
  await server.store(
    "endpointslices",
    { apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice" },
    all.map((i) => ({
      metadata: { ...metadata(i), labels: { "kubernetes.io/service-name": nameOf(i) } },
      addressType: "IPv4",
      ports: [{ ...port, port: 8080 }],
      endpoints: endpointsOf(i),
    })),
  );
}

async function pipette(server: ApiServer): Promise<Side> {
  const home = new AgentHome(
    {
      ...asInstalled,
      dataPath: "bridge",
      networks: [{ name: "bench", bridge: bridgeName, subnets: ["10.77.0.0/24"], masquerade: false }],
    },
    executables,
  );
  const [ca, token] = [join(home.directory, "ca.crt"), join(home.directory, "token")];
  writeFileSync(ca, readFileSync(server.ca));
  writeFileSync(token, await agentToken(server, names.node), { mode: 0o600 });
  home.change({ services: { from: "cluster", server: server.url, ca, token } });
  let agent: ReturnType<AgentHome["spawn"]> | undefined;
  return {
    name: "Pipette",
    start: async () => {
      agent = await home.start();
    },
    isComplete: async () => {
      const inForce = /(\d+) ports in force/.exec((await home.status()).services)?.[1];
      return Number(inForce ?? 0) >= services;
    },
    pid: () => agent?.pid ?? 0,
    end: async () => {
      await agent?.end();
      await home[Symbol.asyncDispose]();
      await execa("nft", ["flush", "ruleset"]);
    },
  };
}

function kubeProxy(server: ApiServer, directory: string): Side {
  mkdirSync(directory, { recursive: true });
  const config = join(directory, "kube-proxy.yaml");
  const metrics = "127.0.0.1:10249";
  writeFileSync(
    config,
    JSON.stringify({
      apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
      kind: "KubeProxyConfiguration",
      mode: "nftables",
      hostnameOverride: names.node,
      clientConnection: { kubeconfig: server.kubeconfig },
      conntrack: { maxPerCore: 0, tcpCloseWaitTimeout: "0s", tcpEstablishedTimeout: "0s" },
      healthzBindAddress: "127.0.0.1:10256",
      metricsBindAddress: metrics,
    }),
  );
  const daemon = new Daemon([kubernetesProgram("kube-proxy"), "--config", config], {
    log: join(directory, "kube-proxy.log"),
  });
  return {
    name: "kube-proxy",
    start: async () => {
      daemon.start();
    },
    isComplete: async () => {
      daemon.mustRun();
      const answer = await fetch(`http://${metrics}/metrics`).catch(() => undefined);
      const synced = /^kubeproxy_sync_proxy_rules_last_timestamp_seconds\S* (\S+)$/m.exec(
        (await answer?.text()) ?? "",
      )?.[1];
      return Number(synced ?? 0) > 0;
    },
    pid: () => daemon.pid,
    end: () => daemon.end("SIGKILL"),
  };
}

/** From its start to its end. */
async function figuresOf(side: Side, server: ApiServer): Promise<Figures> {
  const say = (text: string): void => console.error(`${side.name}: ${text}`);
  say("starts");
  const began = performance.now();
  await side.start();
  await eventually(() => side.isComplete(), `all services of ${side.name}`, longestMs);
  const allMs = performance.now() - began;
  for (const ip of [endpointIp(0), endpointIp(services * endpoints - 1)])
    if (!(await isInKernel(ip))) throw new Error(`${side.name} says that it is done, and ${ip} is not in the kernel`);
  say(`has all in the kernel after ${(allMs / 1000).toFixed(1)} s`);
  const changeMs: number[] = [];
  using namespace = NetworkNamespace.current();
  await using heard = await PacketFilterMonitor.start(namespace);
  // The first finds nothing in any cache, and does not count.
  let before = 0;
  for (let round = 0; round <= rounds; round++) {
    await Bun.sleep(pauseMs);
    if (round === 1) before = processorMs(side.pid());
    const service = Math.floor((services / (rounds + 1)) * round);
    const ip = endpointIp(services * endpoints + (side.name === "Pipette" ? 0 : rounds + 1) + round);
    const said = heard.word(ip);
    const { status } = await server.ask("PATCH", `${slicesPath}/${nameOf(service)}`, {
      endpoints: endpointsOf(service, ip),
    });
    if (status !== 200) throw new Error(`The API server answers ${status}`);
    const from = performance.now();
    await said;
    if (round > 0) changeMs.push(performance.now() - from);
  }
  await Bun.sleep(pauseMs);
  const changesCpuMs = processorMs(side.pid()) - before;
  // What it does without any change, as watches and clocks have it.
  const idle = processorMs(side.pid());
  await Bun.sleep(pauseMs * 4);
  const idleMs = ((processorMs(side.pid()) - idle) / 4) * (rounds + 1);
  const residentMb = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${side.pid()}/status`, "utf8"))?.[1]) / 1024;
  say(`${rounds} changes took ${changesCpuMs} ms of processor, and as long without any ${idleMs.toFixed(0)} ms`);
  await side.end();
  return { allMs, changeMs, changesCpuMs: Math.max(processorTickMs, changesCpuMs - idleMs), residentMb };
}

/** Whether the kernel has this address, whoever has put it there. */
async function isInKernel(ip: string): Promise<boolean> {
  const { stdout } = await execa("nft", ["list", "ruleset"], { maxBuffer: 2 ** 30 });
  return stdout.includes(ip);
}

process.exitCode = (await runInside()) ?? (await measure());
