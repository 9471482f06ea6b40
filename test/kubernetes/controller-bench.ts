import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { loadavg } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { controllerAccess, NodePolicies } from "../../agent/policies/mod.ts";
import type { Pod } from "../../shared/cni/types.ts";
import { type ApiObject, mapIn, textIn } from "../../shared/kubernetes/mod.ts";
import { createLogger } from "../../shared/log.ts";
import { smallNamespaces } from "../bench/policies/workloads.ts";
import { compileExecutables } from "../conformance/plugin.ts";
import { PolicyEnforcementInMemory } from "../fakes/policy-enforcement.ts";
import { eventually } from "../support/eventually.ts";
import { scratchDir } from "../support/scratch-dir.ts";
import { ApiServer } from "./api-server.ts";
import { ControllerProcess, installController } from "./controller-process.ts";
import { requestToken } from "./service-account.ts";

/**
 * `npm run bench:controller [-- --namespaces 25000 --nodes 10]`: a real API server with that many namespaces, four pods and
 * three policies in each; the compiled controller, and agents of some of its thousand nodes that follow it. It is stopped,
 * and it is killed, and starts again: no agent may lose a rule or open a pod meanwhile. Exit status 1 if one does.
 */
const { values } = parseArgs({
  options: { namespaces: { type: "string", default: "25000" }, nodes: { type: "string", default: "10" } },
});
const workload = smallNamespaces(Number(values.namespaces));
/** When it is given up, on a machine that has much else to do. */
const longestMs = 20 * 60_000;
const complete = "the policies are computed";

/** An agent's own part of policies on a node, with a data path in memory. */
class BenchAgent {
  readonly enforcement = new PolicyEnforcementInMemory();
  readonly policies: NodePolicies;
  readonly #node: string;
  readonly #pods: readonly ApiObject[];
  #wanted = this.enforcement.inForce;
  #from = 0;
  /** How often a controller has told all since the last `remember()`. */
  heardAll = 0;

  static async start(node: string, pods: readonly ApiObject[]): Promise<BenchAgent> {
    const agent = new BenchAgent(node, pods, await controller.ca());
    await agent.#begin();
    return agent;
  }

  private constructor(node: string, pods: readonly ApiObject[], authority: string) {
    this.#node = node;
    this.#pods = pods;
    const dataDir = join(scratch.path, node);
    mkdirSync(dataDir);
    const [ca, tokenFile] = [join(dataDir, "ca.crt"), join(dataDir, "token")];
    writeFileSync(ca, authority);
    writeFileSync(tokenFile, token, { mode: 0o600 });
    const config = { controller: controller.url, namespace: "kube-system", ca, token: tokenFile };
    this.policies = new NodePolicies({
      ...{ node, dataDir, waitMs: 60_000, enforcement: this.enforcement },
      connect: controllerAccess(config, {}),
      logger: createLogger("info", (line) => {
        if (line.includes("has told all")) this.heardAll++;
      }),
    });
  }

  async #begin(): Promise<void> {
    const leased = this.#pods.map((object) => {
      const { namespace, name, uid } = object["metadata"] as Pod;
      return { owner: { network: "pods", sandboxId: uid, ifname: "eth0" }, pod: { namespace, name, uid } };
    });
    await this.policies.prepare(leased);
    await this.policies.begin(leased.map(({ owner }) => owner));
    await eventually(() => this.heardAll > 0, `all that concerns ${this.#node}`, longestMs);
    for (const { owner } of leased) await this.policies.settle(owner);
  }

  remember(): void {
    this.#wanted = this.enforcement.inForce;
    this.#from = this.enforcement.enforced.length;
    this.heardAll = 0;
  }

  /** Rules and isolations that were away for a moment, or are. */
  lost(): number {
    const { rules, isolated } = this.#wanted;
    const missing = this.enforcement.enforced
      .slice(this.#from)
      .flatMap((state) => [
        ...[...rules.keys()].filter((id) => !state.rules.has(id)),
        ...[...isolated.keys()].filter((owner) => !state.isolated.has(owner)),
      ]);
    if (missing.length > 0) console.log(`${this.#node} has lost ${missing.length}: ${missing.slice(0, 3).join(", ")}`);
    return missing.length;
  }
}

compileExecutables();
await using server = await ApiServer.start();
await installController(server);
const token = await requestToken(server, {});
{
  await server.store("namespaces", { kind: "Namespace", apiVersion: "v1" }, workload.namespaces());
  await server.store("pods", { kind: "Pod", apiVersion: "v1" }, workload.pods());
  const policies = { kind: "NetworkPolicy", apiVersion: "networking.k8s.io/v1" };
  await server.store("networkpolicies", policies, workload.policies());
}
await using controller = await ControllerProcess.start(server);
await timed("started for the first time, until all is computed", () => logged(complete));
console.log(JSON.stringify(controller.log.find((line) => line["message"] === complete)));
await eventually(
  () => existsSync(join(controller.directory, "data", "policy-inputs.jsonl")),
  "the kept file",
  longestMs,
);
using scratch = scratchDir();
const agents = await timed("agents", async () => {
  const byNode = Map.groupBy(workload.pods(), (pod) => textIn(mapIn(pod, "spec"), "nodeName") ?? "");
  const some = [...byNode].slice(0, Number(values.nodes));
  return await Promise.all(some.map(([node, pods]) => BenchAgent.start(node, pods)));
});
const rules = agents.reduce((sum, { enforcement }) => sum + enforcement.inForce.rules.size, 0);
console.log(`${agents.length} agents enforce ${rules} rules`);
let lost = 0;
for (const signal of ["SIGTERM", "SIGKILL"] as const) {
  for (const agent of agents) agent.remember();
  await timed(`started after ${signal}, until all is computed anew`, async () => {
    await controller.restart(signal);
    await timed(`started after ${signal}, until what was known is served`, () => logged("ready"));
    await logged(complete);
  });
  // What was known, and what is: the agents replace all that they have by either.
  await timed("all agents have heard all of it", () =>
    eventually(() => agents.every((agent) => agent.heardAll > 0), "all agents", longestMs),
  );
  // What follows is enforced within milliseconds; on a machine that has much else to do within seconds.
  await Bun.sleep(10_000);
  for (const agent of agents) lost += agent.lost();
}
console.log(`rules removed: ${lost}`);
for (const agent of agents) await agent.policies[Symbol.asyncDispose]();
process.exitCode = lost === 0 ? 0 : 1;

async function logged(message: string): Promise<void> {
  await eventually(() => controller.log.some((line) => line["message"] === message), message, longestMs);
}

/** Times are worth as much as the machine had for this. */
async function timed<T>(what: string, work: () => Promise<T>): Promise<T> {
  const began = performance.now();
  const done = await work();
  const seconds = ((performance.now() - began) / 1000).toFixed(1);
  console.log(`${what}: ${seconds} s; the controller's memory ${memory()}; load ${loadavg()[0]?.toFixed(1)}`);
  return done;
}

function memory(): string {
  const status = readFileSync(`/proc/${controller.pid}/status`, "utf8");
  return `${(Number(/^VmHWM:\s+(\d+)/m.exec(status)?.[1]) / 1e6).toFixed(2)} GB at the most`;
}
