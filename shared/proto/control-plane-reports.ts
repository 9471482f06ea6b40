import { ObjectMeta, PolicyReference } from "./control-plane-messages.ts";
import { int32, int64, type MessageCodec, message, nested, repeated, text } from "./wire.ts";

/** What agents tell a controller of network policies, and what operators ask it; as `control-plane-messages.ts`. */

const TrafficStats = message({ packets: int64(1), bytes: int64(2), sessions: int64(3) });

const NetworkPolicyStats = message({
  /** Of an agent's nothing but the uid. */
  networkPolicy: nested(1, PolicyReference),
  /** Since the last report that was accepted. */
  trafficStats: nested(2, TrafficStats),
});

/** Its name is the node's. */
export const NodeStatsSummary = message({
  metadata: nested(1, ObjectMeta),
  networkPolicies: repeated(2, NetworkPolicyStats),
});

const PodReference = message({ name: text(1), namespace: text(2) });
const Entity = message({ pod: nested(1, PodReference) });

/** May one pod reach the other, and by which rule. */
export const NetworkPolicyEvaluation = message({
  request: nested(1, message({ source: nested(1, Entity), destination: nested(2, Entity) })),
  response: nested(
    2,
    message({
      networkPolicy: nested(1, PolicyReference),
      /** -1: no rule allows it, and this policy isolates. */
      ruleIndex: int32(2),
      rule: nested(3, message({ direction: text(1), name: text(2), action: text(3) })),
    }),
  ),
  metadata: nested(3, ObjectMeta),
});

const ListMeta = message({ resourceVersion: text(2) });

/** Objects of one kind. */
export const listOf = <T extends object>(item: MessageCodec<T>) =>
  message({ metadata: nested(1, ListMeta), items: repeated(2, item) });
