import { type Document, isV2, own, parsed, sameGuid, textOf } from "./documents.ts";
import { createEndpoint, deleteEndpoint, modifyEndpoint } from "./endpoints.ts";
import type { Handles } from "./handles.ts";
import { createLoadBalancer, modifyLoadBalancer } from "./load-balancers.ts";
import { createNamespace, deleteNamespace, modifyNamespace } from "./namespaces.ts";
import { createNetwork, deleteNetwork, modifyNetwork } from "./networks.ts";
import { hresult, Refusal } from "./refusal.ts";
import type { HnsStore, Kind } from "./store.ts";

/** One call of computenetwork.dll. */
export interface Version2Call {
  readonly fn: string;
  readonly pid: number;
  readonly handle: number;
  /** Empty where the function takes none. */
  readonly id: string;
  /** Query or settings. */
  readonly text: string | null;
}

export interface Version2Answer {
  readonly handle?: number;
  readonly text?: string;
}

const kinds: Readonly<Record<string, Kind>> = {
  Network: "network",
  Endpoint: "endpoint",
  Namespace: "namespace",
  LoadBalancer: "loadBalancer",
};

const functionPattern =
  /^Hcn(Enumerate|Create|Open|Modify|Query|Delete|Close)(Network|Endpoint|Namespace|LoadBalancer)(?:s|Properties)?$/;

/** Does what a function of computenetwork.dll does. @throws {Refusal} */
export function performVersion2(store: HnsStore, handles: Handles, call: Version2Call): Version2Answer {
  const [, action = "", name = ""] = functionPattern.exec(call.fn) ?? [];
  const kind = kinds[name];
  if (kind === undefined) throw new Refusal(hresult.requestUnsupported, `There is no function ${call.fn}.`);
  const opened = (): Document => store.get(kind, handles.id(kind, call.handle, call.pid));
  switch (action) {
    case "Enumerate":
      return { text: JSON.stringify(matching(store, kind, call.text)) };
    case "Create":
      return { handle: handles.open(kind, create(store, handles, kind, call), call.pid) };
    case "Open":
      return { handle: handles.open(kind, textOf(store.get(kind, call.id), "ID"), call.pid) };
    case "Query":
      checkQuery(call.text);
      return { text: JSON.stringify(shown(store, kind, opened())) };
    case "Modify":
      modify(store, kind, opened(), parsed(call.text));
      return {};
    case "Delete":
      remove(store, kind, call.id);
      return {};
    default:
      handles.close(kind, call.handle, call.pid);
      return {};
  }
}

/** What V2 shows of an object. */
function shown({ hiddenOfBalancers }: HnsStore, kind: Kind, { V1: _, ...document }: Document): Document {
  if (kind === "loadBalancer") delete document[hiddenOfBalancers];
  return document;
}

/** A query says its schema's version. @returns its filter */
function checkQuery(text: string | null): Document {
  const query = parsed(text);
  if (!isV2(query)) throw new Refusal(hresult.invalidJson, "The query has no schema version.");
  const filter = own(query, "Filter");
  if (filter === undefined || filter === "") return {};
  if (typeof filter !== "string") throw new Refusal(hresult.invalidJson, "The filter is no text.");
  return parsed(filter);
}

function matching(store: HnsStore, kind: Kind, query: string | null): readonly string[] {
  const filter = Object.entries(checkQuery(query));
  const values: Readonly<Record<string, string>> = { VirtualNetwork: "HostComputeNetwork" };
  const fits = (document: Document): boolean =>
    filter.every(([key, wanted]) => sameGuid(textOf(document, values[key] ?? key), String(wanted)));
  return [...store.of(kind)].filter(([, document]) => fits(document)).map(([id]) => id);
}

function create(store: HnsStore, handles: Handles, kind: Kind, { handle, pid, id, text }: Version2Call): string {
  const settings = parsed(text);
  switch (kind) {
    case "network":
      return createNetwork(store, id, settings);
    case "endpoint":
      return createEndpoint(store, handles.id("network", handle, pid), id, settings);
    case "namespace":
      return createNamespace(store, id, settings);
    case "loadBalancer":
      return createLoadBalancer(store, id, settings);
  }
}

function modify(store: HnsStore, kind: Kind, document: Document, request: Document): void {
  if (kind === "loadBalancer") {
    modifyLoadBalancer(store, document, request);
    return;
  }
  if (typeof own(request, "ResourceType") !== "string" || typeof own(request, "RequestType") !== "string") {
    throw new Refusal(hresult.invalidJson, "The request has no type.");
  }
  if (kind === "network") modifyNetwork(document, request);
  else if (kind === "endpoint") modifyEndpoint(document, request);
  else modifyNamespace(store, document, request);
}

export function remove(store: HnsStore, kind: Kind, id: string): void {
  if (kind === "network") deleteNetwork(store, id);
  else if (kind === "endpoint") deleteEndpoint(store, id);
  else if (kind === "namespace") deleteNamespace(store, id);
  else {
    store.get(kind, id);
    store.loadBalancers.delete(id.toUpperCase());
  }
}
