import { randomUUID } from "node:crypto";
import { readEndpoint, readLoadBalancer, readNamespace, readNetwork } from "./documents.ts";
import type { Hcn, HcnDocument, HcnEndpoint, HcnLoadBalancer, HcnModify, HcnNamespace, HcnNetwork } from "./hcn.ts";
import { HcnError } from "./hcn-error.ts";

/** Names of `Hcn`'s calls. */
export type HcnCallName = Exclude<keyof Hcn, "leaked" | typeof Symbol.asyncDispose>;

const absence = { network: 0x803b0001, endpoint: 0x803b0002, other: 0x80070490 } as const;

/**
 * For unit tests only: HNS as maps of documents, for what the real one does not do on request. It keeps what the real
 * one insists on: identifiers and names of networks are taken once, an endpoint needs its network and is in one
 * namespace at most, a namespace must be there to be changed.
 */
export class HcnInMemory implements Hcn {
  /** By identifier in our form; documents as V2 gives them. */
  readonly networkDocuments = new Map<string, HcnDocument>();
  readonly endpointDocuments = new Map<string, HcnDocument>();
  readonly loadBalancerDocuments = new Map<string, HcnDocument>();
  /** Endpoints in each namespace. */
  readonly namespaceEndpoints = new Map<string, Set<string>>();
  /** Every call as it began: name and first argument. */
  readonly calls: string[] = [];
  /** Runs inside of every call before it has an effect; what it throws is the answer, what it waits for is slowness. */
  before: (call: HcnCallName, subject: string) => void | Promise<void> = () => undefined;
  /** What V1 answers as `Output`. */
  onHnsCall: (method: string, path: string, body: HcnDocument | undefined) => unknown = () => ({});
  leaked = 0;
  disposed = false;
  readonly #hanging = new Map<HcnCallName, "without effect" | "taking effect">();
  readonly #failing = new Map<HcnCallName, { hresult: number; times: number }>();

  /** The next calls of this name fail with the number. */
  fail(call: HcnCallName, hresult: number, times = 1): void {
    this.#failing.set(call, { hresult, times });
  }

  /** The next call of this name is given up as if its deadline had passed; what it was to do happens, or does not. */
  hang(call: HcnCallName, effect: "without effect" | "taking effect" = "without effect"): void {
    this.#hanging.set(call, effect);
  }

  networks(): Promise<readonly HcnNetwork[]> {
    return this.#call("networks", "", () => [...this.networkDocuments.values()].flatMap((d) => readNetwork(d) ?? []));
  }

  network(id: string): Promise<HcnNetwork | undefined> {
    return this.#call("network", id, () => readNetwork(this.networkDocuments.get(id) ?? {}));
  }

  createNetwork(settings: HcnDocument): Promise<HcnNetwork> {
    const name = String(settings["Name"] ?? "");
    return this.#call("createNetwork", name, () => {
      const id = String(settings["ID"] ?? randomUUID()).toLowerCase();
      const taken = [...this.networkDocuments.values()].some((each) => each["Name"] === name);
      if (taken || this.networkDocuments.has(id)) throw refusal("createNetwork", name, 0x803b0010);
      const document = { ...settings, ID: id.toUpperCase() };
      this.networkDocuments.set(id, document);
      return known(readNetwork(document));
    });
  }

  modifyNetwork(id: string, request: HcnModify): Promise<void> {
    return this.#call("modifyNetwork", id, () => this.#modify(this.networkDocuments, id, request, absence.network));
  }

  deleteNetwork(id: string): Promise<void> {
    return this.#call("deleteNetwork", id, () => void this.networkDocuments.delete(id));
  }

  endpoints(): Promise<readonly HcnEndpoint[]> {
    return this.#call("endpoints", "", () =>
      [...this.endpointDocuments.keys()].flatMap((id) => this.#endpoint(id) ?? []),
    );
  }

  endpoint(id: string): Promise<HcnEndpoint | undefined> {
    return this.#call("endpoint", id, () => this.#endpoint(id));
  }

  createEndpoint(networkId: string, id: string, settings: HcnDocument): Promise<HcnEndpoint> {
    return this.#call("createEndpoint", id, () => {
      if (!this.networkDocuments.has(networkId)) throw refusal("createEndpoint", id, absence.network);
      if (this.endpointDocuments.has(id)) throw refusal("createEndpoint", id, 0x80071392);
      this.endpointDocuments.set(id, {
        ...settings,
        ID: id.toUpperCase(),
        HostComputeNetwork: networkId.toUpperCase(),
      });
      return known(this.#endpoint(id));
    });
  }

  modifyEndpoint(id: string, request: HcnModify): Promise<void> {
    return this.#call("modifyEndpoint", id, () => this.#modify(this.endpointDocuments, id, request, absence.endpoint));
  }

  deleteEndpoint(id: string): Promise<void> {
    return this.#call("deleteEndpoint", id, () => {
      this.endpointDocuments.delete(id);
      for (const inside of this.namespaceEndpoints.values()) inside.delete(id);
    });
  }

  namespaces(): Promise<readonly HcnNamespace[]> {
    return this.#call("namespaces", "", () =>
      [...this.namespaceEndpoints.keys()].flatMap((id) => this.#namespace(id) ?? []),
    );
  }

  namespace(id: string): Promise<HcnNamespace | undefined> {
    return this.#call("namespace", id, () => this.#namespace(id));
  }

  attach(namespaceId: string, endpointId: string): Promise<void> {
    return this.#call("attach", endpointId, () => {
      const inside = this.namespaceEndpoints.get(namespaceId);
      if (inside === undefined) throw refusal("attach", endpointId, absence.other);
      if (!this.endpointDocuments.has(endpointId)) throw refusal("attach", endpointId, absence.endpoint);
      const elsewhere = this.#namespaceOf(endpointId);
      if (elsewhere !== undefined && elsewhere !== namespaceId) throw refusal("attach", endpointId, 0x803b002b);
      inside.add(endpointId);
    });
  }

  detach(namespaceId: string, endpointId: string): Promise<void> {
    return this.#call("detach", endpointId, () => void this.namespaceEndpoints.get(namespaceId)?.delete(endpointId));
  }

  loadBalancers(): Promise<readonly HcnLoadBalancer[]> {
    return this.#call("loadBalancers", "", () =>
      [...this.loadBalancerDocuments.values()].flatMap((d) => readLoadBalancer(d) ?? []),
    );
  }

  createLoadBalancer(settings: HcnDocument): Promise<HcnLoadBalancer> {
    return this.#call("createLoadBalancer", "", () => {
      const id = String(settings["ID"] ?? randomUUID()).toLowerCase();
      const document = { ...settings, ID: id.toUpperCase() };
      this.loadBalancerDocuments.set(id, document);
      return known(readLoadBalancer(document));
    });
  }

  deleteLoadBalancer(id: string): Promise<void> {
    return this.#call("deleteLoadBalancer", id, () => void this.loadBalancerDocuments.delete(id));
  }

  hnsCall(method: "GET" | "POST" | "DELETE", path: string, body?: HcnDocument): Promise<unknown> {
    return this.#call("hnsCall", `${method} ${path}`, () => this.onHnsCall(method, path, body));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.disposed = true;
  }

  async #call<T>(call: HcnCallName, subject: string, effect: () => T): Promise<T> {
    this.calls.push(`${call} ${subject}`.trim());
    await this.before(call, subject);
    const failure = this.#failing.get(call);
    if (failure !== undefined && failure.times-- > 0) throw refusal(call, subject, failure.hresult);
    const hanging = this.#hanging.get(call);
    if (hanging === undefined) return effect();
    this.#hanging.delete(call);
    this.leaked++;
    if (hanging === "taking effect") effect();
    const reason = "it has not returned in time, wanted an answer";
    throw new HcnError({ action: `${call} "${subject}"`, call, reason, timedOut: true });
  }

  /** Policies are added or taken away by their whole text; everything else replaces the keys that it names. */
  #modify(documents: Map<string, HcnDocument>, id: string, request: HcnModify, missing: number): void {
    const document = documents.get(id);
    if (document === undefined) throw refusal("modify", id, missing);
    const asked = request.Settings["Policies"];
    if (request.ResourceType !== "Policy" || !Array.isArray(asked)) {
      documents.set(id, { ...document, ...request.Settings });
      return;
    }
    const had = Array.isArray(document["Policies"]) ? document["Policies"] : [];
    const texts = asked.map((each) => JSON.stringify(each));
    const others = had.filter((each) => !texts.includes(JSON.stringify(each)));
    const policies = { Add: [...had, ...asked], Remove: others, Update: asked, Refresh: had }[request.RequestType];
    documents.set(id, { ...document, Policies: policies });
  }

  #endpoint(id: string): HcnEndpoint | undefined {
    const document = this.endpointDocuments.get(id);
    const namespaceId = this.#namespaceOf(id);
    if (document === undefined || namespaceId === undefined) return readEndpoint(document ?? {});
    return readEndpoint({ ...document, HostComputeNamespace: namespaceId.toUpperCase() });
  }

  #namespace(id: string): HcnNamespace | undefined {
    const inside = this.namespaceEndpoints.get(id);
    if (inside === undefined) return undefined;
    const Resources = [...inside].map((each) => ({ Type: "Endpoint", Data: { Id: each.toUpperCase() } }));
    return readNamespace({ ID: id.toUpperCase(), Type: "Host", Resources });
  }

  #namespaceOf(endpointId: string): string | undefined {
    return [...this.namespaceEndpoints].find(([, inside]) => inside.has(endpointId))?.[0];
  }
}

const refusal = (call: string, subject: string, hresult: number): HcnError =>
  new HcnError({ action: `${call} "${subject}"`, call, hresult });

function known<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("Broken invariant: an identifier is one");
  return value;
}
