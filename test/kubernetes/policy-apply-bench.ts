import { writeFileSync } from "node:fs";
import { loadavg } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { summarize } from "../bench/stats.ts";
import { compileExecutables } from "../conformance/plugin.ts";
import { HoldingProxy } from "../registry/holding-proxy.ts";
import { NetworkNamespace } from "../support/network-namespace.ts";
import { PacketFilterMonitor } from "../support/packet-filter-monitor.ts";
import { ApiServer } from "./api-server.ts";
import { ControllerProcess, installController } from "./controller-process.ts";
import { addNode, RegistryNode } from "./registry-node.ts";

/**
 * `npm run bench:policy-apply [-- --nodes 5 --rounds 100]`: how long a network policy takes from the API server's answer to
 * whoever applies it until the kernels of all nodes have it: a real API server, the compiled controller, and a compiled
 * agent for each node, which is a network namespace with a kernel bridge and a pod.
 */
const { values } = parseArgs({
  options: { nodes: { type: "string", default: "5" }, rounds: { type: "string", default: "100" } },
});
const [count, rounds] = [Number(values.nodes), Number(values.rounds)];
const policies = "/apis/networking.k8s.io/v1/namespaces/x/networkpolicies";

compileExecutables();
await using stack = new AsyncDisposableStack();
const server = stack.use(await ApiServer.start());
await installController(server);
await server.create("/api/v1/namespaces", { metadata: { name: "x" } });
await server.ask("POST", "/api/v1/namespaces/x/serviceaccounts", { metadata: { name: "default" } });
const controller = stack.use(await ControllerProcess.start(server));
await controller.logged("the policies are computed");
const monitors: PacketFilterMonitor[] = [];
for (let i = 0; i < count; i++) monitors.push(await nodeWithPod(`n${i}`, i));

const tookMs: number[] = [];
// The first finds nothing in any cache, and does not count.
for (let round = 0; round <= rounds; round++) {
  // Its rules say in the kernel whose they are.
  const everywhere = Promise.all(monitors.map((monitor) => monitor.word(`"x/p${round}"`)));
  const spec = {
    podSelector: {},
    policyTypes: ["Ingress"],
    ingress: [{ from: [{ podSelector: {} }], ports: [{ port: 80 }] }],
  };
  await server.create(policies, { metadata: { name: `p${round}` }, spec });
  const began = performance.now();
  await everywhere;
  if (round > 0) tookMs.push(performance.now() - began);
  await server.ask("DELETE", `${policies}/p${round}`);
}
const { median, p90, p99, max } = summarize(tookMs);
const figures = [median, p90, p99, max].map((ms) => `${ms.toFixed(1)} ms`);
console.log(
  `${rounds} policies, each in force on ${count} nodes: p50 ${figures[0]}, p90 ${figures[1]}, p99 ${figures[2]}, ` +
    `longest ${figures[3]}; load ${loadavg()[0]?.toFixed(1)}`,
);

/** A node with an agent that follows the controller, and one pod that every policy is for. */
async function nodeWithPod(name: string, number: number): Promise<PacketFilterMonitor> {
  await addNode(server, name, "192.0.2.1", `10.80.${number}.0/24`);
  const node = stack.use(await RegistryNode.create(server, name));
  stack.use(await HoldingProxy.into(node.namespace.within, controller.url));
  const ca = join(node.home.directory, "controller-ca.crt");
  writeFileSync(ca, await controller.ca());
  node.configure({ policies: { controller: controller.url, ca, token: node.tokenFile, serverName: "127.0.0.1" } });
  await node.home.start();
  const pods = "/api/v1/namespaces/x/pods";
  const pod = `on-${name}`;
  const spec = { nodeName: name, automountServiceAccountToken: false, containers: [{ name: "a", image: "none" }] };
  const { metadata } = (await server.create(pods, { metadata: { name: pod }, spec })) as { metadata: { uid: string } };
  const netns = stack.use(NetworkNamespace.create());
  const args = `IgnoreUnknown=1;K8S_POD_NAMESPACE=x;K8S_POD_NAME=${pod};K8S_POD_UID=${metadata.uid}`;
  // It waits until the pod's policies are known, and these need its address.
  const answer = await node.home.cmd("cmdAdd", `sandbox-${name}`, { netns: netns.path, args, timeoutMs: 60_000 });
  if (answer.error !== undefined) throw new Error(answer.error.message);
  const [{ address = "" } = {}] = (JSON.parse(new TextDecoder().decode(answer.cniResult)) as Result).ips;
  const podIP = address.replace(/\/.*/, "");
  const status = { phase: "Running", podIP, podIPs: [{ ip: podIP }] };
  await server.ask("PATCH", `${pods}/${pod}/status`, { status });
  return stack.use(await PacketFilterMonitor.start(node.namespace));
}

interface Result {
  readonly ips: readonly { readonly address: string }[];
}
