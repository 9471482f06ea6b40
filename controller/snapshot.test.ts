import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Namespace, type NetworkPolicy, type Pod, readPod, readPolicy } from "../shared/policy/mod.ts";
import { drawCluster } from "../test/fakes/random-cluster.ts";
import { random } from "../test/support/random.ts";
import { scratchDir } from "../test/support/scratch-dir.ts";
import { seed } from "../test/support/seed.ts";
import { PolicyComputation } from "./policy/mod.ts";
import { type Inputs, readSnapshot, writeSnapshot } from "./snapshot.ts";

let directory: ReturnType<typeof scratchDir>;
let path: string;
beforeEach(() => {
  directory = scratchDir();
  path = join(directory.path, "inputs");
});
afterEach(() => directory[Symbol.dispose]());

function inputsOf(draw: number): { namespaces: Namespace[]; pods: Pod[]; policies: NetworkPolicy[] } {
  const cluster = drawCluster(random(seed + draw));
  return {
    namespaces: [...cluster.namespaces].map(([name, labels]) => ({ name, labels })),
    pods: cluster.pods.flatMap((pod) => readPod({ ...pod }) ?? []),
    policies: cluster.policies.flatMap((policy) => readPolicy({ ...policy }) ?? []),
  };
}

test("what is read is what was written, also addresses and labels with strange names, for its owner alone", async () => {
  for (let draw = 0; draw < 20; draw++) {
    const inputs = inputsOf(draw);
    const [first] = inputs.pods;
    if (first !== undefined) inputs.pods[0] = { ...first, labels: { value: "12n", __proto: "1", constructor: "" } };
    await writeSnapshot(path, inputs);
    expect(await readSnapshot(path)).toEqual(inputs);
  }
  expect(statSync(path).mode & 0o777).toBe(0o600);
});

test("a computation of it is the same", async () => {
  const states = async (inputs: Inputs): Promise<unknown> => {
    const computation = new PolicyComputation();
    for (const namespace of inputs.namespaces) computation.putNamespace(namespace);
    for (const pod of inputs.pods) computation.putPod(pod);
    for (const policy of inputs.policies) computation.putPolicy(policy);
    return ["n0", "n1", "n2"].map((node) => computation.onNode(node).policies.map(({ uid, rules }) => [uid, rules]));
  };
  const inputs = inputsOf(99);
  await writeSnapshot(path, inputs);
  const read = await readSnapshot(path);
  expect(read === undefined ? undefined : await states(read)).toEqual(await states(inputs));
});

test("there is none before the first", async () => {
  expect(await readSnapshot(path)).toBeUndefined();
});

test("one that is damaged anywhere, cut off, or of another format is not read", async () => {
  await writeSnapshot(path, inputsOf(1));
  const whole = readFileSync(path, "utf8");
  const strange = [
    ...Array.from({ length: 20 }, (_, i) => Math.floor((i * whole.length) / 20)).map(
      (at) => `${whole.slice(0, at)}${whole[at] === "7" ? "8" : "7"}${whole.slice(at + 1)}`,
    ),
    ...[0, 1, 50, whole.indexOf("\n") + 1, whole.length - 1].map((length) => whole.slice(0, length)),
    `${whole}["pods",{}]\n`,
    whole.replace("inputs/1", "inputs/2"),
  ];
  for (const text of strange) {
    writeFileSync(path, text);
    await expect(readSnapshot(path)).rejects.toThrow();
  }
});
