import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { HnsService } from "../../../test/fakes/hns/hns-service.ts";
import { NativeHns } from "../../../test/fakes/hns/native-hns.ts";
import type { HcnDocument } from "./hcn.ts";
import { functionNames, type HcnKind, hcnKinds, NativeError } from "./native.ts";
import { HcnOperations } from "./operations.ts";

const network = "6f1d3f0e-7c55-4a17-9f63-0a5c3e1d2b4a";
const namespace = "5e5e5e5e-7c55-4a17-9f63-0a5c3e1d2b4a";
const endpoint = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9";
const other = "1a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9";
const served = "2a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9";
const defaultRoute = { NextHop: "10.10.1.1", DestinationPrefix: "0.0.0.0/0" };
const Ipams = [{ Subnets: [{ IpAddressPrefix: "10.10.1.0/24", Routes: [defaultRoute] }] }];

/** Leads to an endpoint that always stands. */
const balancerAt = (ExternalPort: number): HcnDocument => ({
  HostComputeEndpoints: [served],
  PortMappings: [{ Protocol: 6, InternalPort: 80, ExternalPort }],
  SchemaVersion: { Major: 2, Minor: 0 },
});

/** What the service takes for a new object of the kind. */
const settings: Readonly<Record<HcnKind, Readonly<Record<string, unknown>>>> = {
  network: { Name: "other", Type: "NAT", Ipams },
  endpoint: {},
  namespace: {},
  loadBalancer: balancerAt(80),
};

let service: HnsService;
let native: NativeHns;
let operations: HcnOperations;
const list = (kind: HcnKind) => operations.findAll(kind, operations.ids(kind));

const put = (kind: HcnKind, id: string, document: Readonly<Record<string, unknown>> = {}): void =>
  void service.store.of(kind).set(id.toUpperCase(), { ID: id.toUpperCase(), ...document });

beforeEach(() => {
  service = new HnsService();
  native = new NativeHns(service);
  operations = new HcnOperations(native);
  put("network", network, { Ipams });
  put("namespace", namespace);
});

// Whatever happened: nothing stays open.
afterEach(() => expect(service.handles.list()).toEqual([]));

function failureOf(call: () => unknown): unknown {
  try {
    call();
  } catch (caught) {
    if (caught instanceof NativeError) return caught.failure;
    throw caught;
  }
  throw new Error("Expected a failure");
}

describe("HNS in operations", () => {
  test("an endpoint is made in its network, with the document's version, and read back", () => {
    const made = operations.create("endpoint", endpoint, { Name: "web" }, network);
    const SchemaVersion = { Major: 2, Minor: 0 };
    const HostComputeNetwork = network.toUpperCase();
    expect(made).toMatchObject({ ID: endpoint.toUpperCase(), SchemaVersion, Name: "web", HostComputeNetwork });
    expect(service.calls.map(({ fn }) => fn).slice(0, 3)).toEqual([
      "HcnOpenNetwork",
      "HcnCreateEndpoint",
      "HcnQueryEndpointProperties",
    ]);
  });

  test("without an identifier HNS chooses one", () => {
    const made = operations.create("network", undefined, settings.network);
    expect(service.calls.map(({ id }) => id)).toContain("00000000-0000-0000-0000-000000000000");
    expect(made["ID"]).not.toContain("00000000-");
  });

  test.each(["HcnOpenEndpoint", "HcnQueryEndpointProperties"])(
    "what vanishes before %s is left out of a list",
    (call) => {
      for (const id of [endpoint, other]) put("endpoint", id);
      service.fault({ call, times: 1, meanwhile: () => service.store.endpoints.delete(endpoint.toUpperCase()) });
      expect(list("endpoint")).toEqual([{ ID: other.toUpperCase() }]);
    },
  );

  test("any other failure of one object fails the list: an address could be overlooked", () => {
    put("endpoint", endpoint);
    service.fault({ call: "HcnQueryEndpointProperties", hresult: 0x80004005 });
    expect(failureOf(() => list("endpoint"))).toMatchObject({ hresult: 0x80004005 });
  });

  test("what is not there is not found, and its removal is success", () => {
    for (const kind of hcnKinds) {
      expect(operations.find(kind, endpoint)).toBeUndefined();
      operations.remove(kind, endpoint);
    }
    put("endpoint", endpoint);
    service.fault({ call: "HcnDeleteEndpoint", hresult: 0x803b002c });
    expect(failureOf(() => operations.remove("endpoint", endpoint))).toMatchObject({ hresult: 0x803b002c });
  });

  test.each([0x803b0014, 0x803b002b])(
    "attached already (%x): success where it is in that namespace, else not",
    (hresult) => {
      put("endpoint", endpoint);
      operations.attach(namespace, endpoint);
      service.fault({ call: "HcnModifyNamespace", hresult });
      operations.attach(namespace, endpoint);
      put("namespace", namespace);
      put("endpoint", endpoint, { HostComputeNamespace: other });
      expect(failureOf(() => operations.attach(namespace, endpoint))).toMatchObject({ hresult });
      // Where the namespace alone says it.
      put("endpoint", endpoint);
      put("namespace", namespace, { Resources: [{ Type: "Endpoint", Data: { Id: endpoint.toUpperCase() } }] });
      operations.attach(namespace, endpoint);
    },
  );

  test.each([0x803b0001, 0x803b0002, 0x80070490, 0x803b0034])("detached already (%x) is success", (hresult) => {
    service.fault({ call: "HcnModifyNamespace", hresult });
    operations.detach(namespace, endpoint);
    service.fault({ call: "HcnModifyNamespace", hresult: 0x80004005 });
    expect(failureOf(() => operations.detach(namespace, endpoint))).toMatchObject({ hresult: 0x80004005 });
  });

  test.each(functionNames.filter((name) => !name.startsWith("HcnClose")))(
    "%s fails, and nothing stays open",
    (call) => {
      for (const kind of hcnKinds) put(kind, endpoint);
      put("endpoint", served);
      const addsPolicy = { ResourceType: "Policy", RequestType: "Add", Settings: {} } as const;
      service.fault({ call, hresult: 0x80004005 });
      const failed: unknown[] = [];
      const attempt = (work: () => unknown): void => {
        try {
          work();
        } catch (caught) {
          failed.push(caught instanceof NativeError ? caught.failure : caught);
        }
      };
      for (const kind of hcnKinds) {
        attempt(() => list(kind));
        attempt(() => operations.create(kind, other, settings[kind], kind === "endpoint" ? network : undefined));
        attempt(() => operations.modify(kind, endpoint, kind === "loadBalancer" ? balancerAt(81) : addsPolicy));
        attempt(() => operations.remove(kind, endpoint));
      }
      put("endpoint", endpoint);
      attempt(() => operations.attach(namespace, endpoint));
      attempt(() => operations.hnsCall("GET", "/networks/", undefined));
      // Policies are of networks and endpoints; of a namespace the service takes none.
      const [refused, asked] = [0x803b0015, 0x80004005].map((hresult) =>
        failed.filter((failure) => (failure as { hresult?: number }).hresult === hresult),
      );
      expect(asked?.length).toBeGreaterThan(0);
      expect(asked?.every((failure) => (failure as { call?: string }).call === call)).toBe(true);
      expect([...(asked ?? []), ...(refused ?? [])]).toHaveLength(failed.length);
    },
  );

  test.each([
    ["HcnEnumerateNetworks", "{}", 'HcnEnumerateNetworks answers "{}", wanted an array of identifiers'],
    ["HcnEnumerateNetworks", '["x"]', 'HcnEnumerateNetworks answers "x", wanted a GUID'],
    ["HcnEnumerateNetworks", "<", 'HcnEnumerateNetworks answers "<", wanted JSON'],
  ])("%s answering %j is refused", (_call, text, reason) => {
    native.enumerate = () => text;
    expect(failureOf(() => list("network"))).toMatchObject({ reason });
  });

  test("a document that is none is refused, and its handle closed", () => {
    native.query = () => "[]";
    const reason = 'HcnQueryNetworkProperties answers "[]", wanted an object';
    expect(failureOf(() => operations.find("network", network))).toMatchObject({ reason });
  });
});

describe("V1", () => {
  test("answers its output", () => {
    const asked: string[][] = [];
    native.hnsCall = (...args) => {
      asked.push(args);
      return '{"Success":true,"Output":{"Major":13}}';
    };
    expect(operations.hnsCall("GET", "/globals/version", undefined)).toEqual({ Major: 13 });
    operations.hnsCall("POST", "/networks/", { Name: "é" });
    expect(asked).toEqual([
      ["GET", "/globals/version", ""],
      ["POST", "/networks/", '{"Name":"é"}'],
    ]);
  });

  test.each([
    [
      '{"Success":false,"Error":"The endpoint was not found. ","ErrorCode":2151350274}',
      { hresult: 0x803b0002, serviceText: "The endpoint was not found. " },
    ],
    ['{"Success":false,"ErrorCode":-2143617022}', { hresult: 0x803b0002, serviceText: "" }],
    ['{"Error":"no"}', { hresult: 0, serviceText: "no" }],
    ["", { reason: 'HNSCall answers "", wanted JSON' }],
    ["null", { reason: 'HNSCall answers "null", wanted an object' }],
  ])("an answer %j is a failure", (text, failure) => {
    native.hnsCall = () => text;
    expect(failureOf(() => operations.hnsCall("GET", "/endpoints/x", undefined))).toEqual({
      call: "HNSCall",
      ...failure,
    });
  });

  test("so is a number in place of an answer", () => {
    service.fault({ call: "HNSCall", hresult: 0x803b0013 });
    expect(failureOf(() => operations.hnsCall("POST", "/endpoints/", {}))).toMatchObject({ hresult: 0x803b0013 });
  });
});
