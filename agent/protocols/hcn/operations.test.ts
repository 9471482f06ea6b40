import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { functionNames, hcnKinds, NativeError } from "./native.ts";
import { NativeInMemory } from "./native-in-memory.ts";
import { HcnOperations } from "./operations.ts";

const network = "6f1d3f0e-7c55-4a17-9f63-0a5c3e1d2b4a";
const namespace = "5e5e5e5e-7c55-4a17-9f63-0a5c3e1d2b4a";
const endpoint = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9";
const other = "1a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9";

let native: NativeInMemory;
let operations: HcnOperations;

beforeEach(() => {
  native = new NativeInMemory();
  operations = new HcnOperations(native);
  native.put("network", network);
  native.put("namespace", namespace);
});

// Whatever happened: nothing stays open.
afterEach(() => expect(native.handles).toEqual(new Map()));

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
    expect(made).toEqual({ ID: endpoint.toUpperCase(), SchemaVersion, Name: "web", HostComputeNetwork: network });
    expect(native.calls.slice(0, 3)).toEqual(["HcnOpenNetwork", "HcnCreateEndpoint", "HcnQueryEndpointProperties"]);
  });

  test("without an identifier HNS chooses one", () => {
    const made = operations.create("network", undefined, {});
    expect(made["ID"]).toBe("00000000-0000-0000-0000-000000000000");
  });

  test.each(["HcnOpenEndpoint", "HcnQueryEndpointProperties"])(
    "what vanishes before %s is left out of a list",
    (call) => {
      for (const id of [endpoint, other]) native.put("endpoint", id);
      let seen = 0;
      native.before = (each) => {
        if (each === call && ++seen === 1) native.documents.delete(`endpoint ${endpoint}`);
      };
      expect(operations.list("endpoint")).toEqual([{ ID: other.toUpperCase() }]);
    },
  );

  test("any other failure of one object fails the list: an address could be overlooked", () => {
    native.put("endpoint", endpoint);
    native.fail("HcnQueryEndpointProperties", { hresult: 0x80004005 });
    expect(failureOf(() => operations.list("endpoint"))).toMatchObject({ hresult: 0x80004005 });
  });

  test("what is not there is not found, and its removal is success", () => {
    for (const kind of hcnKinds) {
      expect(operations.find(kind, endpoint)).toBeUndefined();
      operations.remove(kind, endpoint);
    }
    native.put("endpoint", endpoint);
    native.fail("HcnDeleteEndpoint", { hresult: 0x803b002c });
    expect(failureOf(() => operations.remove("endpoint", endpoint))).toMatchObject({ hresult: 0x803b002c });
  });

  test.each([0x803b0014, 0x803b002b])(
    "attached already (%x): success where it is in that namespace, else not",
    (hresult) => {
      native.put("endpoint", endpoint);
      operations.attach(namespace, endpoint);
      native.fail("HcnModifyNamespace", { hresult });
      operations.attach(namespace, endpoint);
      native.put("endpoint", endpoint, { HostComputeNamespace: other });
      expect(failureOf(() => operations.attach(namespace, endpoint))).toMatchObject({ hresult });
      // Where the namespace alone says it.
      native.put("endpoint", endpoint);
      native.put("namespace", namespace, { Resources: [{ Type: "Endpoint", Data: { Id: endpoint.toUpperCase() } }] });
      operations.attach(namespace, endpoint);
    },
  );

  test.each([0x803b0001, 0x803b0002, 0x80070490, 0x803b0034])("detached already (%x) is success", (hresult) => {
    native.fail("HcnModifyNamespace", { hresult });
    operations.detach(namespace, endpoint);
    native.fail("HcnModifyNamespace", { hresult: 0x80004005 });
    expect(failureOf(() => operations.detach(namespace, endpoint))).toMatchObject({ hresult: 0x80004005 });
  });

  test.each(functionNames.filter((name) => !name.startsWith("HcnClose")))(
    "%s fails, and nothing stays open",
    (call) => {
      for (const kind of hcnKinds) native.put(kind, endpoint);
      native.put("endpoint", endpoint);
      native.fail(call, { hresult: 0x80004005 });
      const failed: unknown[] = [];
      const attempt = (work: () => unknown): void => {
        try {
          work();
        } catch (caught) {
          failed.push(caught instanceof NativeError ? caught.failure : caught);
        }
      };
      for (const kind of hcnKinds) {
        attempt(() => operations.list(kind));
        attempt(() => operations.create(kind, other, {}, kind === "endpoint" ? network : undefined));
        attempt(() => operations.modify(kind, endpoint, { ResourceType: "Policy", RequestType: "Add", Settings: {} }));
        attempt(() => operations.remove(kind, endpoint));
      }
      attempt(() => operations.attach(namespace, endpoint));
      attempt(() => operations.hnsCall("GET", "/networks/", undefined));
      expect(failed.length).toBeGreaterThan(0);
      for (const failure of failed) expect(failure).toEqual({ call, hresult: 0x80004005 });
    },
  );

  test.each([
    ["HcnEnumerateNetworks", "{}", 'HcnEnumerateNetworks answers "{}", wanted an array of identifiers'],
    ["HcnEnumerateNetworks", '["x"]', 'HcnEnumerateNetworks answers "x", wanted a GUID'],
    ["HcnEnumerateNetworks", "<", 'HcnEnumerateNetworks answers "<", wanted JSON'],
  ])("%s answering %j is refused", (_call, text, reason) => {
    native.enumerate = () => text;
    expect(failureOf(() => operations.list("network"))).toMatchObject({ reason });
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
    native.onHnsCall = (...args) => {
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
    native.onHnsCall = () => text;
    expect(failureOf(() => operations.hnsCall("GET", "/endpoints/x", undefined))).toEqual({
      call: "HNSCall",
      ...failure,
    });
  });

  test("so is a number in place of an answer", () => {
    native.fail("HNSCall", { hresult: 0x803b0013 });
    expect(failureOf(() => operations.hnsCall("POST", "/endpoints/", {}))).toMatchObject({ hresult: 0x803b0013 });
  });
});
