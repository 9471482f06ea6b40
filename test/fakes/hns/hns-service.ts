import { ActiveFault, type Fault } from "./faults.ts";
import { Handles } from "./handles.ts";
import { performHnsCall } from "./hns-call.ts";
import { createNamespace } from "./namespaces.ts";
import { performVersion2, type Version2Answer } from "./operations.ts";
import { hresult, Refusal } from "./refusal.ts";
import { HnsStore } from "./store.ts";

/** A field of a message between Windows' libraries and the service; `null` stands for a null pointer. */
type Field = string | null;

/** One call, as it was logged at its end. */
export interface LoggedCall {
  readonly fn: string;
  readonly pid: number;
  readonly tid: number;
  /** GUID without braces, upper case; empty where the function takes none. */
  readonly id: string;
  readonly texts: readonly string[];
  /** Unsigned. */
  readonly hresult: number;
  /** Strings that the caller had been given before and had not freed yet. */
  readonly strings: number;
}

/** A call of one of the functions of Windows' libraries. */
export interface HnsCall {
  readonly fn: string;
  readonly pid: number;
  readonly tid: number;
  readonly strings: number;
  readonly handle: number;
  readonly id: string;
  readonly texts: readonly Field[];
}

/** What becomes of a call. */
export interface HnsOutcome {
  readonly refusal?: Refusal;
  readonly done?: Version2Answer;
}

/**
 * The host network service: it keeps documents, refuses what the real one is known to refuse, logs every call, and goes
 * wrong when it is told to. Two doors lead to it: our stubs of computenetwork.dll and vmcompute.dll in a Windows
 * (`answer`), and `NativeHns` for what is tested in this process.
 */
export class HnsService {
  readonly store = new HnsStore();
  readonly handles = new Handles();
  readonly calls: LoggedCall[] = [];
  #isAway = false;
  readonly #faults = new Set<ActiveFault>();

  /** Lets calls go wrong until it is disposed of. */
  fault(fault: Fault): ActiveFault {
    const active = new ActiveFault(fault, (ended) => this.#faults.delete(ended));
    this.#faults.add(active);
    return active;
  }

  /** As containerd makes one for a sandbox. @returns its identifier, in lower case */
  newNamespace(): string {
    return createNamespace(this.store, "", { SchemaVersion: { Major: 2, Minor: 0 } }).toLowerCase();
  }

  /** While it is away, every call answers that the service does not run; what was open is closed. */
  set isAway(isAway: boolean) {
    this.#isAway = isAway;
    if (isAway) this.handles.clear();
  }

  /** After a restart of the service everything but networks and namespaces is gone. */
  restart(): void {
    this.handles.clear();
    this.store.endpoints.clear();
    this.store.loadBalancers.clear();
    for (const namespace of this.store.namespaces.values()) namespace["Resources"] = [];
  }

  /** As at the start of a test. */
  reset(): void {
    for (const fault of this.#faults) fault[Symbol.dispose]();
    this.isAway = false;
    this.store.clear();
    this.calls.length = 0;
  }

  /** How often a function was called. */
  count(fn: string): number {
    return this.calls.filter((call) => call.fn === fn).length;
  }

  /** Answers `channel.c`: HRESULT, handle, result, error record. */
  async answer(fields: readonly Field[]): Promise<readonly Field[]> {
    const [pid, tid, strings, fn, handle, id, ...texts] = fields;
    const call: HnsCall = {
      fn: fn ?? "",
      pid: Number(pid),
      tid: Number(tid),
      strings: Number(strings),
      handle: Number(handle),
      id: id ?? "",
      texts,
    };
    const fault = this.#faultOf(call);
    const early = fault?.fault.effectFirst === true ? this.#perform(call, fault.fault) : undefined;
    fault?.count();
    await fault?.hold();
    const { refusal, done } = this.#logged(call, early ?? this.#perform(call, fault?.fault));
    const code = refusal?.hresult ?? 0;
    const record = { Success: false, Error: refusal?.message, ErrorCode: code };
    return [String(code | 0), String(done?.handle ?? 0), done?.text ?? null, refusal ? JSON.stringify(record) : null];
  }

  /** Answers at once; `"held"` in place of a call that is held, which has its effect only where it takes it first. */
  answerNow(call: HnsCall): HnsOutcome | "held" {
    const fault = this.#faultOf(call);
    const isHeld = fault?.fault.holdMs !== undefined;
    fault?.count();
    if (isHeld && fault.fault.effectFirst !== true) return "held";
    const outcome = this.#logged(call, this.#perform(call, fault?.fault));
    return isHeld ? "held" : outcome;
  }

  /** Of several the newest. */
  #faultOf(call: HnsCall): ActiveFault | undefined {
    const texts = [call.id, call.texts.join(" ")];
    return [...this.#faults].reverse().find((each) => each.hitsOn(call.fn, texts));
  }

  #logged({ fn, pid, tid, strings, id, texts }: HnsCall, outcome: HnsOutcome): HnsOutcome {
    const given = texts.filter((text) => text !== null);
    this.calls.push({ fn, tid, pid, strings, id, texts: given, hresult: outcome.refusal?.hresult ?? 0 });
    return outcome;
  }

  #perform(call: HnsCall, fault?: Fault): HnsOutcome {
    try {
      fault?.meanwhile?.();
      if (this.#isAway) throw new Refusal(hresult.serviceUnavailable, "");
      if (fault?.hresult !== undefined) throw new Refusal(fault.hresult, fault.says ?? "As the test wants it.");
      if (fault?.pretends === true) return { done: {} };
      const [method, path, object] = call.texts;
      const done =
        call.fn === "HNSCall"
          ? { text: JSON.stringify(performHnsCall(this.store, method ?? "", path ?? "", object ?? "")) }
          : performVersion2(this.store, this.handles, { ...call, text: call.texts[0] ?? null });
      if (fault?.afterwards === undefined) return { done };
      if ("handle" in done) this.handles.close(kindOf(call.fn), done.handle ?? 0, call.pid);
      throw new Refusal(fault.afterwards, "As the test wants it, although it is done.");
    } catch (caught) {
      if (caught instanceof Refusal) return { refusal: caught };
      throw caught;
    }
  }
}

const kindOf = (fn: string) =>
  fn.includes("LoadBalancer")
    ? "loadBalancer"
    : fn.includes("Namespace")
      ? "namespace"
      : fn.includes("Endpoint")
        ? "endpoint"
        : "network";
