import { dlopen, type FFIFunction, type Pointer, toArrayBuffer } from "bun:ffi";
import { systemLibrary, wide } from "../../../shared/os/win32.windows.ts";
import { reasonOf } from "../../../shared/reason.ts";
import type { CallMarks } from "./call-marks.ts";
import { guidBytes, isDocument } from "./documents.ts";
import { isFailure } from "./hcn-error.ts";
import {
  functionName,
  type HcnAction,
  type HcnHandle,
  type HcnKind,
  NativeError,
  type NativeFailure,
  type NativeHcn,
} from "./native.ts";
import { readErrorRecord } from "./operations.ts";

type Argument = HcnHandle | Uint8Array | Uint16Array | BigUint64Array;
type NativeFunction = (...args: readonly Argument[]) => number;

/** How many arguments each function has (computenetwork.h): addresses all, the last where an error record goes. */
const arity: Readonly<Record<HcnAction, number>> = {
  enumerate: 3,
  create: 4,
  open: 3,
  modify: 3,
  query: 4,
  remove: 2,
  close: 1,
};

/**
 * The two libraries, each opened at its first use by its full path. Functions are opened by kind, so that a Windows that
 * lacks one kind has the others.
 * @param marks where this thread notes in which function it is
 */
export function openHcnLibrary(marks: CallMarks): NativeHcn {
  const v2 = new V2Library(marks);
  let hns: V1Library | undefined;
  return {
    enumerate: (kind, query) => v2.text("enumerate", kind, [wide(query)]),
    create: (kind, id, settings, network) => {
      const args = [guidBytes(id), wide(settings)];
      return v2.object("create", kind, network === undefined ? args : [network, ...args]);
    },
    open: (kind, id) => v2.object("open", kind, [guidBytes(id)]),
    modify: (kind, handle, settings) => v2.call("modify", kind, [handle, wide(settings)]),
    query: (kind, handle, query) => v2.text("query", kind, [handle, wide(query)]),
    remove: (kind, id) => v2.call("remove", kind, [guidBytes(id)]),
    close: (kind, handle) => v2.close(kind, handle),
    hnsCall: (method, path, body) => {
      hns ??= new V1Library(marks);
      return hns.call(method, path, body);
    },
  };
}

class V2Library {
  readonly #marks: CallMarks;
  readonly #opened = new Map<HcnKind, Readonly<Record<string, NativeFunction>>>();
  #memory: TaskMemory | undefined;

  constructor(marks: CallMarks) {
    this.#marks = marks;
  }

  /** A function that answers a text. */
  text(action: HcnAction, kind: HcnKind, args: readonly Argument[]): string {
    const answer = new Answer();
    try {
      this.call(action, kind, [...args, answer.place]);
    } catch (caught) {
      this.#takeText(answer);
      throw caught;
    }
    return this.#takeText(answer);
  }

  /** A function that answers an open object. */
  object(action: HcnAction, kind: HcnKind, args: readonly Argument[]): HcnHandle {
    const answer = new Answer();
    try {
      this.call(action, kind, [...args, answer.place]);
    } catch (caught) {
      // An error record beside S_OK: the object is open all the same.
      if (answer.address !== 0) this.close(kind, answer.address as HcnHandle);
      throw caught;
    }
    if (answer.address !== 0) return answer.address as HcnHandle;
    const call = functionName(action, kind);
    throw new NativeError({ call, reason: `${call} answers no object` });
  }

  call(action: HcnAction, kind: HcnKind, args: readonly Argument[]): void {
    const call = functionName(action, kind);
    const native = this.#function(call, kind);
    const record = new Answer();
    const hresult = this.#marks.within(call, () => native(...args, record.place));
    const said = this.#takeText(record);
    if (isFailure(hresult) || said !== "") throw new NativeError({ call, ...failureOf(hresult, said) });
  }

  close(kind: HcnKind, handle: HcnHandle): void {
    const call = functionName("close", kind);
    const native = this.#function(call, kind);
    this.#marks.withinAlways(call, () => native(handle));
  }

  #function(call: string, kind: HcnKind): NativeFunction {
    let functions = this.#opened.get(kind);
    if (functions === undefined) {
      const actions = Object.entries(arity) as [HcnAction, number][];
      // An endpoint is made in a network, whose handle comes first.
      const extra = (action: HcnAction): number => (action === "create" && kind === "endpoint" ? 1 : 0);
      const counts = actions.map(([action, count]) => [functionName(action, kind), count + extra(action)] as const);
      functions = openFunctions("computenetwork.dll", counts);
      this.#opened.set(kind, functions);
    }
    return functions[call]!;
  }

  #takeText(answer: Answer): string {
    this.#memory ??= openTaskMemory();
    return this.#memory.takeText(answer);
  }
}

class V1Library {
  readonly #marks: CallMarks;
  readonly #memory = openTaskMemory();
  readonly #native = openFunctions("vmcompute.dll", [["HNSCall", 4]])["HNSCall"]!;

  constructor(marks: CallMarks) {
    this.#marks = marks;
  }

  /** Method, path, body, address of the answer. */
  call(method: string, path: string, body: string): string {
    const call = "HNSCall";
    const answer = new Answer();
    const args = [wide(method), wide(path), wide(body), answer.place];
    const hresult = this.#marks.within(call, () => this.#native(...args));
    const text = this.#memory.takeText(answer);
    if (isFailure(hresult)) throw new NativeError({ call, ...failureOf(hresult, text) });
    return text;
  }
}

/** @throws {NativeError} where the library, or one of the functions, is not there */
function openFunctions(
  library: string,
  counts: readonly (readonly [name: string, args: number])[],
): Readonly<Record<string, NativeFunction>> {
  const symbols = Object.fromEntries(
    counts.map(([name, args]) => [name, { args: new Array(args).fill("ptr"), returns: "i32" } satisfies FFIFunction]),
  );
  try {
    return dlopen(systemLibrary(library), symbols).symbols as unknown as Readonly<Record<string, NativeFunction>>;
  } catch (caught) {
    const is = reasonOf(caught);
    const reason = `"${systemLibrary(library)}" cannot be used (${is}), wanted the feature Containers of Windows Server 2019 or later`;
    throw new NativeError({ call: "", reason });
  }
}

/** The function's own number counts; beside S_OK it is the one in the error record. */
function failureOf(hresult: number, said: string): Omit<NativeFailure, "call"> {
  let record: unknown;
  try {
    record = JSON.parse(said);
  } catch {
    record = undefined;
  }
  const told = isDocument(record) ? readErrorRecord(record) : { hresult: 0, serviceText: said };
  return { hresult: isFailure(hresult) ? hresult : told.hresult, serviceText: told.serviceText };
}

/** Room for one address that a function writes: of a text, or of an object. */
class Answer {
  // A buffer of its own keeps its address.
  readonly place = new BigUint64Array(new ArrayBuffer(8));

  /** 0 where nothing was written. */
  get address(): number {
    return Number(this.place[0]);
  }
}

/** Texts that a library leaves to its caller (learn.microsoft.com/windows/win32/api/combaseapi/nf-combaseapi-cotaskmemfree). */
interface TaskMemory {
  /** Reads a UTF-16 text and frees it; empty where there is none. */
  takeText(answer: Answer): string;
}

function openTaskMemory(): TaskMemory {
  const { CoTaskMemFree } = dlopen(systemLibrary("ole32.dll"), {
    CoTaskMemFree: { args: ["ptr"], returns: "void" },
  }).symbols;
  const { lstrlenW } = dlopen(systemLibrary("kernel32.dll"), { lstrlenW: { args: ["ptr"], returns: "i32" } }).symbols;
  const decoder = new TextDecoder("utf-16le", { ignoreBOM: true });
  return {
    takeText(answer) {
      if (answer.address === 0) return "";
      const address = answer.address as Pointer;
      // Only once: a second look finds nothing.
      answer.place[0] = 0n;
      const units = lstrlenW(address);
      // A view of that memory, so it is read before it is freed.
      const text = units === 0 ? "" : decoder.decode(toArrayBuffer(address, 0, 2 * units));
      CoTaskMemFree(address);
      return text;
    },
  };
}
