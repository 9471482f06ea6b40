import { outcomeOf } from "../../../agent/protocols/hcn/call-server.ts";
import { type Hcn, HcnError } from "../../../agent/protocols/hcn/mod.ts";
import { hcnOver } from "../../../agent/protocols/hcn/open-hcn.ts";
import { HcnOperations } from "../../../agent/protocols/hcn/operations.ts";
import type { Document } from "./documents.ts";
import type { Fault } from "./faults.ts";
import { HnsService, type LoggedCall } from "./hns-service.ts";
import { NativeHns } from "./native-hns.ts";
import type { Kind } from "./store.ts";

/** Calls of `Hcn`, each by the one function of Windows that is its own. */
const functions = {
  networks: { call: "HcnEnumerateNetworks" },
  deleteNetwork: { call: "HcnDeleteNetwork" },
  endpoints: { call: "HcnEnumerateEndpoints" },
  endpoint: { call: "HcnOpenEndpoint" },
  createEndpoint: { call: "HcnCreateEndpoint" },
  modifyEndpoint: { call: "HcnModifyEndpoint" },
  deleteEndpoint: { call: "HcnDeleteEndpoint" },
  attach: { call: "HcnModifyNamespace", match: '"RequestType":"Add"' },
  detach: { call: "HcnModifyNamespace", match: '"RequestType":"Remove"' },
  hnsCall: { call: "HNSCall" },
} as const satisfies Readonly<Record<string, Fault>>;

export type HcnCallName = keyof typeof functions;

/**
 * HNS for unit tests: the fake service, and the real binding in front of it but for its threads. What the service holds
 * is given up at once, as if its deadline had passed.
 */
export class FakeHns {
  readonly service = new HnsService();
  readonly hcn: Hcn = this.open();

  /** Another binding to the same service, as that of the next agent. */
  open(): Hcn {
    const native = new NativeHns(this.service);
    const operations = new HcnOperations(native);
    let leaked = 0;
    return hcnOver({
      get leaked() {
        return leaked;
      },
      async call(action, task) {
        native.heldIn = "";
        const outcome = outcomeOf(operations, task);
        if (native.heldIn !== "") {
          leaked++;
          const reason = `${native.heldIn} has not returned in time`;
          throw new HcnError({ action, call: native.heldIn, reason, timedOut: true });
        }
        if (outcome.t === "failed") throw new HcnError({ action, ...outcome.failure });
        return outcome.value;
      },
      async [Symbol.asyncDispose]() {},
    });
  }

  /** The next call of this name fails with the number. */
  fail(call: HcnCallName, hresult: number): void {
    this.service.fault({ ...functions[call], hresult, times: 1 });
  }

  /** The next call of this name is given up; what it was to do happens, or does not. */
  hang(call: HcnCallName, effect: "without effect" | "taking effect" = "without effect"): void {
    const effectFirst = effect === "taking effect";
    this.service.fault({ ...functions[call], holdMs: "until released", effectFirst, times: 1 });
  }

  /** Just before each call of this name has its effect. */
  before(call: HcnCallName, meanwhile: () => void): Disposable {
    return this.service.fault({ ...functions[call], meanwhile });
  }

  /** Every call so far, by its name and what it is about, without those that only open, read and close an object. */
  get calls(): readonly string[] {
    return this.service.calls.flatMap((call) => nameOf(call) ?? []);
  }

  /** As somebody else has made it. */
  put(kind: Kind, id: string, document: Document): void {
    this.service.store.of(kind).set(id.toUpperCase(), { ...document, ID: id.toUpperCase() });
  }

  get networks(): readonly Document[] {
    return [...this.service.store.networks.values()];
  }

  get endpoints(): readonly Document[] {
    return [...this.service.store.endpoints.values()];
  }

  endpoint(id: string): Document | undefined {
    return this.service.store.find("endpoint", id);
  }

  /** @returns identifiers in our form */
  endpointsIn(namespaceId: string): readonly string[] {
    return this.endpoints
      .filter((endpoint) => String(endpoint["HostComputeNamespace"]).toLowerCase() === namespaceId)
      .map((endpoint) => String(endpoint["ID"]).toLowerCase());
  }
}

function nameOf({ fn, id, texts: [first = "", path = ""] }: LoggedCall): string | undefined {
  if (fn === "HNSCall") return `hnsCall ${first} ${path}`;
  const found = Object.entries(functions).find(([, { call, ...how }]) => {
    return call === fn && (!("match" in how) || first.includes(how.match));
  });
  if (found === undefined) return undefined;
  const endpointId = /"EndpointId":"([^"]+)"/.exec(first)?.[1];
  return `${found[0]} ${(endpointId ?? id).toLowerCase()}`.trim();
}
