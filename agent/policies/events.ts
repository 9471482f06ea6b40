import type { Pod } from "../../shared/cni/types.ts";
import {
  ComputedPod,
  computedPodKind,
  GroupMessage,
  GroupPatch,
  NetworkPolicyMessage,
} from "../../shared/proto/control-plane-messages.ts";
import { WireError } from "../../shared/proto/wire.ts";
import { type KnownPolicy, readPolicy } from "./known-policy.ts";
import { type Member, readMembers } from "./members.ts";

/** `targets`: AppliedToGroups, the pods of this node that policies apply to. `addresses`: AddressGroups, their peers. */
export type GroupKind = "targets" | "addresses";

/** What a controller tells of one object. */
export type PolicyEvent =
  | { readonly t: "policy"; readonly policy: KnownPolicy }
  | { readonly t: "policy gone"; readonly uid: string }
  | { readonly t: "group"; readonly kind: GroupKind; readonly name: string; readonly members: readonly Member[] }
  | {
      readonly t: "group changed";
      readonly kind: GroupKind;
      readonly name: string;
      readonly added: readonly Member[];
      readonly removed: readonly Member[];
    }
  | { readonly t: "group gone"; readonly kind: GroupKind; readonly name: string }
  /** The pod's policies and groups are all known. */
  | { readonly t: "computed"; readonly pod: Pod }
  | { readonly t: "computed gone"; readonly pod: Pod };

const groupKinds: Readonly<Record<string, GroupKind>> = { AppliedToGroup: "targets", AddressGroup: "addresses" };
const patchKinds: Readonly<Record<string, GroupKind>> = {
  AppliedToGroupPatch: "targets",
  AddressGroupPatch: "addresses",
};

/**
 * @param type ADDED, MODIFIED or DELETED
 * @throws {WireError} for what no controller says
 */
export function readEvent(type: string, kind: string, raw: Uint8Array): PolicyEvent {
  const isGone = type === "DELETED";
  if (!isGone && type !== "ADDED" && type !== "MODIFIED")
    throw new WireError(`Cannot read an event: it is "${type}" of a ${kind}`);
  if (kind === "NetworkPolicy") {
    if (!isGone) return { t: "policy", policy: readPolicy(raw) };
    return { t: "policy gone", uid: nameOf(NetworkPolicyMessage.decode(raw), kind) };
  }
  if (kind === computedPodKind) {
    const { namespace, name, uid } = ComputedPod.decode(raw).metadata;
    if (namespace === "" || name === "") throw new WireError(`Cannot read a ${kind}: it has no name`);
    return { t: isGone ? "computed gone" : "computed", pod: { namespace, name, uid } };
  }
  const group = groupKinds[kind];
  if (group !== undefined) {
    const message = GroupMessage.decode(raw);
    const name = nameOf(message, kind);
    return isGone
      ? { t: "group gone", kind: group, name }
      : { t: "group", kind: group, name, members: readMembers(message.members) };
  }
  const patched = patchKinds[kind];
  if (patched === undefined || type !== "MODIFIED")
    throw new WireError(`Cannot read an event: it is "${type}" of a ${kind}`);
  const patch = GroupPatch.decode(raw);
  const [added, removed] = [readMembers(patch.added), readMembers(patch.removed)];
  return { t: "group changed", kind: patched, name: nameOf(patch, kind), added, removed };
}

function nameOf({ metadata }: { readonly metadata: { readonly name: string } }, kind: string): string {
  if (metadata.name !== "") return metadata.name;
  throw new WireError(`Cannot read a ${kind}: it has no name`);
}
