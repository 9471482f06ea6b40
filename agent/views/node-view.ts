import { documentVersion, maxTextChars, maxValues, type NodeDocument, nodeStates } from "../../shared/documents/mod.ts";
import { logLevels } from "../../shared/log.ts";
import { isWindows } from "../../shared/os/platform.ts";
import { brief } from "../../shared/printable.ts";
import type { PeerCounts, PeerTrouble } from "../../shared/proto/pipette-messages.ts";
import { statusOf } from "../server/node-service.ts";
import type { ViewSources } from "./view-sources.ts";

/** The same as `Status` answers to people. */
export async function nodeView({ context, janitor, info, node, logLevel }: ViewSources): Promise<NodeDocument> {
  const { version, state, problems, registryTroubles, ...status } = await statusOf(context, janitor, info, "");
  const level = logLevels.find((one) => one === logLevel());
  return {
    ...{ kind: "node", version: documentVersion, node, agentVersion: version },
    ...{ pid: status.pid, startedAtMs: status.startedAtMs, system: isWindows ? "windows" : "linux" },
    state: nodeStates.find((one) => one === state) ?? "starting",
    dataPath: status.dataPath,
    networks: status.networks.slice(0, maxValues),
    ...(level === undefined ? {} : { logLevel: level }),
    callsInFlight: info.callsInFlight(),
    departing: status.departing,
    cluster: told(status.cluster),
    policies: told(status.policies),
    services: told(status.services),
    problems: problems.slice(0, maxValues).map(({ message, ...problem }) => ({ ...problem, message: told(message) })),
    registryTroubles: registryTroubles
      .slice(0, maxValues)
      .map(({ what, reason, sinceMs }) => ({ sinceMs, what: told(what), reason: told(reason) })),
    ...(status.peers === undefined ? {} : { peers: withTotal(status.peers) }),
    peerTroubles: status.peerTroubles.slice(0, maxValues).flatMap(peerTrouble),
    configuration: sentences(status.configuration),
    shortcomings: sentences(status.shortcomings),
    refusals: sentences(status.refusals),
    policyDifferences: sentences(status.policyDifferences),
    serviceDifferences: sentences(status.serviceDifferences),
    servicesFault: told(status.servicesFault),
  };
}

const withTotal = (peers: PeerCounts): NonNullable<NodeDocument["peers"]> => ({
  total: Object.values(peers).reduce((sum, count) => sum + count, 0),
  ...peers,
});

const peerTrouble = ({ state, message, ...more }: PeerTrouble): NonNullable<NodeDocument["peerTroubles"]> => {
  const known = (["lost", "silent", "mtu"] as const).find((one) => one === state);
  return known === undefined ? [] : [{ ...more, state: known, message: told(message) }];
};

const told = (sentence: string): string => brief(sentence, maxTextChars);

const sentences = (all: readonly string[]): readonly string[] => all.slice(0, maxValues).map(told);
