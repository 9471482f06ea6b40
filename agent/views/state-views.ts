import {
  type CallsDocument,
  type DocumentCall,
  documentVersion,
  type FindingsDocument,
  maxRows,
  type PeersDocument,
} from "../../shared/documents/mod.ts";
import { GrpcCode, RpcError } from "../../shared/rpc/rpc-error.ts";
import { listNodes } from "../cluster/listing.ts";
import { textOfNode } from "../cluster/node-text.ts";
import type { CallRecord } from "../metrics/call-record.ts";
import { cut, namedPod, type ViewSources } from "./view-sources.ts";

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
  const { kept, omitted } = cut(
    context.calls.list().filter(({ pod }) => isNamed(pod)),
    maxRows,
  );
  return { kind: "calls", version: documentVersion, node, calls: kept.map(rowOf), omitted };
}

const micros = (ms: number): number => Math.max(0, Math.round(ms * 1000));

function rowOf({
  pod,
  sandbox,
  durationMs,
  phases,
  code,
  message,
  times,
  failedIn,
  ...call
}: CallRecord): DocumentCall {
  const { verb, network, ifname, beganAtMs, firstAtMs } = call;
  return {
    ...{ verb, network, containerId: sandbox, ifname, beganAtMs, tookMicros: micros(durationMs), code },
    ...(pod === undefined ? {} : { podNamespace: pod.namespace, podName: pod.name }),
    ...(code === 0 ? {} : { message, times, firstAtMs }),
    ...(failedIn === undefined ? {} : { failedIn }),
    phases: phases.map(({ phase, ms }) => ({ phase, tookMicros: micros(ms) })),
  };
}

/** @throws {CniError} 11 where the registry does not answer */
export async function peersView({ registry, node }: ViewSources): Promise<PeersDocument> {
  const head = { kind: "peers", version: documentVersion, node } as const;
  if (registry === undefined) return { ...head, registry: "", peers: [], omitted: 0 };
  const { name, nodes } = await listNodes(registry, { rights: false });
  const { kept, omitted } = cut(
    nodes.toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    maxRows,
  );
  const peers = kept.map(({ state, problem, ...peer }) => {
    const { uid: _, ...text } = textOfNode(peer);
    return { ...text, self: peer.name === node, state, ...(problem === undefined ? {} : { problem }) };
  });
  return { ...head, registry: name, peers, omitted };
}
