import {
  bytes,
  type Field,
  flag,
  int32,
  int64,
  type MessageCodec,
  type MessageOf,
  message,
  nested,
  repeated,
  text,
  texts,
  WireError,
} from "./wire.ts";

/**
 * What a controller of network policies tells agents: `controlplane.antrea.io/v1beta2` and the parts of `meta/v1` that it
 * uses, by the numbers of their generated.proto. As far as NetworkPolicies of Kubernetes need it.
 */

/** Fields that Go's types for Kubernetes write also where they are empty: the bytes are to be the same. */
const writtenText = (number: number): Field<string> => ({
  ...text(number),
  write: (out, value) => out.delimited(number, new TextEncoder().encode(value)),
});

const writtenInteger = (field: Field<number>): Field<number> => ({
  ...field,
  write: (out, value) => out.integer(field.number, value),
});

const writtenFlag = (number: number): Field<boolean> => ({
  ...flag(number),
  write: (out, value) => out.integer(number, value ? 1 : 0),
});

const writtenMessage = <T extends object>(number: number, codec: MessageCodec<T>): Field<T> => ({
  number,
  wireType: 2,
  absent: () => codec.absent(),
  write: (out, value) => out.delimited(number, codec.encode(value)),
  read: (input, previous) => codec.merge(previous, input.delimited()),
});

/** `repeated bytes`. What is read are views into the message. */
const byteStrings = (number: number): Field<readonly Uint8Array[]> => ({
  number,
  wireType: 2,
  absent: () => [],
  write: (out, values) => {
    for (const value of values) out.delimited(number, value);
  },
  read: (input, previous) => [...previous, input.delimited()],
});

/** What no NetworkPolicy of Kubernetes has, and we do not write: read as whether it is there. */
const foreign = (number: number, wireType: 0 | 2): Field<true | undefined> => ({
  number,
  wireType,
  absent: () => undefined,
  write: () => undefined,
  read: (input) => {
    input.skip(number, wireType, 0);
    return true;
  },
});

const Time = message({ seconds: int64(1), nanoseconds: int32(2) });

export const ObjectMeta = message({
  name: writtenText(1),
  generateName: writtenText(2),
  namespace: writtenText(3),
  selfLink: writtenText(4),
  uid: writtenText(5),
  resourceVersion: writtenText(6),
  generation: writtenInteger(int64(7)),
  creationTimestamp: writtenMessage(8, Time),
  annotations: repeated(12, message({ key: writtenText(1), value: writtenText(2) })),
});
export type ObjectMeta = MessageOf<typeof ObjectMeta>;

const PodReference = message({ name: writtenText(1), namespace: writtenText(2) });

const NamedPort = message({ port: writtenInteger(int32(1)), name: writtenText(2), protocol: writtenText(3) });

export const GroupMember = message({
  pod: nested(1, PodReference),
  /** 16 bytes each; IPv4 addresses as IPv4-mapped ones. */
  ips: byteStrings(3),
  ports: repeated(4, NamedPort),
});
export type GroupMember = MessageOf<typeof GroupMember>;

/** AddressGroup and AppliedToGroup. */
export const GroupMessage = message({ metadata: writtenMessage(1, ObjectMeta), members: repeated(2, GroupMember) });
export type GroupMessage = MessageOf<typeof GroupMessage>;

/** AddressGroupPatch and AppliedToGroupPatch. */
export const GroupPatch = message({
  metadata: writtenMessage(1, ObjectMeta),
  added: repeated(2, GroupMember),
  removed: repeated(3, GroupMember),
});
export type GroupPatch = MessageOf<typeof GroupPatch>;

const IpNet = message({ ip: bytes(1), prefixLength: writtenInteger(int32(2)) });

const IpBlock = message({ cidr: writtenMessage(1, IpNet), except: repeated(2, IpNet) });

const IntOrString = message({
  /** 0: a number, 1: a text. */
  type: writtenInteger(int64(1)),
  number: writtenInteger(int32(2)),
  text: writtenText(3),
});

const Service = message({
  protocol: text(1),
  port: nested(2, IntOrString),
  endPort: int32(3),
  groupAddress: writtenText(7),
  srcPort: foreign(8, 0),
  srcEndPort: foreign(9, 0),
});

const Peer = message({
  addressGroups: texts(1),
  ipBlocks: repeated(2, IpBlock),
  fqdns: foreign(3, 2),
  toServices: foreign(4, 2),
  labelIdentities: foreign(5, 0),
});

const Rule = message({
  /** "In" or "Out". */
  direction: writtenText(1),
  from: writtenMessage(2, Peer),
  to: writtenMessage(3, Peer),
  services: repeated(4, Service),
  priority: writtenInteger(int32(5)),
  /** "Allow"; empty for a rule that only isolates. */
  action: text(6),
  enableLogging: writtenFlag(7),
  appliedToGroups: texts(8),
  name: writtenText(9),
  l7Protocols: foreign(10, 2),
  logLabel: writtenText(11),
});

export const PolicyReference = message({
  type: writtenText(1),
  namespace: writtenText(2),
  name: writtenText(3),
  uid: writtenText(4),
});

export const NetworkPolicyMessage = message({
  metadata: writtenMessage(1, ObjectMeta),
  rules: repeated(2, Rule),
  appliedToGroups: texts(3),
  tierPriority: foreign(5, 0),
  sourceRef: nested(6, PolicyReference),
});
export type NetworkPolicyMessage = MessageOf<typeof NetworkPolicyMessage>;

const NodeStatus = message({
  nodeName: writtenText(1),
  generation: writtenInteger(int64(2)),
  realizationFailure: writtenFlag(3),
  message: writtenText(4),
});

const TypeMeta = message({ apiVersion: writtenText(1), kind: writtenText(2) });

/** `runtime.Unknown`: an object by itself, after four bytes that announce it. */
const Envelope = message({
  typeMeta: writtenMessage(1, TypeMeta),
  raw: bytes(2),
  contentEncoding: writtenText(3),
  contentType: writtenText(4),
});

const magic = [0x6b, 0x38, 0x73, 0x00];

/** Groups and versions of the API: Antrea's own, and what only our controllers serve. */
export const antreaVersion = "controlplane.antrea.io/v1beta2";
export const pipetteVersion = "controlplane.pipette.io/v1";

export const apiVersionOf = (kind: string): string => (kind === computedPodKind ? pipetteVersion : antreaVersion);

/** An object of this API by itself, as answers and events have it. */
export function encodeObject(kind: string, raw: Uint8Array): Uint8Array {
  const typeMeta = { apiVersion: apiVersionOf(kind), kind };
  const envelope = Envelope.encode({ typeMeta, raw, contentEncoding: "", contentType: "" });
  const object = new Uint8Array(magic.length + envelope.length);
  object.set(magic);
  object.set(envelope, magic.length);
  return object;
}

/** @throws {WireError} for bytes that are no object of this API */
export function decodeObject(object: Uint8Array): { readonly kind: string; readonly raw: Uint8Array } {
  if (magic.some((byte, i) => object[i] !== byte))
    throw new WireError("Cannot read an object: it does not begin as one of Kubernetes");
  const { typeMeta, raw } = Envelope.decode(object.subarray(magic.length));
  const apiVersion = apiVersionOf(typeMeta.kind);
  if (typeMeta.apiVersion !== apiVersion)
    throw new WireError(`Cannot read an object: it is of "${typeMeta.apiVersion}", wanted "${apiVersion}"`);
  // Every object has at least metadata.
  if (raw.length === 0) throw new WireError(`Cannot read an object: the ${typeMeta.kind} in it is empty`);
  return { kind: typeMeta.kind, raw };
}

const WatchEventMessage = message({ type: writtenText(1), object: writtenMessage(2, message({ raw: bytes(1) })) });

/** One event of a watch, without the length in front. @throws {WireError} */
export function decodeWatchEvent(event: Uint8Array): { readonly type: string; readonly object: Uint8Array } {
  const { type, object } = WatchEventMessage.decode(event);
  return { type, object: object.raw };
}

export type WatchEventType = "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "ERROR";

const lengthBytes = 4;

/** One event of a watch, with its length in front. @param object as `encodeObject` makes it */
export function encodeWatchFrame(type: WatchEventType, object: Uint8Array): Uint8Array {
  const event = WatchEventMessage.encode({ type, object: { raw: object } });
  const frame = new Uint8Array(lengthBytes + event.length);
  new DataView(frame.buffer).setUint32(0, event.length);
  frame.set(event, lengthBytes);
  return frame;
}

/**
 * A pod of the node that the computation knows: all policies and groups that it takes part in came before it on the
 * same watch. Nothing but its namespace, name and uid.
 */
export const ComputedPod = message({ metadata: writtenMessage(1, ObjectMeta) });
export type ComputedPod = MessageOf<typeof ComputedPod>;
export const computedPodKind = "ComputedPod";

/** Of the bookmark that ends the initial set: "true" where it is what an earlier process of the controller had computed. */
export const staleAnnotation = "controlplane.pipette.io/stale";

/** How far nodes enforce a policy; its name is the policy's uid. */
export const NetworkPolicyStatus = message({ metadata: writtenMessage(1, ObjectMeta), nodes: repeated(2, NodeStatus) });
export type NetworkPolicyStatus = MessageOf<typeof NetworkPolicyStatus>;
