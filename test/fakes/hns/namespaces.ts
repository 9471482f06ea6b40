import { type Document, isDegraded, isV2, listOf, objectOf, sameGuid, textOf } from "./documents.ts";
import { removeResource } from "./endpoints.ts";
import { hresult, Refusal } from "./refusal.ts";
import type { HnsStore } from "./store.ts";

const types = ["Host", "HostDefault", "Guest", "GuestDefault"];
let compartments = 1;

/** Creates a namespace. @returns its identifier */
export function createNamespace(store: HnsStore, asked: string, settings: Document): string {
  isV2(settings);
  const type = textOf(settings, "Type") || "Host";
  if (!types.includes(type)) throw new Refusal(hresult.invalidArgument, `Invalid namespace type ${type}.`);
  const id = store.newId("namespace", asked);
  compartments += 1;
  store.namespaces.set(id, {
    ID: id,
    NamespaceId: compartments,
    Type: type,
    Resources: [],
    SchemaVersion: { Major: 2, Minor: 0 },
  });
  return id;
}

/** Adds an endpoint to a namespace or takes it out, as HcnModifyNamespace does. */
export function modifyNamespace(store: HnsStore, namespace: Document, request: Document): void {
  const id = textOf(objectOf(request, "Settings"), "EndpointId");
  const how = textOf(request, "RequestType");
  if (textOf(request, "ResourceType") !== "Endpoint" || (how !== "Add" && how !== "Remove")) {
    throw new Refusal(hresult.requestUnsupported, "The request is not supported.");
  }
  const endpoint = store.get("endpoint", id);
  // Some versions write zeros for none.
  const now = textOf(endpoint, "HostComputeNamespace").replace(/^[0-]+$/, "");
  const isHere = sameGuid(now, textOf(namespace, "ID"));
  if (how === "Remove") {
    if (!isHere) throw new Refusal(hresult.endpointNotAttached, "The endpoint is not attached.");
    removeResource(namespace, "Endpoint", id);
    endpoint["HostComputeNamespace"] = "";
    return;
  }
  if (isHere) throw new Refusal(hresult.endpointAlreadyAttached, "The endpoint is already attached.");
  if (now !== "") {
    throw new Refusal(hresult.endpointNamespaceAlreadyExists, "The endpoint is in a namespace already.");
  }
  if (isDegraded(endpoint)) throw new Refusal(hresult.degradedOperation, "The endpoint is degraded.");
  endpoint["HostComputeNamespace"] = namespace["ID"];
  const resource = { Type: "Endpoint", Data: { ID: textOf(endpoint, "ID") } };
  namespace["Resources"] = [...listOf(namespace, "Resources"), resource];
}

/** With a container in it a namespace stays; its endpoints are left in none. */
export function deleteNamespace(store: HnsStore, id: string): void {
  const namespace = store.get("namespace", id);
  if (listOf(namespace, "Resources").some((entry) => entry["Type"] === "Container")) {
    throw new Refusal(hresult.requestUnsupported, "A container is attached.");
  }
  for (const endpoint of store.endpoints.values()) {
    if (sameGuid(textOf(endpoint, "HostComputeNamespace"), id)) endpoint["HostComputeNamespace"] = "";
  }
  store.namespaces.delete(id.toUpperCase());
}
