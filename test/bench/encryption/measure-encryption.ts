import { statSync, utimesSync } from "node:fs";
import { Lab, type LabOptions } from "../../overlay/lab/lab.ts";
import type { LabNode } from "../../overlay/lab/lab-node.ts";
import type { LabPod } from "../../overlay/lab/lab-pod.ts";
import { saysDuring } from "../../overlay/lab/marked-pings.ts";
import { answers } from "../../overlay/lab/reach.ts";
import { eventually } from "../../support/eventually.ts";
import { compare, type Row } from "../row.ts";
import { summarize } from "../stats.ts";
import { askManyTimes, transfer } from "./stream.ts";

export interface EncryptionSetting {
  readonly rounds: number;
  /** Of one transfer. */
  readonly bytes: number;
  /** In one round of questions. */
  readonly questions: number;
  /** How often each node takes a new key while pods talk. */
  readonly rotations: number;
  /** For how long they go on beyond that, in milliseconds: a soak. */
  readonly soakMs?: number;
  readonly progress: (text: string) => void;
}

/** Two pods on two nodes. */
interface Pair {
  readonly lab: Lab;
  readonly near: LabPod;
  readonly far: LabPod;
}

async function start(stack: AsyncDisposableStack, options: Partial<LabOptions>): Promise<Pair> {
  const lab = stack.use(await Lab.start({ nodes: ["a", "a"], ...options }));
  const [near, far] = (await Promise.all(lab.nodes.map((node) => node.addPod("web")))) as [LabPod, LabPod];
  await eventually(() => answers(near.namespace, far.address(4), { seconds: 1 }), "the other pod");
  return { lab, near, far };
}

/**
 * Two nodes that encrypt and two that do not, side by side and in turn; then how many packets are lost while the keys of
 * those that encrypt by WireGuard change.
 */
export async function measureEncryption(setting: EncryptionSetting): Promise<Row[]> {
  await using stack = new AsyncDisposableStack();
  const clear = await start(stack, { ovs: { encryption: "none" } });
  const encrypted = await start(stack, { ovs: { encryption: "wireguard", wireguard: { rotateHours: 1000 } } });
  const rows = await compareWith("WireGuard", encrypted, clear, setting);
  setting.progress("new keys");
  return [...rows, await lostByNewKeys(encrypted, setting)];
}

/**
 * The same with IPsec that strongSwan itself does, against nodes whose packets take the same way through the kernel;
 * then how long nothing passes while both nodes, one after the other, get a new secret.
 */
export async function measureIpsec(setting: EncryptionSetting): Promise<Row[]> {
  await using stack = new AsyncDisposableStack();
  const esp = "userspace";
  const clear = await start(stack, { esp, ovs: { encryption: "none" } });
  const encrypted = await start(stack, { esp, ovs: { encryption: "ipsec", ipsec: { esp } } });
  const rows = await compareWith("IPsec in user space", encrypted, clear, setting);
  setting.progress("new secrets");
  return [...rows, ...(await lostByNewSecrets(encrypted, setting))];
}

async function compareWith(
  name: string,
  encrypted: Pair,
  clear: Pair,
  { rounds, bytes, questions, progress }: EncryptionSetting,
): Promise<Row[]> {
  const sides = { rounds, peerName: "Geneve" };
  progress(`transfers, ${name}`);
  const throughput = await compare({
    ...sides,
    measure: `${bytes / 1024 ** 2} MiB from pod to pod of another node, ${name}`,
    ours: () => transfer(encrypted.near.namespace, encrypted.far.namespace, encrypted.far.address(4), bytes),
    peer: () => transfer(clear.near.namespace, clear.far.namespace, clear.far.address(4), bytes),
  });
  progress(`questions, ${name}`);
  const latency = await compare({
    ...sides,
    measure: `${questions} questions one after the other, ${name}`,
    ours: () => askManyTimes(encrypted.near.namespace, encrypted.far.namespace, encrypted.far.address(4), questions),
    peer: () => askManyTimes(clear.near.namespace, clear.far.namespace, clear.far.address(4), questions),
  });
  return [throughput, latency];
}

/**
 * How long it takes in the median from the end of the first of two agents until pods reach each other with the new
 * secret, and how many packets are lost by all of it.
 */
async function lostByNewSecrets({ lab, near, far }: Pair, setting: EncryptionSetting): Promise<readonly Row[]> {
  const silences: number[] = [];
  const { missing, answered } = await saysDuring(near, far.address(4), async () => {
    for (const i of turns(setting)) {
      const from = performance.now();
      for (const node of lab.nodes) {
        node.psk = `secret-${i}-of-all-nodes`;
        await node.agent.end();
        await node.startAgent();
      }
      await eventually(() => answers(near.namespace, far.address(4), { seconds: 1 }), "the other pod", 60_000);
      silences.push(performance.now() - from);
    }
  });
  const ours = summarize(silences);
  return [
    { measure: "two nodes get a new secret, one after the other", value: ours.median, unit: "ms", ours },
    {
      measure: `packets of ${answered + missing.length} lost while ${silences.length} secrets change`,
      value: missing.length,
      unit: "count",
    },
  ];
}

async function lostByNewKeys({ lab, near, far }: Pair, setting: EncryptionSetting): Promise<Row> {
  let keys = 0;
  const { missing, answered } = await saysDuring(near, far.address(4), async () => {
    for (const _ of turns(setting)) {
      for (const node of lab.nodes) {
        await takeNewKey(node);
        await eventually(() => answers(near.namespace, far.address(4), { seconds: 1 }), "the other pod");
        keys++;
      }
    }
  });
  return {
    measure: `packets of ${answered + missing.length} lost while ${keys} keys change`,
    value: missing.length,
    unit: "count",
    budget: 0,
  };
}

/** Numbers from 0: so many at least, and more until the soak is over. */
function* turns({ rotations, soakMs = 0 }: EncryptionSetting): Generator<number> {
  const until = performance.now() + soakMs;
  for (let i = 0; i < rotations || performance.now() < until; i++) yield i;
}

/** The agent looks how old its key is. */
async function takeNewKey(node: LabNode): Promise<void> {
  const path = `${node.home.dataDir}/wireguard.key`;
  const told = (): number => node.agent.lines.filter((line) => line["message"] === "this node has a new key").length;
  const before = told();
  utimesSync(path, 0, 0);
  await eventually(() => told() > before && statSync(path).mtimeMs > 0, `a new key of ${node.name}`);
}
