import type { Reach } from "../../shared/access/mod.ts";
import { GroupMessage, NetworkPolicyMessage } from "../../shared/proto/control-plane-messages.ts";
import { listOf } from "../../shared/proto/control-plane-reports.ts";
import type { MessageCodec } from "../../shared/proto/wire.ts";
import {
  addressMember,
  groupMessage,
  type NodeState,
  type PolicyComputation,
  policyMessage,
  targetMember,
} from "../policy/mod.ts";
import {
  type ApiKind,
  addressGroupKind,
  appliedToGroupKind,
  egressGroupKind,
  networkPolicyKind,
  supportBundleCollectionKind,
  type WatchedResource,
} from "../watches/mod.ts";

/** The objects that there are, for those who ask for them once. */
export interface Collection<M> {
  readonly kind: ApiKind<M>;
  readonly list: ApiKind<{
    readonly metadata?: { readonly resourceVersion: string } | undefined;
    readonly items: readonly M[];
  }>;
  messages(state: NodeState): Iterable<M>;
}

/** What somebody may see. */
export function visibleState(computation: PolicyComputation, reach: Reach): NodeState {
  if (reach.t === "node") return computation.onNode(reach.node);
  if (reach.t === "all nodes") return computation.everywhere();
  return { policies: [], appliedToGroups: [], addressGroups: [], pods: [] };
}

function collectionOf<M extends object>(
  kind: ApiKind<M>,
  codec: MessageCodec<M>,
  messages: Collection<M>["messages"],
): Collection<M> {
  return {
    kind,
    list: {
      name: `${kind.name}List`,
      codec: listOf(codec) as Collection<M>["list"]["codec"],
      json: ({ metadata, items }) => ({ metadata, items: items.map((item) => kind.json(item)) }),
    },
    messages,
  };
}

export const collections: Readonly<Record<WatchedResource, Collection<never>>> = {
  networkpolicies: collectionOf(networkPolicyKind, NetworkPolicyMessage, ({ policies }) => policies.map(policyMessage)),
  addressgroups: collectionOf(addressGroupKind, GroupMessage, ({ addressGroups }) =>
    addressGroups.map((group) => groupMessage(group.name, group.members(), addressMember)),
  ),
  appliedtogroups: collectionOf(appliedToGroupKind, GroupMessage, ({ appliedToGroups }) =>
    appliedToGroups.map(({ group, members }) => groupMessage(group.name, members, targetMember)),
  ),
  egressgroups: collectionOf(egressGroupKind, GroupMessage, () => []),
  supportbundlecollections: collectionOf(supportBundleCollectionKind, GroupMessage, () => []),
} as unknown as Readonly<Record<WatchedResource, Collection<never>>>;
