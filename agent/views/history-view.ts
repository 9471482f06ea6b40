import { loadHistory } from "../../ipam/mod.ts";
import { documentVersion, type HistoryDocument, maxRows } from "../../shared/documents/mod.ts";
import { formatIp, parseIp } from "../../shared/net/ip.ts";
import { cut, podKeys, type ViewSources } from "./view-sources.ts";

/**
 * @param name an address, or of a pod as in `podsView`; empty: all
 * @throws {CniError} 101 where the file cannot be read
 */
export async function historyView({ context, node }: ViewSources, name: string): Promise<HistoryDocument> {
  const { knownPeriods } = await loadHistory();
  const ip = parseIp(name);
  const query = ip !== undefined ? { ip } : name === "" ? {} : { pod: name };
  const { allocator, config } = context;
  const { periods, sinceMs } = knownPeriods(config.dataDir, allocator.list(), query);
  const { kept, omitted } = cut(periods, maxRows);
  const history = kept.map(({ owner, pod, ip: address, generation, fromMs, untilMs }) => ({
    ...{ network: owner.network, address: formatIp(address) },
    ...{ containerId: owner.sandboxId, ifname: owner.ifname },
    ...podKeys(pod),
    ...{ fromMs, generation },
    ...(untilMs === undefined ? {} : { untilMs }),
  }));
  const head = { kind: "history", version: documentVersion, node } as const;
  return { ...head, ...(sinceMs === undefined ? {} : { sinceMs }), history, omitted };
}
