import {
  type ApiObject,
  type FieldTable,
  mapIn,
  mapsIn,
  objectMeta,
  type Resource,
  textIn,
} from "../kubernetes/mod.ts";
import { type Ip, parseIp, sameIp } from "../net/ip.ts";
import type { Labels } from "./label-selector.ts";

/** A port of a container that has a name. */
export interface NamedPort {
  readonly name: string;
  readonly protocol: string;
  readonly port: number;
}

/** What policies ask of a pod. */
export interface Pod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly labels: Labels;
  /** Absent: not scheduled yet. */
  readonly node?: string;
  /** Of its primary interface. None: not started yet. */
  readonly ips: readonly Ip[];
  readonly ports: readonly NamedPort[];
  readonly hostNetwork: boolean;
  /** Succeeded or Failed: its addresses may be another pod's by now. */
  readonly finished: boolean;
}

export interface Namespace {
  readonly name: string;
  readonly labels: Labels;
}

/**
 * Whether policies know the pod at all, as target and as peer. One on the host's network has its node's addresses, so
 * that neither its labels nor those that select it say anything about them.
 */
export const isSubject = ({ hostNetwork, finished }: Pod): boolean => !hostNetwork && !finished;

const containerPorts: FieldTable = {
  1: ["name", "string"],
  3: ["containerPort", "integer"],
  4: ["protocol", "string"],
};

const podFields: FieldTable = {
  1: ["metadata", "message", objectMeta],
  2: [
    "spec",
    "message",
    {
      2: ["containers", "messages", { 6: ["ports", "messages", containerPorts] }],
      10: ["nodeName", "string"],
      11: ["hostNetwork", "boolean"],
      20: ["initContainers", "messages", { 6: ["ports", "messages", containerPorts], 24: ["restartPolicy", "string"] }],
    },
  ],
  3: ["status", "message", { 1: ["phase", "string"], 12: ["podIPs", "messages", { 1: ["ip", "string"] }] }],
};

export const pods: Resource<Pod> = {
  version: "v1",
  plural: "pods",
  fields: podFields,
  project: readPod,
  // Most changes of a Pod are of its conditions.
  same: (a, b) =>
    a.node === b.node &&
    a.hostNetwork === b.hostNetwork &&
    a.finished === b.finished &&
    sameLabels(a.labels, b.labels) &&
    sameIps(a.ips, b.ips) &&
    samePorts(a.ports, b.ports),
};

export const namespaces: Resource<Namespace> = {
  version: "v1",
  plural: "namespaces",
  fields: { 1: ["metadata", "message", objectMeta] },
  project: readNamespace,
  same: (a, b) => sameLabels(a.labels, b.labels),
};

/** Reads a Pod (core/v1). */
export function readPod(object: ApiObject): Pod | undefined {
  const [metadata, spec, status] = [mapIn(object, "metadata"), mapIn(object, "spec"), mapIn(object, "status")];
  const [namespace, name] = [textIn(metadata, "namespace"), textIn(metadata, "name")];
  if (namespace === undefined || name === undefined) return undefined;
  const [node, phase] = [textIn(spec, "nodeName"), textIn(status, "phase")];
  return {
    namespace,
    name,
    uid: textIn(metadata, "uid") ?? "",
    labels: labelsOf(metadata),
    ...(node === undefined ? {} : { node }),
    ips: mapsIn(status, "podIPs").flatMap((entry) => parseIp(textIn(entry, "ip") ?? "") ?? []),
    ports: portsOf(spec),
    hostNetwork: spec["hostNetwork"] === true,
    finished: phase === "Succeeded" || phase === "Failed",
  };
}

function readNamespace(object: ApiObject): Namespace | undefined {
  const metadata = mapIn(object, "metadata");
  const name = textIn(metadata, "name");
  return name === undefined ? undefined : { name, labels: labelsOf(metadata) };
}

/** Of the containers, and of init containers that go on running beside them (sidecars). */
function portsOf(spec: ApiObject): NamedPort[] {
  const sidecars = mapsIn(spec, "initContainers").filter((each) => each["restartPolicy"] === "Always");
  return [...mapsIn(spec, "containers"), ...sidecars]
    .flatMap((container) => mapsIn(container, "ports"))
    .flatMap((entry) => {
      const [name, port] = [textIn(entry, "name"), entry["containerPort"]];
      const protocol = textIn(entry, "protocol") ?? "TCP";
      return name === undefined || typeof port !== "number" ? [] : [{ name, protocol, port }];
    });
}

/** A copy with nothing but texts. */
function labelsOf(metadata: ApiObject): Labels {
  const labels: Record<string, string> = {};
  for (const [key, value] of Object.entries(mapIn(metadata, "labels")))
    if (typeof value === "string") labels[key] = value;
  return labels;
}

export const sameIps = (a: readonly Ip[], b: readonly Ip[]): boolean => sameList(a, b, sameIp);

export const samePorts = (a: readonly NamedPort[], b: readonly NamedPort[]): boolean =>
  sameList(a, b, (x, y) => x.name === y.name && x.protocol === y.protocol && x.port === y.port);

function sameLabels(a: Labels, b: Labels): boolean {
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && a[key] === b[key]);
}

const sameList = <T>(a: readonly T[], b: readonly T[], same: (x: T, y: T) => boolean): boolean =>
  a.length === b.length && a.every((each, i) => same(each, b[i] as T));
