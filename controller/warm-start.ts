import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { ReconcileLoop } from "../shared/async/reconcile-loop.ts";
import type { Logger } from "../shared/log.ts";
import type { Cluster } from "../shared/policy/mod.ts";
import { reasonOf } from "../shared/reason.ts";
import { PolicyComputation } from "./policy/mod.ts";
import { type Inputs, readSnapshot, writeSnapshot } from "./snapshot.ts";

const fileName = "policy-inputs.jsonl";
/** What a restart serves at first is at the most so old, besides the time that nobody ran. */
const writeMs = 60_000;

const pathIn = (dataDir: string): string => join(dataDir, fileName);

/** What an earlier process knew, computed anew; nothing where there is none that can be used. */
export async function earlierComputation(
  dataDir: string,
  logger: Logger,
): Promise<{ readonly computation: PolicyComputation; readonly cluster: Cluster } | undefined> {
  try {
    const inputs = await readSnapshot(pathIn(dataDir));
    return inputs === undefined ? undefined : computed(inputs);
  } catch (caught) {
    logger.warn("what was computed before is not served", { file: pathIn(dataDir), error: reasonOf(caught) });
    return undefined;
  }
}

function computed({ namespaces, pods, policies }: Inputs): { computation: PolicyComputation; cluster: Cluster } {
  const computation = new PolicyComputation();
  const known = { namespaces: [...namespaces], policies: [...policies] };
  for (const namespace of known.namespaces) computation.putNamespace(namespace);
  for (const pod of pods) computation.putPod(pod);
  for (const policy of known.policies) computation.putPolicy(policy);
  const labels = new Map(known.namespaces.map((each) => [each.name, each.labels]));
  const cluster = {
    namespaceLabels: (name: string) => labels.get(name),
    policiesIn: (name: string) => known.policies.filter(({ namespace }) => namespace === name),
  };
  return { computation, cluster };
}

/** Writes what is known from time to time, where anything has changed, and once more at the end. */
export class KeptInputs implements AsyncDisposable {
  readonly #loop: ReconcileLoop;
  readonly #write: () => Promise<void>;
  #isChanged = true;

  constructor(dataDir: string, inputs: () => Inputs, logger: Logger) {
    this.#write = async () => {
      if (!this.#isChanged) return;
      this.#isChanged = false;
      try {
        await mkdir(dataDir, { recursive: true, mode: 0o700 });
        await writeSnapshot(pathIn(dataDir), inputs());
      } catch (caught) {
        this.#isChanged = true;
        throw caught;
      }
    };
    this.#loop = new ReconcileLoop({
      what: "the file with what policies are computed from",
      logger,
      everyMs: writeMs,
      reconcile: async () => {
        await this.#write();
        return undefined;
      },
    });
    this.#loop.trigger();
  }

  changed(): void {
    this.#isChanged = true;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#loop[Symbol.asyncDispose]();
    await this.#write().catch(() => undefined);
  }
}
