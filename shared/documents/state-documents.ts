import { logLevels } from "../log.ts";
import { boolean, type Infer, integer, object, oneOf, optional, required } from "../schema/mod.ts";
import { attachmentKeys, count, headOf, omitted, rows, sentence, sentences, values } from "./parts.ts";

/** What a node says of itself: its state, what is wrong, its last calls, the nodes around it. */

export const nodeStates = ["starting", "joining", "ready", "stopping"] as const;

const problem = object({
  code: required(count, "of the CNI specification, or ours"),
  message: required(sentence),
  advisory: required(boolean, "new pods get no network, and running ones are fine"),
});

const registryTrouble = object({
  what: required(sentence, "what cannot be done with the registry"),
  reason: required(sentence),
  sinceMs: required(count, "milliseconds since 1970"),
});

/**
 * What is known of the way to another node's pods: `reachable` it answers; `lost` it did and does no more; `silent` it never
 * has since the agent's start; `unknown` it was not asked yet.
 */
export const probeStates = ["reachable", "lost", "silent", "unknown"] as const;
export type ProbeState = (typeof probeStates)[number];

const peerTrouble = object({
  node: required(sentence, "the other node"),
  state: required(oneOf(["lost", "silent", "mtu"]), "`mtu`: small packets come through, and those of pods' MTU do not"),
  message: required(sentence, "what it is and what is known of the cause"),
  sinceMs: required(count, "milliseconds since 1970"),
});

/** As `pipette status --json` has it under `status`, and the log level. */
export const nodeSchema = object({
  ...headOf("node"),
  agentVersion: required(sentence, "the release of the agent"),
  pid: required(count, "the agent's process"),
  startedAtMs: required(count, "milliseconds since 1970"),
  state: required(oneOf(nodeStates)),
  system: required(sentence, "`linux` or `windows`"),
  dataPath: required(sentence),
  networks: required(values(sentence), "that the agent serves"),
  logLevel: optional(oneOf(logLevels)),
  callsInFlight: required(count, "calls of runtimes that are being served"),
  departing: required(count, "attachments that are being taken away"),
  cluster: required(sentence, "the node's membership, in words; empty without one"),
  policies: required(sentence, "network policies, in words; empty where none are enforced"),
  services: required(sentence, "services, in words; empty where none are balanced"),
  problems: required(values(problem), "why pods get no network"),
  registryTroubles: required(values(registryTrouble)),
  peers: optional(
    object({
      total: required(count, "other nodes that are probed"),
      reachable: required(count),
      lost: required(count),
      silent: required(count),
      unknown: required(count),
    }),
    "by the state of the way to their pods; absent where nobody probes",
  ),
  peerTroubles: optional(values(peerTrouble), "ways to other nodes' pods that do not work; the first of them"),
  configuration: required(sentences, "what is wrong with the present configuration files"),
  shortcomings: required(sentences, "what is missing for single pods or other nodes"),
  refusals: required(sentences, "records of the registry that are not accepted"),
  policyDifferences: required(sentences, "what is not in force of network policies"),
  serviceDifferences: required(sentences, "what is not in force of services"),
  servicesFault: required(sentence, "why services are not followed; empty where they are"),
});

export type NodeDocument = Infer<typeof nodeSchema>;

export const findingSeverities = ["error", "warning", "note"] as const;

/** As `pipette doctor --json` has them. */
export const findingsSchema = object({
  ...headOf("findings"),
  leases: required(count, "leases that were compared"),
  interfaces: required(count, "interfaces that were compared"),
  findings: required(
    rows(
      object({
        severity: required(oneOf(findingSeverities)),
        code: required(sentence, "stays the same from release to release"),
        what: required(sentence),
        trusts: optional(sentence, "where sources disagree, the one that is believed"),
        why: required(sentence),
        todo: required(sentence),
        repairable: required(boolean, "`pipette doctor --repair` on the node does it"),
      }),
    ),
    "the worst first",
  ),
  omitted,
});

export type FindingsDocument = Infer<typeof findingsSchema>;
export type DocumentFinding = FindingsDocument["findings"][number];

/** The last calls of runtimes, as the agent has them in memory: its start forgets them. */
export const callsSchema = object({
  ...headOf("calls"),
  calls: required(
    rows(
      object({
        verb: required(sentence, "`ADD`, `DEL`, `CHECK`, `GC` or `STATUS`"),
        ...attachmentKeys,
        podNamespace: optional(sentence),
        podName: optional(sentence),
        beganAtMs: required(count, "milliseconds since 1970"),
        tookMicros: required(count, "microseconds until the answer"),
        code: required(count, "0: it succeeded; else the code of the error"),
        message: optional(sentence, "the error"),
        failedIn: optional(sentence, "the part in which it failed"),
        times: optional(count, "failures alike of the same pod, of which this is the last"),
        firstAtMs: optional(count, "of the first of them"),
        phases: required(
          values(object({ phase: required(sentence), tookMicros: required(count) })),
          "where the time went, in their order",
        ),
      }),
    ),
    "the latest first",
  ),
  omitted,
});

export type CallsDocument = Infer<typeof callsSchema>;
export type DocumentCall = CallsDocument["calls"][number];

const probe = object({
  address: required(
    sentence,
    "what is asked, by the way that pods' packets take: the gateway of the other node's pods",
  ),
  state: required(oneOf(probeStates)),
  rttMicros: optional(count, "until the answer, smoothed, in microseconds; absent where none has come"),
  lastRttMicros: optional(count, "of the last answer"),
  seenAtMs: optional(count, "of the last answer, milliseconds since 1970"),
  lostSinceMs: optional(count, "the first question without an answer; absent where the last was answered"),
  failures: required(count, "questions in a row without an answer"),
  reason: optional(sentence, "what is known of the cause"),
  mtu: optional(count, "bytes of the largest packet that came through, where those of pods' MTU do not"),
  podMtu: optional(count, "bytes of pods' MTU, where packets of that size were tried"),
});

export const peersSchema = object({
  ...headOf("peers"),
  registry: required(sentence, "which registry, in words; empty where the node is on its own"),
  probing: optional(sentence, "how the others are probed, in words; absent where they are not"),
  peers: required(
    rows(
      object({
        name: required(sentence),
        self: required(boolean, "it is this node"),
        state: required(sentence, "`ready`, `lost` or what else the registry knows"),
        addresses: required(values(sentence), "where others reach it"),
        subnets: required(values(sentence), "of its pods"),
        mac: optional(sentence),
        problem: optional(sentence, "why the record is not used"),
        probes: optional(values(probe), "of the way to its pods, one for each family; absent where nobody probes"),
        tunnelPort: optional(integer(1, 0xff_ff_ff_ff), "the OpenFlow port of the tunnel to it"),
      }),
    ),
    "this node among them",
  ),
  omitted,
});

export type PeersDocument = Infer<typeof peersSchema>;
export type DocumentPeer = PeersDocument["peers"][number];
export type DocumentProbe = Infer<typeof probe>;
