import { type AnyDefinition, loadSync } from "@grpc/proto-loader";
import { describe, expect, test } from "vitest";
import { CniCode } from "../errors.ts";
import * as cni from "./cni-messages.ts";
import * as daemon from "./daemon-services.ts";
import * as ipam from "./ipam-messages.ts";
import * as pipette from "./pipette-messages.ts";
import { cniService, nodeService } from "./services.ts";
import type { Codec } from "./wire.ts";

/** The tables are written by hand; here they are held against the text of the proto files, as protobufjs reads it. */

const cniPackage = "antrea_io.antrea.pkg.apis.cni.v1beta1";
const definitions = loadSync(
  ["cni.proto", "pipette.proto", "health.proto"].map((name) => new URL(name, import.meta.url).pathname),
  { keepCase: true, longs: Number, enums: Number, defaults: true, arrays: true },
);

// biome-ignore lint/suspicious/noExplicitAny: one table for codecs of all types
const codecs: Readonly<Record<string, Codec<any>>> = {
  "google.protobuf.Any": cni.Any,
  [`${cniPackage}.Error`]: cni.CmdError,
  [`${cniPackage}.CniCmdArgs`]: cni.CniCmdArgs,
  [`${cniPackage}.CniCmdRequest`]: cni.CniCmdRequest,
  [`${cniPackage}.CniCmdResponse`]: cni.CniCmdResponse,
  "pipette.v1.Attachment": pipette.Attachment,
  "pipette.v1.Problem": pipette.NodeProblem,
  "pipette.v1.GcRequest": pipette.GcRequest,
  "pipette.v1.GcResponse": pipette.GcResponse,
  "pipette.v1.StatusRequest": pipette.StatusRequest,
  "pipette.v1.StatusResponse": pipette.StatusResponse,
  "pipette.v1.RegistryTrouble": pipette.RegistryTrouble,
  "pipette.v1.PeerCounts": pipette.PeerCounts,
  "pipette.v1.PeerTrouble": pipette.PeerTrouble,
  "pipette.v1.ListNodesRequest": daemon.ListNodesRequest,
  "pipette.v1.RegisteredNode": daemon.RegisteredNode,
  "pipette.v1.NodesPage": daemon.NodesPage,
  "pipette.v1.ListTenantsRequest": daemon.ListTenantsRequest,
  "pipette.v1.Tenant": daemon.TenantMessage,
  "pipette.v1.TenantsPage": daemon.TenantsPage,
  "pipette.v1.Interface": pipette.NodeInterface,
  "pipette.v1.ListInterfacesRequest": pipette.ListInterfacesRequest,
  "pipette.v1.ListInterfacesResponse": pipette.ListInterfacesResponse,
  "pipette.v1.ListPoliciesRequest": daemon.ListPoliciesRequest,
  "pipette.v1.ListPoliciesResponse": daemon.ListPoliciesResponse,
  "pipette.v1.ListServicesRequest": daemon.ListServicesRequest,
  "pipette.v1.BalancedEndpoint": daemon.BalancedEndpoint,
  "pipette.v1.BalancedService": daemon.BalancedService,
  "pipette.v1.TraceServiceRequest": daemon.TraceServiceRequest,
  "pipette.v1.TracedEndpoint": daemon.TracedEndpoint,
  "pipette.v1.TraceServiceResponse": daemon.TraceServiceResponse,
  "pipette.v1.GetDocumentRequest": daemon.GetDocumentRequest,
  "pipette.v1.GetDocumentResponse": daemon.GetDocumentResponse,
  "pipette.v1.LogLevelRequest": daemon.LogLevelRequest,
  "pipette.v1.LogLevelResponse": daemon.LogLevelResponse,
  "pipette.v1.PolicyRule": daemon.PolicyRule,
  "pipette.v1.IsolatedPod": daemon.IsolatedPod,
  "pipette.v1.MendRequest": pipette.MendRequest,
  "pipette.v1.MendResponse": pipette.MendResponse,
  "pipette.v1.Lease": ipam.LeaseMessage,
  "pipette.v1.AllocateRequest": ipam.AllocateRequest,
  "pipette.v1.AllocateResponse": ipam.AllocateResponse,
  "pipette.v1.ReleaseRequest": ipam.OwnerRequest,
  "pipette.v1.ReleaseResponse": ipam.ReleaseResponse,
  "pipette.v1.GetRequest": ipam.OwnerRequest,
  "pipette.v1.GetResponse": ipam.GetResponse,
  "pipette.v1.ListRequest": ipam.ListRequest,
  "pipette.v1.Attachments": ipam.Attachments,
  "pipette.v1.CollectRequest": ipam.CollectRequest,
  "pipette.v1.CheckRequest": ipam.CheckRequest,
  "pipette.v1.Finding": ipam.FindingMessage,
  "pipette.v1.CheckResponse": ipam.CheckResponse,
  "pipette.v1.StatsRequest": ipam.StatsRequest,
  "pipette.v1.StatsResponse": ipam.StatsResponse,
  "pipette.v1.NetworkStats": ipam.NetworkStats,
  "pipette.v1.RangeStats": ipam.RangeStats,
  "grpc.health.v1.HealthCheckRequest": daemon.HealthCheckRequest,
  "grpc.health.v1.HealthCheckResponse": daemon.HealthCheckResponse,
};

interface FieldText {
  readonly name: string;
  readonly label: string;
  readonly type: string;
  readonly typeName: string;
}

/** What proto-loader gives for a message. */
interface MessageText {
  readonly type: { readonly field: readonly FieldText[] };
  serialize(value: object): Uint8Array;
  deserialize(bytes: Uint8Array): object;
}

const isMessage = (definition: AnyDefinition): boolean =>
  "format" in definition && String(definition.format).endsWith(" DescriptorProto");
const isService = (definition: AnyDefinition): boolean => !("format" in definition);
const namesOf = (wanted: (definition: AnyDefinition) => boolean): string[] =>
  Object.keys(definitions).filter((name) => wanted(definitions[name]!));
const textOf = (name: string): MessageText => definitions[name] as unknown as MessageText;
const camelCase = (name: string): string => name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
const fullName = (typeName: string): string =>
  namesOf(isMessage).find((name) => name === typeName || name.endsWith(`.${typeName}`))!;

/** A value of the message, keys as in the text, with something in every field, no two the same. */
function sample(name: string, counter: { next: number }): Record<string, unknown> {
  const one = (field: FieldText): unknown => {
    const n = counter.next++;
    switch (field.type) {
      case "TYPE_STRING":
        return `${field.name} ${n} é 網`;
      case "TYPE_BYTES":
        return new Uint8Array([n, 0, 255, 128]);
      case "TYPE_INT32":
      case "TYPE_ENUM":
        return n + 100;
      case "TYPE_INT64":
        return 2 ** 40 + n;
      case "TYPE_BOOL":
        return true;
      case "TYPE_MESSAGE":
        return sample(fullName(field.typeName), counter);
      default:
        throw new Error(`Cannot make a sample: ${field.name} is ${field.type}, wanted a type that the codec knows`);
    }
  };
  return Object.fromEntries(
    textOf(name).type.field.map((field) => [
      field.name,
      field.label === "LABEL_REPEATED" ? [one(field), one(field), one(field)] : one(field),
    ]),
  );
}

/** Keys as our interfaces have them. */
function renamed(value: unknown): unknown {
  if (value instanceof Uint8Array || typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(renamed);
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [camelCase(key), renamed(inner)]));
}

/** For comparing across implementations: bytes as plain arrays, absent messages as `null`. */
const plain = (value: unknown): unknown =>
  JSON.parse(
    JSON.stringify(value, (_, inner: unknown) => {
      // A Buffer has turned itself into {type, data} by now.
      if (typeof inner === "object" && inner !== null && "data" in inner && "type" in inner) return inner.data;
      return inner instanceof Uint8Array ? Array.from(inner) : inner;
    }),
  );

const withoutNulls = (value: object): object => Object.fromEntries(Object.entries(value).filter(([, v]) => v !== null));

test("every message of the proto files has a codec, and nothing else has", () => {
  expect(Object.keys(codecs).sort()).toEqual(namesOf(isMessage).sort());
});

describe.each(namesOf(isMessage))("%s", (name) => {
  const codec = codecs[name]!;
  const full = sample(name, { next: 1 });
  const ours = renamed(full);

  test("what we write reads the same by the proto text, every field", () => {
    expect(plain(textOf(name).deserialize(codec.encode(ours)))).toEqual(plain(full));
  });

  test("what is written by the proto text reads the same, every field", () => {
    expect(plain(codec.decode(textOf(name).serialize(full)))).toEqual(plain(ours));
  });

  test("both write the same bytes", () => {
    expect(Array.from(codec.encode(ours))).toEqual(Array.from(textOf(name).serialize(full)));
  });

  test("absent fields read as the proto text's defaults", () => {
    const defaults = withoutNulls(textOf(name).deserialize(new Uint8Array(0)));
    expect(plain(codec.decode(new Uint8Array(0)))).toEqual(plain(renamed(defaults)));
  });
});

const services = {
  [`${cniPackage}.Cni`]: cniService,
  "pipette.v1.Node": nodeService,
  "pipette.v1.Ipam": daemon.ipamService,
  "pipette.v1.Registry": daemon.registryService,
  "pipette.v1.Policies": daemon.policyService,
  "pipette.v1.Services": daemon.balancingService,
  "pipette.v1.Documents": daemon.documentsService,
  "grpc.health.v1.Health": daemon.healthService,
};

test("every service and rpc of the proto files is listed with its path, types and kind", () => {
  expect(Object.keys(services).sort()).toEqual(namesOf(isService).sort());
  for (const [name, methods] of Object.entries(services)) {
    const rpcs = Object.entries(definitions[name]!).map(([rpc, definition]) => ({
      name: rpc.charAt(0).toLowerCase() + rpc.slice(1),
      path: definition.path,
      responseStream: definition.responseStream,
      request: definition.requestType.type.name,
      response: definition.responseType.type.name,
    }));
    const packageName = name.slice(0, name.lastIndexOf("."));
    const listed = Object.entries(methods).map(([rpc, method]) => {
      const rpcText = rpcs.find((text) => text.name === rpc)!;
      expect(method.request).toBe(codecs[`${packageName}.${rpcText.request}`]);
      expect(method.response).toBe(codecs[`${packageName}.${rpcText.response}`]);
      return { ...rpcText, name: rpc, path: method.path, responseStream: method.responseStream };
    });
    expect(listed).toEqual(rpcs);
  }
});

test("every error code of the reference system is one of ours", () => {
  const codes = definitions[`${cniPackage}.ErrorCode`] as unknown as { type: { value: { number: number }[] } };
  const ours = new Set<number>(Object.values(CniCode));
  const missing = codes.type.value.map((value) => value.number).filter((code) => code !== 0 && !ours.has(code));
  expect(codes.type.value.length).toBeGreaterThan(10);
  expect(missing).toEqual([]);
});
