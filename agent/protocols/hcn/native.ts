/** What HNS keeps; each kind has the same seven functions. */
export const hcnKinds = ["network", "endpoint", "namespace", "loadBalancer"] as const;
export type HcnKind = (typeof hcnKinds)[number];

/** An open object; only its address counts, and only within the thread that opened it. */
export type HcnHandle = number & { readonly handle: unique symbol };

/**
 * The functions of computenetwork.dll and vmcompute.dll, one method each. Documents are JSON text, identifiers GUIDs in
 * our form. All of them throw a `NativeError`, and all may block for as long as HNS likes.
 */
export interface NativeHcn {
  enumerate(kind: HcnKind, query: string): string;
  /** `network`: the open network that an endpoint is made in, `undefined` for all other kinds. */
  create(kind: HcnKind, id: string, settings: string, network: HcnHandle | undefined): HcnHandle;
  open(kind: HcnKind, id: string): HcnHandle;
  modify(kind: HcnKind, handle: HcnHandle, settings: string): void;
  query(kind: HcnKind, handle: HcnHandle, query: string): string;
  remove(kind: HcnKind, id: string): void;
  /** Never throws, since nobody could handle it. */
  close(kind: HcnKind, handle: HcnHandle): void;
  /** V1: the whole answer, empty where there is none. */
  hnsCall(method: string, path: string, body: string): string;
}

/** The fields of an `HcnFailure` that the thread knows; they cross to the main thread as they are. */
export interface NativeFailure {
  readonly call: string;
  readonly hresult?: number;
  readonly serviceText?: string;
  readonly reason?: string;
}

/** What a function of Windows answered in place of success. Never leaves the thread: there it becomes an `HcnError`. */
export class NativeError extends Error {
  override readonly name = "NativeError";
  readonly failure: NativeFailure;

  constructor(failure: NativeFailure) {
    super(failure.reason ?? `${failure.call} answers ${failure.hresult ?? 0}`);
    this.failure = failure;
  }

  get hresult(): number {
    return this.failure.hresult ?? 0;
  }
}

const verbs = {
  enumerate: "Enumerate",
  create: "Create",
  open: "Open",
  modify: "Modify",
  query: "Query",
  remove: "Delete",
  close: "Close",
} as const;

export type HcnAction = keyof typeof verbs;

/** Name of a function of computenetwork.dll: `HcnQueryEndpointProperties`. */
export function functionName(action: HcnAction, kind: HcnKind): string {
  const noun = kind[0]?.toUpperCase() + kind.slice(1);
  return `Hcn${verbs[action]}${noun}${action === "enumerate" ? "s" : action === "query" ? "Properties" : ""}`;
}

/** Every function there is, so that a thread can tell by a number in which it is. */
export const functionNames: readonly string[] = [
  "HNSCall",
  ...hcnKinds.flatMap((kind) => (Object.keys(verbs) as HcnAction[]).map((action) => functionName(action, kind))),
];
