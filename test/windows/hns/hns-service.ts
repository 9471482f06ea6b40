import type { Field } from "../stubs/channel.ts";
import { ActiveFault, type Fault } from "./faults.ts";
import { Handles } from "./handles.ts";
import { performHnsCall } from "./hns-call.ts";
import { createNamespace } from "./namespaces.ts";
import { performVersion2, type Version2Answer } from "./operations.ts";
import { hresult, Refusal } from "./refusal.ts";
import { HnsStore } from "./store.ts";

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

interface Call {
  readonly fn: string;
  readonly pid: number;
  readonly tid: number;
  readonly strings: number;
  readonly handle: number;
  readonly id: string;
  readonly texts: readonly Field[];
}

/**
 * The host network service behind our stubs of computenetwork.dll and vmcompute.dll: it keeps documents, refuses what
 * the real one is known to refuse, logs every call, and goes wrong when it is told to.
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
    const call: Call = {
      fn: fn ?? "",
      pid: Number(pid),
      tid: Number(tid),
      strings: Number(strings),
      handle: Number(handle),
      id: id ?? "",
      texts,
    };
    const { refusal, done } = await this.#outcome(call);
    const code = refusal?.hresult ?? 0;
    const { fn: name, tid: thread, texts: all, ...rest } = call;
    const given = all.filter((text) => text !== null);
    this.calls.push({ fn: name, tid: thread, ...rest, texts: given, hresult: code });
    const record = { Success: false, Error: refusal?.message, ErrorCode: code };
    return [String(code | 0), String(done?.handle ?? 0), done?.text ?? null, refusal ? JSON.stringify(record) : null];
  }

  async #outcome(call: Call): Promise<{ readonly refusal?: Refusal; readonly done?: Version2Answer }> {
    const texts = [call.id, call.texts.join(" ")];
    const fault = [...this.#faults].find((each) => each.hitsOn(call.fn, texts));
    const early = fault?.fault.effectFirst === true ? this.#perform(call, fault.fault) : undefined;
    fault?.count();
    await fault?.hold();
    return early ?? this.#perform(call, fault?.fault);
  }

  #perform(call: Call, fault?: Fault): { readonly refusal?: Refusal; readonly done?: Version2Answer } {
    try {
      if (this.#isAway) throw new Refusal(hresult.serviceUnavailable, "");
      if (fault?.hresult !== undefined) throw new Refusal(fault.hresult, "As the test wants it.");
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
