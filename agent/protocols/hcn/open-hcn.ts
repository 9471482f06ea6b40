import { limits } from "../../../shared/limits.ts";
import type { HcnTask } from "./call-server.ts";
import { CallThreads } from "./call-threads.ts";
import { isDocument, parseGuid, readEndpoint, readLoadBalancer, readNamespace, readNetwork } from "./documents.ts";
import { featuresOf, type HcnFeatures, readVersion } from "./features.ts";
import type { Hcn, HcnDocument, HcnEndpoint, HcnLoadBalancer, HcnModify, HcnNamespace, HcnNetwork } from "./hcn.ts";
import { HcnError } from "./hcn-error.ts";
import type { HcnKind } from "./native.ts";

export interface HcnOptions {
  /** How long a call may wait for a thread, and then how long it may take. Absent: `limits.hcnDeadlineMs`. */
  readonly deadlineMs?: number;
  /** Calls at a time. Absent: `limits.hcnThreads`. */
  readonly threads?: number;
  /** Calls that may stay away after they were given up. Absent: `limits.hcnLeakedThreads`. */
  readonly maxLeaked?: number;
  /** There are more of them: the process has to end, and its supervisor to start it again. */
  readonly onLost?: (reason: HcnError) => void;
  /** Told of each call that fails, also where its caller takes that for an answer. */
  readonly onFailure?: (failure: HcnError) => void;
  /** First file of the threads. Absent: the one that calls the libraries of Windows. */
  readonly file?: string | URL;
}

/** Where `build/bundle.ts` puts it in the executable for Windows. */
const windowsThread = "./agent/protocols/hcn/hcn-worker.windows.ts";

/** Opens nothing yet: threads start, and libraries are loaded, with the first call. */
export function openHcn(options: HcnOptions = {}): Hcn {
  return hcnOver(
    new CallThreads({
      file: options.file ?? windowsThread,
      deadlineMs: options.deadlineMs ?? limits.hcnDeadlineMs,
      threads: options.threads ?? limits.hcnThreads,
      maxLeaked: options.maxLeaked ?? limits.hcnLeakedThreads,
      onLost: options.onLost ?? (() => undefined),
    }),
    options.onFailure,
  );
}

/** What carries calls to HNS and answers back: threads, since a call may never return. */
export type HcnCalls = Pick<CallThreads, "call" | "leaked" | typeof Symbol.asyncDispose>;

export const hcnOver = (calls: HcnCalls, onFailure?: HcnOptions["onFailure"]): Hcn =>
  new ConnectedHcn(calls, onFailure);

/**
 * Objects of a list that are looked at by one call: each takes HNS milliseconds, and thousands would take longer than a
 * call may.
 */
const lookedAtInOne = 100;

type Reader<T> = (document: HcnDocument) => T | undefined;

class ConnectedHcn implements Hcn {
  readonly #calls: HcnCalls;
  readonly #onFailure: HcnOptions["onFailure"];

  constructor(calls: HcnCalls, onFailure: HcnOptions["onFailure"]) {
    this.#calls = calls;
    this.#onFailure = onFailure;
  }

  get leaked(): number {
    return this.#calls.leaked;
  }

  networks(): Promise<readonly HcnNetwork[]> {
    return this.#list("networks", "network", readNetwork);
  }

  network(id: string): Promise<HcnNetwork | undefined> {
    return this.#find("network", "network", id, readNetwork);
  }

  createNetwork(settings: HcnDocument): Promise<HcnNetwork> {
    const action = `create network "${String(settings["Name"] ?? "")}"`;
    return this.#create(action, ["create", "network", idIn(settings), settings], readNetwork);
  }

  async modifyNetwork(id: string, request: HcnModify): Promise<void> {
    await this.#call(`modify network "${id}"`, ["modify", "network", id, request]);
  }

  async deleteNetwork(id: string): Promise<void> {
    await this.#call(`delete network "${id}"`, ["remove", "network", id]);
  }

  endpoints(): Promise<readonly HcnEndpoint[]> {
    return this.#list("endpoints", "endpoint", readEndpoint);
  }

  endpoint(id: string): Promise<HcnEndpoint | undefined> {
    return this.#find("endpoint", "endpoint", id, readEndpoint);
  }

  createEndpoint(networkId: string, id: string, settings: HcnDocument): Promise<HcnEndpoint> {
    const action = `create endpoint "${id}" in network "${networkId}"`;
    return this.#create(action, ["create", "endpoint", id, settings, networkId], readEndpoint);
  }

  async modifyEndpoint(id: string, request: HcnModify): Promise<void> {
    await this.#call(`modify endpoint "${id}"`, ["modify", "endpoint", id, request]);
  }

  async deleteEndpoint(id: string): Promise<void> {
    await this.#call(`delete endpoint "${id}"`, ["remove", "endpoint", id]);
  }

  namespaces(): Promise<readonly HcnNamespace[]> {
    return this.#list("namespaces", "namespace", readNamespace);
  }

  namespace(id: string): Promise<HcnNamespace | undefined> {
    return this.#find("namespace", "namespace", id, readNamespace);
  }

  async attach(namespaceId: string, endpointId: string): Promise<void> {
    const action = `attach endpoint "${endpointId}" to namespace "${namespaceId}"`;
    await this.#call(action, ["attach", namespaceId, endpointId]);
  }

  async detach(namespaceId: string, endpointId: string): Promise<void> {
    const action = `detach endpoint "${endpointId}" from namespace "${namespaceId}"`;
    await this.#call(action, ["detach", namespaceId, endpointId]);
  }

  loadBalancers(): Promise<readonly HcnLoadBalancer[]> {
    return this.#list("load balancers", "loadBalancer", readLoadBalancer);
  }

  loadBalancer(id: string): Promise<HcnLoadBalancer | undefined> {
    return this.#find("load balancer", "loadBalancer", id, readLoadBalancer);
  }

  createLoadBalancer(settings: HcnDocument): Promise<HcnLoadBalancer> {
    const task: HcnTask = ["create", "loadBalancer", idIn(settings), settings];
    return this.#create("create a load balancer", task, readLoadBalancer);
  }

  async modifyLoadBalancer(id: string, settings: HcnDocument): Promise<HcnLoadBalancer | undefined> {
    await this.#call(`modify load balancer "${id}"`, ["modify", "loadBalancer", id, settings]);
    return await this.loadBalancer(id);
  }

  async deleteLoadBalancer(id: string): Promise<void> {
    await this.#call(`delete load balancer "${id}"`, ["remove", "loadBalancer", id]);
  }

  async features(): Promise<HcnFeatures> {
    const version = readVersion(await this.hnsCall("GET", "/globals/version"));
    if (version !== undefined) return featuresOf(version);
    throw new HcnError({ action: "read the version of HNS", call: "HNSCall", reason: "it answers none" });
  }

  hnsCall(method: "GET" | "POST" | "DELETE", path: string, body?: HcnDocument): Promise<unknown> {
    return this.#call(`${method} "${path}" of HNS`, ["hnsCall", method, path, body]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#calls[Symbol.asyncDispose]();
  }

  async #list<T>(what: string, kind: HcnKind, read: Reader<T>): Promise<readonly T[]> {
    const action = `list the ${what}`;
    const ids = (await this.#call(action, ["ids", kind])) as readonly string[];
    const listed: T[] = [];
    for (let at = 0; at < ids.length; at += lookedAtInOne) {
      const some = await this.#call(action, ["findAll", kind, ids.slice(at, at + lookedAtInOne)]);
      for (const document of some as readonly unknown[]) listed.push(understood(action, document, read));
    }
    return listed;
  }

  async #find<T>(what: string, kind: HcnKind, id: string, read: Reader<T>): Promise<T | undefined> {
    const action = `look at ${what} "${id}"`;
    const document = await this.#call(action, ["find", kind, id]);
    return document === undefined ? undefined : understood(action, document, read);
  }

  async #create<T>(action: string, task: HcnTask, read: Reader<T>): Promise<T> {
    return understood(action, await this.#call(action, task), read);
  }

  async #call(action: string, task: HcnTask): Promise<unknown> {
    try {
      return await this.#calls.call(action, task);
    } catch (caught) {
      if (caught instanceof HcnError) this.#onFailure?.(caught);
      throw caught;
    }
  }
}

function idIn(settings: HcnDocument): string | undefined {
  const { ID: id } = settings;
  return typeof id === "string" ? parseGuid(id) : undefined;
}

function understood<T>(action: string, document: unknown, read: Reader<T>): T {
  const value = isDocument(document) ? read(document) : undefined;
  if (value !== undefined) return value;
  throw new HcnError({ action, call: "", reason: "a document of HNS has no identifier, wanted a GUID in ID" });
}
