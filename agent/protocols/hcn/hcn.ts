import type { HcnFeatures } from "./features.ts";

/** A document as HNS takes or gives it: JSON with its own spelling of keys (learn.microsoft.com/virtualization/api/hcn/hns_schema). */
export type HcnDocument = Readonly<Record<string, unknown>>;

/** What HNS told about a network. Identifiers are in our form (`parseGuid`); what is missing is empty. */
export interface HcnNetwork {
  readonly id: string;
  readonly name: string;
  /** As HNS spells it: `Transparent`, `L2Bridge`, `Overlay`, …; some versions leave it out for a NAT network. */
  readonly type: string;
  readonly subnets: readonly HcnSubnet[];
  /** The whole of it, for what is not above. */
  readonly document: HcnDocument;
}

export interface HcnSubnet {
  /** Address and length, as in `10.10.1.0/24`. */
  readonly prefix: string;
  /** Next hop of the default route; empty where there is none. */
  readonly gateway: string;
}

export interface HcnEndpoint {
  readonly id: string;
  readonly name: string;
  readonly networkId: string;
  /** Empty where it is in none. */
  readonly namespaceId: string;
  readonly addresses: readonly HcnAddress[];
  /** As HNS spells it: `00-15-5D-01-02-03`. */
  readonly mac: string;
  /** Stands for a pod of another node. */
  readonly isRemote: boolean;
  readonly document: HcnDocument;
}

export interface HcnAddress {
  readonly address: string;
  /** 0 where HNS does not say. */
  readonly prefixLength: number;
}

export interface HcnNamespace {
  readonly id: string;
  /** `Host`, `HostDefault`, `Guest` or `GuestDefault`. */
  readonly type: string;
  readonly endpointIds: readonly string[];
  readonly containerIds: readonly string[];
  readonly document: HcnDocument;
}

export interface HcnLoadBalancer {
  readonly id: string;
  readonly endpointIds: readonly string[];
  readonly document: HcnDocument;
}

/** A change of what is there. */
export interface HcnModify {
  /** Of networks `Policy`, `DNS`, `Extension`; of endpoints `Policy`, `Port`. */
  readonly ResourceType: string;
  readonly RequestType: "Add" | "Remove" | "Update" | "Refresh";
  readonly Settings: HcnDocument;
}

/**
 * The host compute network service: V2 (computenetwork.dll), and V1 (vmcompute.dll) for what V2 cannot do.
 *
 * Every call rejects with an `HcnError`, also when its deadline passes: then it may still take effect. So before
 * creating something, a caller looks for it under the identifier or name that it chose. Identifiers are GUIDs in our
 * form (`parseGuid`), as arguments as well.
 */
export interface Hcn extends AsyncDisposable {
  /** Calls that were given up and have not returned: each keeps a thread of this process. */
  readonly leaked: number;
  networks(): Promise<readonly HcnNetwork[]>;
  network(id: string): Promise<HcnNetwork | undefined>;
  /** With the document's `ID`, or one that HNS chooses. */
  createNetwork(settings: HcnDocument): Promise<HcnNetwork>;
  modifyNetwork(id: string, request: HcnModify): Promise<void>;
  /** That there is none is success. */
  deleteNetwork(id: string): Promise<void>;
  endpoints(): Promise<readonly HcnEndpoint[]>;
  endpoint(id: string): Promise<HcnEndpoint | undefined>;
  /** `id`: chosen by the caller, so that a call that was given up can be told from one that never arrived. */
  createEndpoint(networkId: string, id: string, settings: HcnDocument): Promise<HcnEndpoint>;
  modifyEndpoint(id: string, request: HcnModify): Promise<void>;
  /** That there is none is success. */
  deleteEndpoint(id: string): Promise<void>;
  namespaces(): Promise<readonly HcnNamespace[]>;
  namespace(id: string): Promise<HcnNamespace | undefined>;
  /** Moves an endpoint into a namespace. That it is there already is success. */
  attach(namespaceId: string, endpointId: string): Promise<void>;
  /** That it is not there, or that either is gone, is success. */
  detach(namespaceId: string, endpointId: string): Promise<void>;
  loadBalancers(): Promise<readonly HcnLoadBalancer[]>;
  loadBalancer(id: string): Promise<HcnLoadBalancer | undefined>;
  /** With the document's `ID`, or one that HNS chooses. */
  createLoadBalancer(settings: HcnDocument): Promise<HcnLoadBalancer>;
  /** Takes the whole new document. @returns what HNS shows then: some versions answer success and change nothing */
  modifyLoadBalancer(id: string, settings: HcnDocument): Promise<HcnLoadBalancer | undefined>;
  /** That there is none is success. */
  deleteLoadBalancer(id: string): Promise<void>;
  /** What this HNS can do, by its version. */
  features(): Promise<HcnFeatures>;
  /** V1. @returns the answer's `Output` */
  hnsCall(method: "GET" | "POST" | "DELETE", path: string, body?: HcnDocument): Promise<unknown>;
}
