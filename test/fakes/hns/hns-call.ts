import { type Document, listOf, objectOf, parsed, textOf } from "./documents.ts";
import { createEndpoint, deleteEndpoint } from "./endpoints.ts";
import { createNetwork, deleteNetwork, switchExtension } from "./networks.ts";
import { hresult, Refusal } from "./refusal.ts";
import type { HnsStore } from "./store.ts";
import { endpointToV1, networkToV1 } from "./version-1.ts";

/** `HNSCall` of vmcompute.dll. @returns the envelope, of success or of failure */
export function performHnsCall(store: HnsStore, method: string, path: string, object: string): Document {
  try {
    return { Success: true, Output: answer(store, method, path, object) };
  } catch (caught) {
    if (!(caught instanceof Refusal)) throw caught;
    return { Success: false, Error: caught.message, ErrorCode: caught.hresult };
  }
}

function answer(store: HnsStore, method: string, path: string, object: string): unknown {
  const [, room, id = "", action = ""] = path.split("/");
  if (!["GET", "POST", "DELETE"].includes(method) || !path.startsWith("/")) throw unknown(method, path);
  // Nothing stands behind GET and DELETE.
  if (method !== "POST" && object !== "") throw new Refusal(hresult.invalidJson, "The request has a body.");
  if (room === "globals" && id === "version" && method === "GET") return store.version;
  if (room === "networks") return networks(store, method, id, object);
  if (room === "endpoints") return endpoints(store, method, id, action, object);
  throw unknown(method, path);
}

const unknown = (method: string, path: string): Refusal =>
  new Refusal(hresult.requestUnsupported, `The request ${method} ${path} is not supported.`);

function networks(store: HnsStore, method: string, id: string, object: string): unknown {
  const show = (one: string): Document => networkToV1(store.get("network", one));
  if (method === "GET") return id === "" ? [...store.networks.keys()].map(show) : show(id);
  if (method === "DELETE") return deleteNetwork(store, id);
  const document = parsed(object);
  if (id === "") return show(createNetwork(store, "", document));
  const network = store.get("network", id);
  for (const extension of listOf(document, "Extensions")) {
    switchExtension(network, textOf(extension, "Id"), extension["IsEnabled"] === true);
  }
  return show(id);
}

function endpoints(store: HnsStore, method: string, id: string, action: string, object: string): unknown {
  const show = (one: string): Document => {
    const endpoint = store.get("endpoint", one);
    return endpointToV1(endpoint, store.find("network", textOf(endpoint, "HostComputeNetwork")));
  };
  if (method === "GET") return id === "" ? [...store.endpoints.keys()].map(show) : show(id);
  if (method === "DELETE") return deleteEndpoint(store, id);
  if (id === "") return show(createEndpoint(store, undefined, "", parsed(object)));
  if (action === "attach" || action === "detach") change(store, id, action, parsed(object));
  else throw unknown(method, `/endpoints/${id}/${action}`);
  return show(id);
}

const states = { created: 1, attached: 2, shared: 3 } as const;

/** An endpoint that containers share, as before there were namespaces. */
function change(store: HnsStore, id: string, action: "attach" | "detach", request: Document): void {
  const container = textOf(request, "ContainerId");
  const system = textOf(request, "SystemType");
  if (!["Container", "VirtualMachine", "Host"].includes(system) || (system === "Container" && container === "")) {
    throw new Refusal(hresult.invalidArgument, "The request names no container.");
  }
  const endpoint = store.get("endpoint", id);
  const now = objectOf(endpoint, "V1");
  const sharing = (Array.isArray(now["SharedContainers"]) ? now["SharedContainers"] : []).map(String);
  const isIn = sharing.includes(container);
  if (action === "attach" && isIn) {
    throw new Refusal(hresult.endpointAlreadyAttached, "This endpoint is already attached to the switch.");
  }
  if (action === "detach" && !isIn) throw new Refusal(hresult.endpointNotAttached, "The endpoint is not attached.");
  const SharedContainers = isIn ? sharing.filter((each) => each !== container) : [...sharing, container];
  const State = [states.created, states.attached][SharedContainers.length] ?? states.shared;
  endpoint["V1"] = { ...now, SharedContainers, State };
}
