import {
  type CallsDocument,
  documentVersion,
  type FindingsDocument,
  maxRows,
  type PeersDocument,
} from "../../shared/documents/mod.ts";
import { GrpcCode, RpcError } from "../../shared/rpc/rpc-error.ts";
import { listNodes } from "../cluster/listing.ts";
import { textOfNode } from "../cluster/node-text.ts";
import type { CallRecord } from "../metrics/call-record.ts";
import { cut, namedPod, podKeys, type ViewSources } from "./view-sources.ts";

/** @throws {RpcError} where nothing can look */
export async function findingsView({ examine, node }: ViewSources): Promise<FindingsDocument> {
  if (examine === undefined)
    throw new RpcError(GrpcCode.failedPrecondition, "Cannot look at the node: this agent has no doctor");
  const { findings, ...counted } = await examine();
  const { kept, omitted } = cut(findings, maxRows);
  return { kind: "findings", version: documentVersion, node, ...counted, findings: kept, omitted };
}

/** @param name of a pod, as in `podsView` */
export function callsView({ context, node }: ViewSources, name: string): CallsDocument {
  const isNamed = namedPod(name);
  const records = context.calls
    .list()
    .filter(({ pod }) => isNamed(pod))
    .toSorted((a, b) => b.beganAtMs - a.beganAtMs);
  const { kept, omitted } = cut(records, maxRows);
  return { kind: "calls", version: documentVersion, node, calls: kept.map(callRow), omitted };
}

const callRow = (call: CallRecord): CallsDocument["calls"][number] => ({
  ...{ verb: call.verb, network: call.network, containerId: call.sandbox, ifname: call.ifname },
  ...podKeys(call.pod === undefined ? undefined : { ...call.pod, uid: "" }),
  ...{ beganAtMs: call.beganAtMs, tookMicros: microsOf(call.durationMs), code: call.code },
  ...(call.message === "" ? {} : { message: call.message }),
  ...(call.failedIn === undefined ? {} : { failedIn: call.failedIn }),
  ...(call.times > 1 ? { times: call.times, firstAtMs: call.firstAtMs } : {}),
  phases: call.phases.map(({ phase, ms }) => ({ phase, tookMicros: microsOf(ms) })),
});

/** A clock in steps may run backwards. */
const microsOf = (ms: number): number => Math.max(0, Math.round(ms * 1000));

/** @throws {CniError} 11 where the registry does not answer */
export async function peersView({ registry, node, probes: probesOf }: ViewSources): Promise<PeersDocument> {
  const head = { kind: "peers", version: documentVersion, node } as const;
  const probing = probesOf();
  if (registry === undefined) return { ...head, registry: "", peers: [], omitted: 0 };
  const { name, nodes } = await listNodes(registry, { rights: false });
  const { kept, omitted } = cut(
    nodes.toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    maxRows,
  );
  const peers = kept.map(({ state, problem, ...peer }) => {
    const { uid: _, ...text } = textOfNode(peer);
    const probes = probing?.of(peer.name) ?? [];
    return {
      ...{ ...text, self: peer.name === node, state },
      ...(problem === undefined ? {} : { problem }),
      ...(probes.length === 0 ? {} : { probes }),
    };
  });
  return { ...head, registry: name, ...(probing === undefined ? {} : { probing: probing.about }), peers, omitted };
}
