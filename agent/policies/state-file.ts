import { join } from "node:path";
import { pause } from "../../shared/async/abortable.ts";
import { LogOnChange } from "../../shared/async/log-on-change.ts";
import type { Owner } from "../../shared/cni/types.ts";
import { CniError } from "../../shared/errors.ts";
import type { Logger } from "../../shared/log.ts";
import { writeAtomicallySlowly } from "../../shared/os/atomic-file.ts";
import { readSmallFile } from "../../shared/os/plain-file.ts";
import {
  ComputedPod,
  computedPodKind,
  encodeObject,
  encodeWatchFrame,
  GroupMessage,
} from "../../shared/proto/control-plane-messages.ts";
import { reasonOf } from "../../shared/reason.ts";
import { parseJson } from "../../shared/schema/json.ts";
import { anyText, boolean, list, object, optional, required, validate } from "../../shared/schema/mod.ts";
import { type Member, memberMessage } from "./members.ts";
import { PolicySet } from "./policy-set.ts";
import type { PodOf, RuleStore } from "./rule-store.ts";
import { WatchReader } from "./watch-reader.ts";

/** What a node has been told last, and whose its attachments are. */
export interface KnownState {
  /** Absent: the controller has never said all. */
  readonly policies?: { readonly set: PolicySet; readonly tellsPods: boolean };
  readonly attachments: readonly { readonly owner: Owner; readonly pod: PodOf }[];
}

export type ReadState =
  | { readonly t: "ok"; readonly state: KnownState }
  | { readonly t: "absent" }
  /** `is` says why nothing in it can be believed. */
  | { readonly t: "damaged"; readonly is: string };

/**
 * The pause between two writes: at least so long, and at least so many times as long as the agent's other work stood still
 * for the last one. Time that a disk takes does not count: what is not written yet is lost with the agent.
 */
const pauseMs = 1000;
const pauseTimes = 20;
/** More than the largest clusters need on a node. A larger one is neither read nor written. */
const maxFileBytes = 256 * 1024 * 1024;

const nothing = {
  ...{ generateName: "", namespace: "", selfLink: "", resourceVersion: "", generation: 0, annotations: [] },
  creationTimestamp: { seconds: 0, nanoseconds: 0 },
};

const headSchema = object({
  /** Absent where there was no full set. */
  tellsPods: optional(boolean),
  attachments: required(
    list(
      object({
        network: required(anyText),
        sandboxId: required(anyText),
        ifname: required(anyText),
        /** Absent: unknown. An empty name: of no pod. */
        pod: optional(object({ namespace: required(anyText), name: required(anyText), uid: required(anyText) })),
      }),
      0,
      100_000,
    ),
  ),
});

/**
 * Three lines: a digest of the others, whose attachments are, and the full set as a controller would say it, so that one
 * reader reads both.
 */
export function textOf(store: RuleStore): string {
  const attachments = Array.from(store.attachments, ({ owner, pod }) => ({
    ...owner,
    ...(pod === "unknown" ? {} : { pod: pod === "none" ? { namespace: "", name: "", uid: "" } : pod }),
  }));
  const { tellsPods } = store;
  const head = JSON.stringify({ ...(tellsPods === undefined ? {} : { tellsPods }), attachments });
  const body = `${head}\n${framesOf(store.set).toBase64()}\n`;
  return `${digestOf(body)}\n${body}`;
}

function framesOf(set: PolicySet): Uint8Array {
  const frames: Uint8Array[] = [];
  const put = (kind: string, raw: Uint8Array): void =>
    void frames.push(encodeWatchFrame("ADDED", encodeObject(kind, raw)));
  const putGroup = (kind: string, name: string, members: Iterable<Member>): void =>
    put(
      kind,
      GroupMessage.encode({ metadata: { ...nothing, name, uid: name }, members: Array.from(members, memberMessage) }),
    );
  for (const { name, members } of set.groups("addresses")) putGroup("AddressGroup", name, members.values());
  for (const { name, members } of set.groups("targets")) putGroup("AppliedToGroup", name, members.values());
  for (const name of set.left) putGroup("AppliedToGroup", name, []);
  for (const { raw } of set.policies.values()) put("NetworkPolicy", raw);
  for (const [key, uid] of set.computed) {
    const slash = key.indexOf("/");
    const metadata = { ...nothing, namespace: key.slice(0, slash), name: key.slice(slash + 1), uid };
    put(computedPodKind, ComputedPod.encode({ metadata }));
  }
  const end = ComputedPod.encode({ metadata: { ...nothing, name: "", uid: "" } });
  frames.push(encodeWatchFrame("BOOKMARK", encodeObject("NetworkPolicy", end)));
  return new Uint8Array(Bun.concatArrayBuffers(frames));
}

const digestOf = (text: string): string => new Bun.CryptoHasher("sha256").update(text).digest("hex");

/** @throws {Error} saying why it is no such text */
export function readState(text: string): KnownState {
  const [digest = "", head = "", frames = ""] = text.split("\n");
  if (text !== `${digest}\n${head}\n${frames}\n`) throw new Error("it has not three lines");
  if (digest !== digestOf(`${head}\n${frames}\n`)) throw new Error("it is not what was written");
  const read = validate(headSchema, parseJson(head), { unknownKeys: "ignored", maxIssues: 1 });
  if (read.t !== "ok") throw new Error(read.issues[0]?.text);
  const { tellsPods, attachments } = read.value;
  const known = attachments.map(({ pod, ...owner }) => {
    const isNone = pod?.name === "";
    return { owner, pod: pod === undefined ? ("unknown" as const) : isNone ? ("none" as const) : pod };
  });
  const set = new PolicySet();
  const reader = new WatchReader("read it", { event: (event) => set.apply(event), complete: () => undefined });
  reader.push(Uint8Array.fromBase64(frames));
  if (!reader.isWhole) throw new Error("it ends too early");
  return { attachments: known, ...(tellsPods === undefined ? {} : { policies: { set, tellsPods } }) };
}

/** The last known state on disk, for an agent that starts without its controller. Root alone reads it. */
export class StateFile implements AsyncDisposable {
  readonly path: string;
  readonly #store: RuleStore;
  readonly #problem: LogOnChange;
  readonly #ended = new AbortController();
  #isChanged = false;
  #writing: Promise<void> | undefined;

  constructor(dataDir: string, store: RuleStore, logger: Logger) {
    this.path = join(dataDir, "policies.state");
    this.#store = store;
    this.#problem = new LogOnChange(logger, "error");
  }

  read(): ReadState {
    let text: string;
    try {
      text = readSmallFile(this.path, maxFileBytes);
    } catch (caught) {
      if (caught instanceof Error && "code" in caught && caught.code === "ENOENT") return { t: "absent" };
      return { t: "damaged", is: reasonOf(caught) };
    }
    try {
      return { t: "ok", state: readState(text) };
    } catch (caught) {
      return { t: "damaged", is: reasonOf(caught) };
    }
  }

  /** Why the state cannot be kept, if so. */
  get problem(): string | undefined {
    return this.#problem.reason;
  }

  /** What the store has now will be written, a moment later. */
  changed(): void {
    this.#isChanged = true;
    this.#writing ??= this.#writeChanges();
  }

  /** Writes what is not written yet. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended.abort();
    await this.#writing;
    if (this.#isChanged) await this.#write();
  }

  /** One version at a time, with pauses, until there is nothing new. What could not be written is tried again. */
  async #writeChanges(): Promise<void> {
    while (this.#isChanged && !this.#ended.signal.aborted) {
      const heldUpMs = await this.#write();
      await pause(Math.max(pauseMs, pauseTimes * heldUpMs), this.#ended.signal);
    }
    this.#writing = undefined;
  }

  /** @returns how long nothing else could be done */
  async #write(): Promise<number> {
    this.#isChanged = false;
    const beganMs = performance.now();
    let heldUpMs = 0;
    try {
      const text = textOf(this.#store);
      heldUpMs = performance.now() - beganMs;
      if (text.length > maxFileBytes)
        throw new Error(`it would have ${text.length} bytes, wanted at most ${maxFileBytes}`);
      await writeAtomicallySlowly(this.path, text, () => true);
      this.#problem.clear();
    } catch (caught) {
      const reason = CniError.from(caught, "keep what is known of network policies").message;
      this.#problem.log("what is known of network policies cannot be kept", reason, { path: this.path });
      this.#isChanged = true;
    }
    return heldUpMs;
  }
}
