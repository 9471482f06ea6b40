import { parseGuid } from "./documents.ts";
import {
  functionName,
  type HcnAction,
  type HcnHandle,
  type HcnKind,
  NativeError,
  type NativeFailure,
  type NativeHcn,
} from "./native.ts";

const absent: Readonly<Record<HcnKind, number>> = {
  network: 0x803b0001,
  endpoint: 0x803b0002,
  namespace: 0x80070490,
  loadBalancer: 0x80070490,
};

/** For unit tests only: the libraries of Windows as a map of documents. It counts handles, and fails on request. */
export class NativeInMemory implements NativeHcn {
  readonly documents = new Map<string, Record<string, unknown>>();
  /** Open objects: what is left at the end of a test was not closed. */
  readonly handles = new Map<HcnHandle, { kind: HcnKind; id: string }>();
  /** Every function as it was called. */
  readonly calls: string[] = [];
  /** Runs before a function has an effect; what it throws is the function's answer. */
  before: (call: string) => void = () => undefined;
  /** What `HNSCall` answers. */
  onHnsCall: (method: string, path: string, body: string) => string = () => '{"Success":true}';
  #lastHandle = 0;

  /** Makes every call of this function fail. */
  fail(call: string, failure: Omit<NativeFailure, "call">): void {
    this.before = (each) => {
      if (each === call) throw new NativeError({ call, ...failure });
    };
  }

  put(kind: HcnKind, id: string, document: Record<string, unknown> = {}): void {
    this.documents.set(`${kind} ${id}`, { ID: id.toUpperCase(), ...document });
  }

  enumerate(kind: HcnKind): string {
    this.#called("enumerate", kind);
    const ids = [...this.documents].filter(([key]) => key.startsWith(`${kind} `)).map(([, document]) => document["ID"]);
    return JSON.stringify(ids);
  }

  create(kind: HcnKind, id: string, settings: string, network: HcnHandle | undefined): HcnHandle {
    this.#called("create", kind);
    const HostComputeNetwork = network === undefined ? undefined : this.handles.get(network)?.id;
    this.put(kind, id, { ...(JSON.parse(settings) as object), ...(HostComputeNetwork && { HostComputeNetwork }) });
    return this.#handle(kind, id);
  }

  open(kind: HcnKind, id: string): HcnHandle {
    this.#called("open", kind);
    this.#find(kind, id, functionName("open", kind));
    return this.#handle(kind, id);
  }

  modify(kind: HcnKind, handle: HcnHandle, settings: string): void {
    this.#called("modify", kind);
    const { id } = this.#opened(handle);
    const { RequestType, Settings } = JSON.parse(settings) as { RequestType: string; Settings: Record<string, string> };
    Object.assign(this.#find(kind, id, functionName("modify", kind)), { [RequestType]: Settings });
    const endpoint = this.documents.get(`endpoint ${parseGuid(Settings["EndpointId"] ?? "")}`);
    if (endpoint !== undefined) endpoint["HostComputeNamespace"] = RequestType === "Add" ? id : undefined;
  }

  query(kind: HcnKind, handle: HcnHandle): string {
    this.#called("query", kind);
    return JSON.stringify(this.#find(kind, this.#opened(handle).id, functionName("query", kind)));
  }

  remove(kind: HcnKind, id: string): void {
    this.#called("remove", kind);
    this.#find(kind, id, functionName("remove", kind));
    this.documents.delete(`${kind} ${id}`);
  }

  close(kind: HcnKind, handle: HcnHandle): void {
    this.calls.push(functionName("close", kind));
    this.#opened(handle);
    this.handles.delete(handle);
  }

  hnsCall(method: string, path: string, body: string): string {
    this.calls.push("HNSCall");
    this.before("HNSCall");
    return this.onHnsCall(method, path, body);
  }

  #called(action: HcnAction, kind: HcnKind): void {
    const call = functionName(action, kind);
    this.calls.push(call);
    this.before(call);
  }

  #handle(kind: HcnKind, id: string): HcnHandle {
    const handle = ++this.#lastHandle as HcnHandle;
    this.handles.set(handle, { kind, id });
    return handle;
  }

  #opened(handle: HcnHandle): { kind: HcnKind; id: string } {
    const object = this.handles.get(handle);
    if (object === undefined) throw new Error(`Broken invariant: handle ${handle} is not open`);
    return object;
  }

  #find(kind: HcnKind, id: string, call: string): Record<string, unknown> {
    const document = this.documents.get(`${kind} ${id}`);
    if (document === undefined) throw new NativeError({ call, hresult: absent[kind] });
    return document;
  }
}
