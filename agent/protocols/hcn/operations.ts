import { parseJson } from "../../../shared/schema/json.ts";
import { isDocument, noGuid, parseGuid, readEndpoint, readNamespace } from "./documents.ts";
import type { HcnDocument, HcnModify } from "./hcn.ts";
import { isAbsence, isAttachedAlready, isDetachedAlready } from "./hcn-error.ts";
import { functionName, type HcnHandle, type HcnKind, NativeError, type NativeHcn } from "./native.ts";

/**
 * What is asked of HNS in one piece: it runs on a thread of its own and may block. Handles are closed on every way out.
 * Each throws a `NativeError`.
 */
export class HcnOperations {
  readonly #native: NativeHcn;

  constructor(native: NativeHcn) {
    this.#native = native;
  }

  /** Of all of a kind: HNS lists nothing else. */
  ids(kind: HcnKind): readonly string[] {
    const call = functionName("enumerate", kind);
    const ids = parsed(this.#native.enumerate(kind, query), call);
    if (!Array.isArray(ids)) throw misread(call, ids, "an array of identifiers");
    return ids.map((text: unknown) => {
      const id = typeof text === "string" ? parseGuid(text) : undefined;
      if (id === undefined) throw misread(call, text, "a GUID");
      return id;
    });
  }

  /** What has vanished is left out. */
  findAll(kind: HcnKind, ids: readonly string[]): readonly HcnDocument[] {
    return ids.map((id) => this.find(kind, id)).filter((document) => document !== undefined);
  }

  find(kind: HcnKind, id: string): HcnDocument | undefined {
    try {
      return this.#within(kind, id, (handle) => this.#document(kind, handle));
    } catch (caught) {
      if (answers(caught, isAbsence)) return undefined;
      throw caught;
    }
  }

  /** `networkId`: of an endpoint alone. @returns the document as HNS has it now */
  create(kind: HcnKind, id: string | undefined, settings: HcnDocument, networkId?: string): HcnDocument {
    // The network stands in the document as well, beside its handle.
    const network = networkId === undefined ? {} : { HostComputeNetwork: networkId };
    const text = JSON.stringify({ SchemaVersion: schemaVersion, ...network, ...settings });
    const make = (within?: HcnHandle): HcnDocument => {
      const handle = this.#native.create(kind, id ?? noGuid, text, within);
      return this.#closing(kind, handle, () => this.#document(kind, handle));
    };
    return networkId === undefined ? make() : this.#within("network", networkId, make);
  }

  modify(kind: HcnKind, id: string, request: HcnModify | HcnDocument): void {
    this.#within(kind, id, (handle) => this.#native.modify(kind, handle, JSON.stringify(request)));
  }

  remove(kind: HcnKind, id: string): void {
    try {
      this.#native.remove(kind, id);
    } catch (caught) {
      if (!answers(caught, isAbsence)) throw caught;
    }
  }

  attach(namespaceId: string, endpointId: string): void {
    try {
      this.modify("namespace", namespaceId, ofEndpoint("Add", endpointId));
    } catch (caught) {
      // The number does not say to which namespace it belongs.
      if (!answers(caught, isAttachedAlready) || !this.#isIn(namespaceId, endpointId)) throw caught;
    }
  }

  detach(namespaceId: string, endpointId: string): void {
    try {
      this.modify("namespace", namespaceId, ofEndpoint("Remove", endpointId));
    } catch (caught) {
      if (!answers(caught, isDetachedAlready)) throw caught;
    }
  }

  /** V1 fails in two ways: by its number, or by an answer that says so. @returns the answer's `Output` */
  hnsCall(method: string, path: string, body: HcnDocument | undefined): unknown {
    const call = "HNSCall";
    const answer = parsed(this.#native.hnsCall(method, path, body === undefined ? "" : JSON.stringify(body)), call);
    if (!isDocument(answer)) throw misread(call, answer, "an object");
    if (answer["Success"] === true) return answer["Output"];
    throw new NativeError({ call, ...readErrorRecord(answer) });
  }

  /** Either of the two may say it. */
  #isIn(namespaceId: string, endpointId: string): boolean {
    const endpoint = readEndpoint(this.find("endpoint", endpointId) ?? {});
    if (endpoint?.namespaceId === namespaceId) return true;
    return readNamespace(this.find("namespace", namespaceId) ?? {})?.endpointIds.includes(endpointId) ?? false;
  }

  #document(kind: HcnKind, handle: HcnHandle): HcnDocument {
    const call = functionName("query", kind);
    const document = parsed(this.#native.query(kind, handle, query), call);
    if (!isDocument(document)) throw misread(call, document, "an object");
    return document;
  }

  #within<T>(kind: HcnKind, id: string, use: (handle: HcnHandle) => T): T {
    const handle = this.#native.open(kind, id);
    return this.#closing(kind, handle, () => use(handle));
  }

  #closing<T>(kind: HcnKind, handle: HcnHandle, use: () => T): T {
    try {
      return use();
    } finally {
      this.#native.close(kind, handle);
    }
  }
}

const schemaVersion = { Major: 2, Minor: 0 } as const;
const query = JSON.stringify({ SchemaVersion: schemaVersion });

const ofEndpoint = (RequestType: "Add" | "Remove", EndpointId: string): HcnModify => ({
  ResourceType: "Endpoint",
  RequestType,
  Settings: { EndpointId },
});

/** An error record of V2 and a failed answer of V1 look alike: a sentence, and an HRESULT as a decimal number. */
export function readErrorRecord(record: HcnDocument): { readonly hresult: number; readonly serviceText: string } {
  const { Error: text, ErrorCode: code } = record;
  return {
    hresult: typeof code === "number" && Number.isInteger(code) ? code >>> 0 : 0,
    serviceText: typeof text === "string" ? text : "",
  };
}

const answers = (caught: unknown, is: (hresult: number) => boolean): boolean =>
  caught instanceof NativeError && is(caught.hresult);

function parsed(text: string, call: string): unknown {
  try {
    return parseJson(text);
  } catch {
    throw misread(call, text, "JSON");
  }
}

const shownChars = 80;

function misread(call: string, value: unknown, wanted: string): NativeError {
  const shown = (typeof value === "string" ? value : (JSON.stringify(value) ?? "nothing")).slice(0, shownChars);
  return new NativeError({ call, reason: `${call} answers "${shown}", wanted ${wanted}` });
}
