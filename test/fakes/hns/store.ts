import { type Document, listOf, textOf } from "./documents.ts";
import { type ModifyingBalancers, placesOf } from "./load-balancers.ts";
import { PlacedObjects } from "./placed-objects.ts";
import { hresult, Refusal } from "./refusal.ts";

export type Kind = "network" | "endpoint" | "namespace" | "loadBalancer";

/** What an absent object of the kind is called. */
const absent: Readonly<Record<Kind, number>> = {
  network: hresult.networkNotFound,
  endpoint: hresult.endpointNotFound,
  namespace: hresult.elementNotFound,
  loadBalancer: hresult.elementNotFound,
};

const noGuid = "00000000-0000-0000-0000-000000000000";

/** The place of an endpoint: an address in a network. */
export const addressPlace = (networkId: string, address: string): string => `${networkId.toUpperCase()} ${address}`;

const addressPlaces = (endpoint: Document): readonly string[] =>
  listOf(endpoint, "IpConfigurations").map((entry) =>
    addressPlace(textOf(endpoint, "HostComputeNetwork"), textOf(entry, "IpAddress")),
  );

/** The objects that the service knows. Keys are GUIDs in upper case, as it writes them. */
export class HnsStore {
  readonly networks = new Map<string, Document>();
  readonly endpoints = new PlacedObjects(addressPlaces);
  readonly namespaces = new Map<string, Document>();
  readonly loadBalancers = new PlacedObjects(placesOf);
  /** What the service says of itself: Windows Server 2022, where a test wants no other. */
  version = { Major: 13, Minor: 3 };
  modifyingBalancers: ModifyingBalancers = "works";
  /** A key of load balancers that the service takes and does not show. */
  hiddenOfBalancers = "";
  /** Names of the physical adapters of this node. */
  readonly adapters = new Set(["Ethernet"]);

  of(kind: Kind): Map<string, Document> {
    return this[`${kind}s`];
  }

  find(kind: Kind, id: string): Document | undefined {
    return this.of(kind).get(id.toUpperCase());
  }

  /** @throws {Refusal} as the service refuses what is not there */
  get(kind: Kind, id: string): Document {
    const found = this.find(kind, id);
    if (found === undefined) throw new Refusal(absent[kind], `The ${kind} was not found. `);
    return found;
  }

  /** The identifier of a new object: the one that is asked for, or a new one for none or zeros. @throws {Refusal} where it is taken */
  newId(kind: Kind, asked: string): string {
    const id = asked === "" || asked === noGuid ? crypto.randomUUID() : asked;
    if (this.find(kind, id) !== undefined) {
      throw new Refusal(hresult.objectAlreadyExists, "The object already exists.");
    }
    return id.toUpperCase();
  }

  clear(): void {
    for (const kind of ["networks", "endpoints", "namespaces", "loadBalancers"] as const) this[kind].clear();
  }
}
