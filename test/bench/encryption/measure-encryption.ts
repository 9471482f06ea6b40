import { statSync, utimesSync } from "node:fs";
import { Lab } from "../../overlay/lab/lab.ts";
import type { LabNode } from "../../overlay/lab/lab-node.ts";
import type { LabPod } from "../../overlay/lab/lab-pod.ts";
import { saysDuring } from "../../overlay/lab/marked-pings.ts";
import { answers } from "../../overlay/lab/reach.ts";
import { eventually } from "../../support/eventually.ts";
import { compare, type Row } from "../row.ts";
import { askManyTimes, transfer } from "./stream.ts";

export interface EncryptionSetting {
  readonly rounds: number;
  /** Of one transfer. */
  readonly bytes: number;
  /** In one round of questions. */
  readonly questions: number;
  /** How often each node takes a new key while pods talk. */
  readonly rotations: number;
  readonly progress: (text: string) => void;
}

/** Two pods on two nodes. */
interface Pair {
  readonly lab: Lab;
  readonly near: LabPod;
  readonly far: LabPod;
}

async function start(stack: AsyncDisposableStack, ovs: object): Promise<Pair> {
  const lab = stack.use(await Lab.start({ nodes: ["a", "a"], ovs }));
  const [near, far] = (await Promise.all(lab.nodes.map((node) => node.addPod("web")))) as [LabPod, LabPod];
  await eventually(() => answers(near.namespace, far.address(4), { seconds: 1 }), "the other pod");
  return { lab, near, far };
}

/**
 * Two nodes that encrypt and two that do not, side by side and in turn; then how many packets are lost while the keys of
 * those that encrypt change.
 */
export async function measureEncryption(setting: EncryptionSetting): Promise<Row[]> {
  const { rounds, bytes, questions, rotations, progress } = setting;
  await using stack = new AsyncDisposableStack();
  const clear = await start(stack, { encryption: "none" });
  const encrypted = await start(stack, { encryption: "wireguard", wireguard: { rotateHours: 1000 } });
  const sides = { rounds, peerName: "Geneve" };
  progress("transfers");
  const throughput = await compare({
    ...sides,
    measure: `${bytes / 1024 ** 2} MiB from pod to pod of another node, WireGuard`,
    ours: () => transfer(encrypted.near.namespace, encrypted.far.namespace, encrypted.far.address(4), bytes),
    peer: () => transfer(clear.near.namespace, clear.far.namespace, clear.far.address(4), bytes),
  });
  progress("questions");
  const latency = await compare({
    ...sides,
    measure: `${questions} questions one after the other, WireGuard`,
    ours: () => askManyTimes(encrypted.near.namespace, encrypted.far.namespace, encrypted.far.address(4), questions),
    peer: () => askManyTimes(clear.near.namespace, clear.far.namespace, clear.far.address(4), questions),
  });
  progress("new keys");
  return [throughput, latency, await lostByNewKeys(encrypted, rotations)];
}

async function lostByNewKeys({ lab, near, far }: Pair, rotations: number): Promise<Row> {
  const { missing, answered } = await saysDuring(near, far.address(4), async () => {
    for (let i = 0; i < rotations; i++) {
      for (const node of lab.nodes) {
        await takeNewKey(node);
        await eventually(() => answers(near.namespace, far.address(4), { seconds: 1 }), "the other pod");
      }
    }
  });
  const keys = 2 * rotations;
  return {
    measure: `packets of ${answered} lost while ${keys} keys change`,
    value: missing.length,
    unit: "count",
    budget: 0,
  };
}

/** The agent looks how old its key is. */
async function takeNewKey(node: LabNode): Promise<void> {
  const path = `${node.home.dataDir}/wireguard.key`;
  const told = (): number => node.agent.lines.filter((line) => line["message"] === "this node has a new key").length;
  const before = told();
  utimesSync(path, 0, 0);
  await eventually(() => told() > before && statSync(path).mtimeMs > 0, `a new key of ${node.name}`);
}
