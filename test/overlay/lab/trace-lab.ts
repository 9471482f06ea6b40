import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readEvent } from "../../../agent/policies/events.ts";
import { PolicySet } from "../../../agent/policies/policy-set.ts";
import { RuleStore } from "../../../agent/policies/rule-store.ts";
import { textOf } from "../../../agent/policies/state-file.ts";
import { type Answer, type DocumentSource, type Question, SocketSource } from "../../../operator/mod.ts";
import type { NodeKind, NodesDocument, NodeTrace, TraceRequest } from "../../../shared/documents/mod.ts";
import { computed, policy, type Told, targets } from "../../fakes/policy-events.ts";
import { eventually } from "../../support/agent-process.ts";
import { scratchDir } from "../../support/scratch-dir.ts";
import { Lab, type LabOptions } from "./lab.ts";
import type { LabNode } from "./lab-node.ts";
import type { LabPod } from "./lab-pod.ts";

/** Two nodes with two pods each, of which "shop/closed" on the second lets in TCP 80 alone, and "shop/mute" sends nothing. */
export interface TraceLab extends AsyncDisposable {
  readonly lab: Lab;
  readonly source: DocumentSource;
  readonly pods: Readonly<Record<"a" | "b" | "c" | "closed" | "mute", LabPod>>;
  /** With what the service "shop/web" is made of. */
  serve(endpoints: readonly LabPod[]): void;
}

const told = (pods: readonly LabPod[]): readonly Told[] => [
  targets("closed", "shop/closed"),
  targets("mute", "shop/mute"),
  policy("web-only", "closed", [{ blocks: ["10.10.0.0/16", "fd10::/48"], ports: ["TCP/80"] }]),
  policy("quiet", "mute", [{ direction: "Out", blocks: ["10.99.0.0/16"] }]),
  ...pods.map(({ name, containerId }) => computed(`shop/${name}`, containerId.slice(0, 12))),
];

export const serviceIp = "10.96.0.10";

interface More {
  readonly nic?: LabOptions["nic"];
  /** More sections of each node's agent.yaml. */
  readonly sections?: (node: string) => object;
  /** Before the node's agent starts. */
  readonly before?: (node: LabNode) => Promise<void>;
}

export async function startTraceLab(ovs: LabOptions["ovs"] = {}, more: More = {}): Promise<TraceLab> {
  await using stack = new AsyncDisposableStack();
  const policies = { controller: "https://127.0.0.1:1", waitMs: 0, log: "refused" };
  const sections = (node: string) => ({ policies, ...more.sections?.(node) });
  const directory = stack.use(scratchDir());
  const file = join(directory.path, "services.yaml");
  writeFileSync(file, "services: []\n");
  const services = { file, cidrs: ["10.96.0.0/16"] };
  const lab = stack.use(
    await Lab.ground({
      nodes: ["a", "a"],
      sections,
      ...(more.nic === undefined ? {} : { nic: more.nic }),
      ovs: { tenants: "networkpolicy", services, ...ovs },
    }),
  );
  const [one, two] = [lab.node(1), lab.node(2)];
  const on = (node: LabNode, name: string): LabPod => node.pod(name, { project: "shop" });
  const pods = { a: on(one, "a"), b: on(one, "b"), mute: on(one, "mute"), c: on(two, "c"), closed: on(two, "closed") };
  for (const node of lab.nodes) tellPolicies(node);
  for (const node of lab.nodes) await more.before?.(node);
  await lab.startRegistry();
  await Promise.all(lab.nodes.map((node) => node.startAgent()));
  await Promise.all(lab.nodes.map((node) => lab.hearsOthers(node)));
  for (const pod of Object.values(pods)) await pod.add();
  const source = stack.use(new LabSource(lab));
  stack.move();
  return {
    ...{ lab, source, pods },
    serve: (endpoints) =>
      writeFileSync(
        file,
        JSON.stringify({
          services: [
            {
              ...{ name: "shop/web", clusterIp: serviceIp, protocol: "tcp", port: 80 },
              endpoints: endpoints.map((pod) => ({ ip: pod.address(4), port: 8080 })),
            },
          ],
        }),
      ),
    [Symbol.asyncDispose]: async () => {
      await source[Symbol.asyncDispose]();
      await lab[Symbol.asyncDispose]();
      directory[Symbol.dispose]();
    },
  };
}

/** What the controller has said before. */
function tellPolicies(node: LabNode): void {
  const [store, set] = [new RuleStore(), new PolicySet()];
  for (const { type, kind, raw } of told([...node.pods])) set.apply(readEvent(type, kind, raw));
  store.replace(set, true);
  mkdirSync(node.home.dataDir, { recursive: true, mode: 0o700 });
  writeFileSync(join(node.home.dataDir, "policies.state"), textOf(store), { mode: 0o600 });
}

/** All nodes of a lab by their sockets, as an API server leads to them in a cluster. */
export class LabSource implements DocumentSource {
  readonly title = "the lab";
  readonly isLive = true;
  readonly #sources: ReadonlyMap<string, SocketSource>;

  constructor(lab: Lab) {
    this.#sources = new Map(lab.nodes.map(({ name, home }) => [name, new SocketSource(home.socket)]));
  }

  async nodes(): Promise<readonly string[]> {
    return [...this.#sources.keys()];
  }

  cluster(signal: AbortSignal): Promise<NodesDocument> {
    return this.#of("n1").cluster(signal);
  }

  get<K extends NodeKind>(node: string, question: Question<K>, signal: AbortSignal): Promise<Answer<K>> {
    return this.#of(node).get(node, question, signal);
  }

  trace(node: string, request: TraceRequest, signal: AbortSignal): Promise<NodeTrace> {
    return this.#of(node).trace(node, request, signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const source of this.#sources.values()) await source[Symbol.asyncDispose]();
  }

  #of(node: string): SocketSource {
    const source = this.#sources.get(node);
    if (source === undefined) throw new Error(`The lab has no node "${node}"`);
    return source;
  }
}

/** Flows of traces that a node's switch has. */
export const traceFlowsOn = async (node: LabNode): Promise<readonly string[]> =>
  (await node.ofctl("dump-flows", "cookie=0x070000000000/0xff0000000000"))
    .split("\n")
    .filter((line) => line.includes("table="));

export const untilNoTraceFlows = (node: LabNode, timeoutMs?: number): Promise<unknown> =>
  eventually(async () => (await traceFlowsOn(node)).length === 0, "the switch without flows of traces", timeoutMs);
