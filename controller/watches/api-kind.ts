import {
  apiVersionOf,
  ComputedPod,
  computedPodKind,
  encodeObject,
  type GroupMember,
  GroupMessage,
  GroupPatch,
  NetworkPolicyMessage,
  type ObjectMeta,
} from "../../shared/proto/control-plane-messages.ts";
import type { Codec } from "../../shared/proto/wire.ts";

export type Encoding = "protobuf" | "json";

/** A kind of objects of the API, in both of its encodings. */
export interface ApiKind<M> {
  readonly name: string;
  readonly codec: Codec<M>;
  /** In the shape that Go's types have in JSON, but for kind and version. */
  readonly json: (message: M) => object;
}

/** An object by itself. */
export function objectBytes<M>(kind: ApiKind<M>, message: M, encoding: Encoding): Uint8Array {
  if (encoding === "protobuf") return encodeObject(kind.name, kind.codec.encode(message));
  return new TextEncoder().encode(JSON.stringify(jsonObject(kind, message)));
}

export const jsonObject = <M>(kind: ApiKind<M>, message: M): object => ({
  kind: kind.name,
  apiVersion: apiVersionOf(kind.name),
  ...kind.json(message),
});

type Rule = NetworkPolicyMessage["rules"][number];
type Net = Rule["from"]["ipBlocks"][number]["cidr"];

const metadataJson = ({ name, namespace, uid, resourceVersion, generation, annotations }: ObjectMeta): object => ({
  ...(name === "" ? {} : { name }),
  ...(namespace === "" ? {} : { namespace }),
  ...(uid === "" ? {} : { uid }),
  ...(resourceVersion === "" ? {} : { resourceVersion }),
  ...(generation === 0 ? {} : { generation }),
  creationTimestamp: null,
  ...(annotations.length === 0 ? {} : { annotations: Object.fromEntries(annotations.map((a) => [a.key, a.value])) }),
});

const netJson = ({ ip, prefixLength }: Net): object => ({ ip: ip.toBase64(), prefixLength });

const peerJson = ({ addressGroups, ipBlocks }: Rule["from"]): object => ({
  ...(addressGroups.length === 0 ? {} : { addressGroups }),
  ...(ipBlocks.length === 0
    ? {}
    : { ipBlocks: ipBlocks.map(({ cidr, except }) => ({ cidr: netJson(cidr), except: except.map(netJson) })) }),
});

const portJson = ({ protocol, port, endPort }: Rule["services"][number]): object => ({
  ...(protocol === "" ? {} : { protocol }),
  ...(port === undefined ? {} : { port: port.type === 0 ? port.number : port.text }),
  ...(endPort === 0 ? {} : { endPort }),
});

const ruleJson = ({ direction, from, to, services, priority, action, enableLogging, name }: Rule): object => ({
  direction,
  from: peerJson(from),
  to: peerJson(to),
  ...(services.length === 0 ? {} : { services: services.map(portJson) }),
  ...(priority === 0 ? {} : { priority }),
  ...(action === "" ? {} : { action }),
  enableLogging,
  ...(name === "" ? {} : { name }),
});

const memberJson = ({ pod, ips, ports }: GroupMember): object => ({
  ...(pod === undefined ? {} : { pod }),
  ...(ips.length === 0 ? {} : { ips: ips.map((ip) => ip.toBase64()) }),
  ...(ports.length === 0 ? {} : { ports }),
});

export const networkPolicyKind: ApiKind<NetworkPolicyMessage> = {
  name: "NetworkPolicy",
  codec: NetworkPolicyMessage,
  json: ({ metadata, rules, appliedToGroups, sourceRef }) => ({
    metadata: metadataJson(metadata),
    ...(rules.length === 0 ? {} : { rules: rules.map(ruleJson) }),
    ...(appliedToGroups.length === 0 ? {} : { appliedToGroups }),
    ...(sourceRef === undefined ? {} : { sourceRef }),
  }),
};

const groupKind = (name: string): ApiKind<GroupMessage> => ({
  name,
  codec: GroupMessage,
  json: ({ metadata, members }) => ({
    metadata: metadataJson(metadata),
    ...(members.length === 0 ? {} : { groupMembers: members.map(memberJson) }),
  }),
});

/** Of these there are none: a bookmark alone, of which nothing but its metadata is encoded. */
export const egressGroupKind = groupKind("EgressGroup");
export const supportBundleCollectionKind = groupKind("SupportBundleCollection");

const patchKind = (name: string): ApiKind<GroupPatch> => ({
  name,
  codec: GroupPatch,
  json: ({ metadata, added, removed }) => ({
    metadata: metadataJson(metadata),
    ...(added.length === 0 ? {} : { addedGroupMembers: added.map(memberJson) }),
    ...(removed.length === 0 ? {} : { removedGroupMembers: removed.map(memberJson) }),
  }),
});

export const addressGroupKind = groupKind("AddressGroup");
export const addressGroupPatchKind = patchKind("AddressGroupPatch");
export const appliedToGroupKind = groupKind("AppliedToGroup");
export const appliedToGroupPatchKind = patchKind("AppliedToGroupPatch");

export const podMarkKind: ApiKind<ComputedPod> = {
  name: computedPodKind,
  codec: ComputedPod,
  json: ({ metadata }) => ({ metadata: metadataJson(metadata) }),
};

/** JSON events are one on each line. */
export function jsonLine(type: string, object: object): Uint8Array {
  return new TextEncoder().encode(`${JSON.stringify({ type, object })}\n`);
}
