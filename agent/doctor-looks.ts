import { ReconcileLoop } from "../shared/async/reconcile-loop.ts";
import { readNodeDocument } from "../shared/documents/mod.ts";
import type { Logger } from "../shared/log.ts";
import type { AgentSamples } from "./metrics/meter.ts";

/** It goes through all leases and namespaces of the node, at a few milliseconds for each pod: nothing for each scrape. */
const usualEveryMs = 10 * 60_000;
/** After a start things are still put right. */
const usualFirstMs = 60_000;

const severities = ["error", "warning", "note"] as const;

export interface DoctorLooksOptions {
  /** The document `findings`, as the agent makes it. @throws where it cannot look */
  look(): Promise<{ readonly json: Uint8Array } | undefined>;
  readonly logger: Logger;
  /** Absent: the usual ones. */
  readonly times?: { readonly firstMs: number; readonly everyMs: number };
}

/** Has the doctor look again and again, for numbers: a scrape is told what the last look has found. */
export class DoctorLooks implements AsyncDisposable {
  readonly #loop: ReconcileLoop;
  readonly #first: ReturnType<typeof setTimeout>;
  #found: { readonly counts: ReadonlyMap<string, number>; readonly atMs: number } | undefined;

  constructor({ look, logger, times }: DoctorLooksOptions) {
    const { firstMs = usualFirstMs, everyMs = usualEveryMs } = times ?? {};
    this.#loop = new ReconcileLoop({
      ...{ what: "the numbers of the doctor", logger },
      // Nodes that began together do not look together, for the sake of those that share a machine.
      everyMs: Math.round(everyMs * (0.9 + 0.2 * Math.random())),
      retry: { firstMs: Math.min(firstMs, everyMs), longestMs: everyMs },
      reconcile: async () => {
        const json = (await look())?.json;
        if (json === undefined) return undefined;
        const { findings } = readNodeDocument("findings", undefined, json, "this agent");
        const counts = new Map(
          severities.map((one) => [one, findings.filter(({ severity }) => severity === one).length]),
        );
        this.#found = { counts, atMs: Date.now() };
        return undefined;
      },
    });
    this.#first = setTimeout(() => this.#loop.trigger(), firstMs);
  }

  /** Nothing before the first look. */
  readonly measure = (samples: AgentSamples): void => {
    if (this.#found === undefined) return;
    for (const [severity, count] of this.#found.counts) samples.set("pipette_doctor_findings", { severity }, count);
    samples.set("pipette_doctor_look_timestamp_seconds", {}, this.#found.atMs / 1000);
  };

  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#first);
    await this.#loop[Symbol.asyncDispose]();
  }
}
