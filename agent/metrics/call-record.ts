import type { CallPhase, TimedPhase } from "./call-phases.ts";

/** One call of a runtime, as it went. */
export interface CallRecord {
  readonly verb: string;
  readonly network: string;
  readonly sandbox: string;
  readonly ifname: string;
  readonly pod?: { readonly namespace: string; readonly name: string; readonly uid?: string };
  /** Of the last one, where there are several alike. */
  readonly beganAtMs: number;
  readonly durationMs: number;
  /** 0: success. */
  readonly code: number;
  /** Empty after success. */
  readonly message: string;
  /** Absent after success. */
  readonly failedIn?: CallPhase;
  readonly phases: readonly TimedPhase[];
  /** Failures alike, this one among them: a runtime tries again and again. */
  readonly times: number;
  readonly firstAtMs: number;
}

/** Successes of each verb that are kept: what a node of 250 pods does at a restart fits. */
const keptSuccesses = 256;
/** Pods of each verb whose failures are kept, those that failed last. */
const keptFailures = 256;
/** A message's characters: the longest of ours have half as many, and all that is kept stays below 2 MB so. */
const longestMessage = 1_000;
/** Of a sandbox id; those of runtimes have 64. */
const longestName = 256;

/**
 * The last calls of this agent, in memory alone: bounded by number and size, for each verb apart, and failures apart
 * from successes, so that a busy node does not push out the one call that somebody looks for. A pod that fails in the
 * same way again is counted where it stands.
 */
export class CallRing {
  readonly #successes = new Map<string, Map<number, CallRecord>>();
  readonly #failures = new Map<string, Map<string, CallRecord>>();
  #revision = 0;
  #told: ((failure: CallRecord) => void) | undefined;

  /** Another one after each call. */
  get revision(): number {
    return this.#revision;
  }

  /** Has somebody hear of each failure, as it is kept. */
  tellFailures(told: (failure: CallRecord) => void): void {
    this.#told = told;
  }

  add(call: Omit<CallRecord, "times" | "firstAtMs">): void {
    this.#revision++;
    const record = bounded(call);
    if (call.code === 0) {
      keep(mapOf(this.#successes, call.verb), this.#revision, record, keptSuccesses);
      return;
    }
    const kept = mapOf(this.#failures, call.verb);
    const key = failureKey(record);
    const before = kept.get(key);
    const { times, firstAtMs } = before ?? { times: 0, firstAtMs: call.beganAtMs };
    const failure = { ...record, times: times + 1, firstAtMs };
    keep(kept, key, failure, keptFailures);
    this.#told?.(failure);
  }

  /** Those that came last first. */
  list(): readonly CallRecord[] {
    const kept = [...this.#successes.values(), ...this.#failures.values()];
    return kept.flatMap((records) => [...records.values()]).toSorted((a, b) => b.beganAtMs - a.beganAtMs);
  }
}

/** Whose failure it is, and which: a pod's sandboxes come and go. */
function failureKey({ network, sandbox, ifname, pod, code }: CallRecord): string {
  const whose = pod === undefined ? sandbox : `${pod.namespace}/${pod.name}`;
  return [network, whose, ifname, code].join("\n");
}

/** A map keeps the order in which keys were put in, so the first is the oldest. */
function keep<K>(kept: Map<K, CallRecord>, key: K, record: CallRecord, most: number): void {
  kept.delete(key);
  kept.set(key, record);
  for (const oldest of kept.keys()) {
    if (kept.size <= most) return;
    kept.delete(oldest);
  }
}

function mapOf<K>(all: Map<string, Map<K, CallRecord>>, verb: string): Map<K, CallRecord> {
  const kept = all.get(verb) ?? new Map<K, CallRecord>();
  all.set(verb, kept);
  return kept;
}

const cut = (text: string, most: number): string => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

function bounded(call: Omit<CallRecord, "times" | "firstAtMs">): CallRecord {
  const { sandbox, ifname, pod, network, message } = call;
  const uid = pod?.uid === undefined ? {} : { uid: cut(pod.uid, longestName) };
  return {
    ...call,
    message: cut(message, longestMessage),
    sandbox: cut(sandbox, longestName),
    ifname: cut(ifname, longestName),
    network: cut(network, longestName),
    ...(pod === undefined
      ? {}
      : { pod: { namespace: cut(pod.namespace, longestName), name: cut(pod.name, longestName), ...uid } }),
    times: 1,
    firstAtMs: call.beganAtMs,
  };
}
