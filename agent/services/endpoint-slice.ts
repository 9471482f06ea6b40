import {
  type ApiObject,
  type FieldTable,
  listIn,
  mapIn,
  mapsIn,
  objectMeta,
  type Resource,
  textIn,
} from "../../shared/kubernetes/mod.ts";
import { type Family, type Ip, parseIp } from "../../shared/net/ip.ts";
import type { ServicePort } from "../datapath/services.ts";
import { isHostAddress, isPort, protocolOf } from "./service-object.ts";

/** An EndpointSlice (discovery.k8s.io/v1): some of those who serve a service, and the ports at which they do. */
export interface EndpointSlice {
  readonly namespace: string;
  readonly name: string;
  /** In the same namespace. */
  readonly service: string;
  readonly family: Family;
  readonly ports: readonly SlicePort[];
  readonly endpoints: readonly SliceEndpoint[];
  /** When the pod or the service changed for which the slice was written, as its controller says. Milliseconds since 1970. */
  readonly triggeredAtMs?: number;
}

export interface SlicePort {
  readonly name: string;
  readonly protocol: ServicePort["protocol"];
  /** Of the pods: a target port's name is a number by then, and may be another in another slice. */
  readonly port: number;
}

export interface SliceEndpoint {
  readonly ip: Ip;
  /** Of this node. */
  readonly isLocal: boolean;
  /**
   * `ready`: takes new connections, also while it terminates where the service publishes what is not ready. `draining`:
   * terminates and still serves. Others are not kept.
   */
  readonly state: "ready" | "draining";
  /** Whether it is meant for this node; absent: it has no hint about nodes. */
  readonly forThisNode?: boolean;
  /** Zones that it is meant for; absent: it has no such hint. */
  readonly zones?: readonly string[];
}

/** The service that a slice belongs to. */
const serviceNameLabel = "kubernetes.io/service-name";
/** Endpoints API's name; an RFC 3339 time. */
const triggerAnnotation = "endpoints.kubernetes.io/last-change-trigger-time";
/** Slices of services that this node may have something to do for. */
export const proxiedSlices =
  "!service.kubernetes.io/headless,!service.kubernetes.io/service-proxy-name,kubernetes.io/service-name";

/** What the API server takes in one slice. */
const maxEndpoints = 1_000;
const maxPorts = 1_000;
/** Of one endpoint. The API server takes eight zones. */
const maxHints = 64;

const names: FieldTable = { 1: ["name", "string"] };

const fields: FieldTable = {
  1: ["metadata", "message", objectMeta],
  2: [
    "endpoints",
    "messages",
    {
      1: ["addresses", "strings"],
      2: [
        "conditions",
        "message",
        { 1: ["ready", "boolean"], 2: ["serving", "boolean"], 3: ["terminating", "boolean"] },
      ],
      6: ["nodeName", "string"],
      8: ["hints", "message", { 1: ["forZones", "messages", names], 2: ["forNodes", "messages", names] }],
    },
  ],
  3: ["ports", "messages", { 1: ["name", "string"], 2: ["protocol", "string"], 3: ["port", "integer"] }],
  4: ["addressType", "string"],
};

/** @param node whose slices' endpoints are local */
export const endpointSlices = (node: string): Resource<EndpointSlice> => ({
  group: "discovery.k8s.io",
  version: "v1",
  plural: "endpointslices",
  fields,
  project: (object) => readSlice(object, node),
  // Versions that bring another time and nothing else are no news.
  same: ({ triggeredAtMs: _, ...a }, { triggeredAtMs: __, ...b }) => Bun.deepEquals(a, b),
});

const families: Readonly<Record<string, Family>> = Object.assign(Object.create(null), { IPv4: 4, IPv6: 6 });

/** Reads an EndpointSlice. What is not understood of it serves nobody; slices of names (FQDN) are none. */
export function readSlice(object: ApiObject, node: string): EndpointSlice | undefined {
  const metadata = mapIn(object, "metadata");
  const [namespace, name] = [textIn(metadata, "namespace"), textIn(metadata, "name")];
  const service = textIn(mapIn(metadata, "labels"), serviceNameLabel);
  const family = families[textIn(object, "addressType") ?? ""];
  if (namespace === undefined || name === undefined || service === undefined || family === undefined) return undefined;
  const ports = mapsIn(object, "ports").slice(0, maxPorts).flatMap(readPort);
  const endpoints = mapsIn(object, "endpoints")
    .slice(0, maxEndpoints)
    .flatMap((entry) => readEndpoint(entry, family, node));
  const triggeredAtMs = Date.parse(textIn(mapIn(metadata, "annotations"), triggerAnnotation) ?? "");
  const triggered = Number.isFinite(triggeredAtMs) ? { triggeredAtMs } : {};
  return { namespace, name, service, family, ports, endpoints, ...triggered };
}

/** A port without a number stands for all ports, which no service port can lead to. */
function readPort(entry: ApiObject): SlicePort[] {
  const [protocol, { port }] = [protocolOf(entry), entry];
  return protocol === undefined || !isPort(port) ? [] : [{ name: textIn(entry, "name") ?? "", protocol, port }];
}

function readEndpoint(entry: ApiObject, family: Family, node: string): SliceEndpoint[] {
  const state = stateOf(mapIn(entry, "conditions"));
  // More than one address stand for the same thing, and nobody writes them.
  const [address] = listIn(entry, "addresses");
  const ip = typeof address === "string" ? parseIp(address) : undefined;
  if (state === undefined || ip?.family !== family || !isHostAddress(ip)) return [];
  const hints = mapIn(entry, "hints");
  const [nodes, zones] = [namesIn(hints, "forNodes"), namesIn(hints, "forZones")];
  return [
    {
      ip,
      isLocal: textIn(entry, "nodeName") === node,
      state,
      ...(nodes.length === 0 ? {} : { forThisNode: nodes.includes(node) }),
      ...(zones.length === 0 ? {} : { zones }),
    },
  ];
}

function stateOf({ ready, serving, terminating }: ApiObject): SliceEndpoint["state"] | undefined {
  // What is not said counts as yes.
  if (ready !== false) return "ready";
  return terminating === true && serving !== false ? "draining" : undefined;
}

const namesIn = (hints: ApiObject, key: string): string[] =>
  mapsIn(hints, key)
    .slice(0, maxHints)
    .flatMap((entry) => textIn(entry, "name") ?? []);
