import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Pod, readPod, readPolicy } from "../../../shared/policy/mod.ts";
import { ServedPolicies } from "../../policies/served-policies.ts";
import { AgentHome, type AgentProcess, resultOf } from "../../support/agent-process.ts";
import { NetworkSandbox } from "../../support/network-sandbox.ts";
import { type Summary, summarize } from "../stats.ts";

export interface AddFigures {
  readonly adds: number;
  /** Of an agent's ADD, without and with policies, in milliseconds. */
  readonly without: Summary;
  readonly with: Summary;
}

/** One lets itself be asked at one port by its like alone. */
const policy = readPolicy({
  metadata: { namespace: "x", name: "p", uid: "p" },
  spec: {
    podSelector: { matchLabels: { app: "web" } },
    policyTypes: ["Ingress", "Egress"],
    ingress: [{ from: [{ podSelector: { matchLabels: { app: "web" } } }], ports: [{ protocol: "TCP", port: 80 }] }],
  },
});

/** ADDs of two agents on kernel bridges, in turn, block by block; the controller is in this process. */
export async function measureAdds(adds: number, blocks: number): Promise<AddFigures> {
  await using stack = new AsyncDisposableStack();
  const sandbox = stack.use(await NetworkSandbox.enter("pt-ba-"));
  const controller = stack.use(await ServedPolicies.start());
  if (policy !== undefined) controller.computation.putPolicy(policy);
  const [plain, policed] = [stack.use(new AgentHome()), stack.use(new AgentHome())];
  const token = join(policed.directory, "token");
  writeFileSync(token, "node-n1", { mode: 0o600 });
  policed.change({
    policies: { controller: controller.url, ca: controller.caFile, token, serverName: "127.0.0.1" },
  });
  const took = { without: [] as number[], with: [] as number[] };
  const perBlock = Math.ceil(adds / blocks);
  for (let block = 0; block < blocks; block++)
    for (const [which, home] of [
      ["without", plain],
      ["with", policed],
    ] as const) {
      const agent = await home.start({ PIPETTE_NODE_NAME: "n1" });
      // The first ones are slower: much is done for the first time.
      const ms = await addsOf(home, sandbox, which === "with" ? controller : undefined, block, perBlock + warmUp);
      took[which].push(...ms.slice(warmUp));
      await endOf(agent);
    }
  return { adds: took.with.length, without: summarize(took.without), with: summarize(took.with) };
}

const warmUp = 5;
const endOf = async (agent: AgentProcess): Promise<void> => void (await agent.end());

function podOf(name: string, ip?: string): Pod {
  const pod = readPod({
    metadata: { namespace: "x", name, uid: `uid-${name}`, labels: { app: "web" } },
    spec: { nodeName: "n1" },
    status: { podIPs: ip === undefined ? [] : [{ ip }] },
  });
  if (pod === undefined) throw new Error("Not a pod");
  return pod;
}

/** One after the other, each ended before the next. @returns milliseconds of each ADD */
async function addsOf(
  home: AgentHome,
  sandbox: NetworkSandbox,
  controller: ServedPolicies | undefined,
  block: number,
  count: number,
): Promise<readonly number[]> {
  const took: number[] = [];
  for (let i = 0; i < count; i++) {
    const name = `${controller === undefined ? "n" : "p"}${block}-${i}`;
    // The scheduler is earlier than the runtime.
    controller?.computation.putPod(podOf(name));
    controller?.changed();
    const netns = await sandbox.addPod(name);
    const args = `IgnoreUnknown=1;K8S_POD_NAMESPACE=x;K8S_POD_NAME=${name};K8S_POD_UID=uid-${name}`;
    const beganMs = performance.now();
    const { ips } = resultOf(await home.cmd("cmdAdd", name, { netns, args }));
    took.push(performance.now() - beganMs);
    controller?.computation.putPod(podOf(name, ips[0]?.address.split("/")[0]));
    controller?.changed();
    await home.cmd("cmdDel", name);
    await sandbox.removePod(netns);
    controller?.computation.deletePod(`x/${name}`);
    controller?.changed();
  }
  return took;
}

export function addTable({ adds, without, with: policed }: AddFigures): string {
  const row = (what: string, { median, p99 }: Summary): string =>
    `| ${what} | ${median.toFixed(2)} | ${p99.toFixed(2)} |`;
  return [
    `| an agent's ADD on a kernel bridge, ${adds} of each | median, ms | p99, ms |`,
    "|---|---|---|",
    row("without policies", without),
    row("with policies, of which one selects the pod", policed),
    `| added | ${(policed.median - without.median).toFixed(2)} | ${(policed.p99 - without.p99).toFixed(2)} |`,
  ].join("\n");
}
