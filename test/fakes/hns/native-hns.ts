import { CallMarks } from "../../../agent/protocols/hcn/call-marks.ts";
import {
  functionName,
  type HcnAction,
  type HcnHandle,
  type HcnKind,
  NativeError,
  type NativeHcn,
} from "../../../agent/protocols/hcn/native.ts";
import type { HnsService } from "./hns-service.ts";
import type { Version2Answer } from "./operations.ts";

/** Windows' libraries for what is tested in this process: each function asks the fake service, which answers at once. */
export class NativeHns implements NativeHcn {
  /** The function whose call is held and does not come back; empty where all have. */
  heldIn = "";
  readonly #service: HnsService;
  readonly #marks: CallMarks;

  /** @param marks where its thread notes in which function it is */
  constructor(service: HnsService, marks: CallMarks = new CallMarks()) {
    this.#service = service;
    this.#marks = marks;
  }

  enumerate(kind: HcnKind, query: string): string {
    return this.#call("enumerate", kind, { texts: [query] }).text ?? "";
  }

  create(kind: HcnKind, id: string, settings: string, network: HcnHandle | undefined): HcnHandle {
    return handleIn(this.#call("create", kind, { id, texts: [settings], handle: network ?? 0 }));
  }

  open(kind: HcnKind, id: string): HcnHandle {
    return handleIn(this.#call("open", kind, { id }));
  }

  modify(kind: HcnKind, handle: HcnHandle, settings: string): void {
    this.#call("modify", kind, { handle, texts: [settings] });
  }

  query(kind: HcnKind, handle: HcnHandle, query: string): string {
    return this.#call("query", kind, { handle, texts: [query] }).text ?? "";
  }

  remove(kind: HcnKind, id: string): void {
    this.#call("remove", kind, { id });
  }

  close(kind: HcnKind, handle: HcnHandle): void {
    const fn = functionName("close", kind);
    this.#marks.withinAlways(fn, () => this.#answer(fn, { handle }));
  }

  hnsCall(method: string, path: string, body: string): string {
    const answer = this.#marks.within("HNSCall", () => this.#answer("HNSCall", { texts: [method, path, body] }));
    return answer.text ?? "";
  }

  #call(action: HcnAction, kind: HcnKind, args: Arguments): Version2Answer {
    const fn = functionName(action, kind);
    return this.#marks.within(fn, () => this.#answer(fn, args));
  }

  #answer(fn: string, { id = "", handle = 0, texts = [] }: Arguments): Version2Answer {
    const answer = this.#service.answerNow({ fn, id, handle, texts, pid: 1, tid: 1, strings: 0 });
    if (answer === "held") {
      this.heldIn = fn;
      throw new NativeError({ call: fn, reason: `${fn} has not returned` });
    }
    const { refusal, done = {} } = answer;
    if (refusal === undefined) return done;
    throw new NativeError({ call: fn, hresult: refusal.hresult, serviceText: refusal.message });
  }
}

interface Arguments {
  readonly id?: string;
  readonly handle?: number;
  readonly texts?: readonly string[];
}

const handleIn = ({ handle = 0 }: Version2Answer): HcnHandle => handle as HcnHandle;
