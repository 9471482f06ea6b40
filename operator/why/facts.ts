import type {
  DocumentCall,
  DocumentFinding,
  DocumentLease,
  DocumentPod,
  DocumentPolicedPod,
  DocumentPool,
  NodeDocument,
} from "../../shared/documents/mod.ts";

/** A pod, as people name it. */
export interface PodName {
  readonly namespace: string;
  readonly name: string;
}

export const podText = ({ namespace, name }: PodName): string => `${namespace}/${name}`;

/** Who says a sentence; what stands first is believed first. */
export const witnesses = ["call", "event", "agent", "problem", "finding", "runtime", "lease", "log"] as const;
export type Witness = (typeof witnesses)[number];

/** A sentence about what is wrong, in somebody's own words. */
export interface Statement {
  readonly by: Witness;
  /** For people: `the pod's event FailedCreatePodSandBox`. */
  readonly from: string;
  readonly text: string;
  /** Milliseconds since 1970. */
  readonly atMs?: number;
  /** How often it was said. */
  readonly times?: number;
  /** Of a finding. */
  readonly code?: string;
  readonly todo?: string;
  /** It is said of the pod that is asked about, and not of the node as a whole. */
  readonly isOfPod: boolean;
}

/** What the API server says of the pod itself. */
export interface PodState {
  readonly uid: string;
  /** Absent: the scheduler has not found a node. */
  readonly node?: string;
  readonly phase: string;
  readonly hostNetwork: boolean;
  readonly isLeaving: boolean;
  readonly addresses: readonly string[];
  /** Why the scheduler has found none. */
  readonly unscheduled?: string;
}

/** What the container runtime of the pod's node says. */
export interface RuntimeSays {
  readonly socket: string;
  /** Absent: it does not tell. */
  readonly network?: { readonly isReady: boolean; readonly message: string };
  /** Of the pod, the latest first. */
  readonly sandboxes: readonly RuntimeSandbox[];
}

export interface RuntimeSandbox {
  readonly id: string;
  readonly isReady: boolean;
  /** Milliseconds since 1970. */
  readonly createdAtMs: number;
  readonly addresses: readonly string[];
  /** Its network namespace; absent where it has none of its own, or the runtime does not tell. */
  readonly netns?: string;
  readonly isNetnsThere?: boolean;
}

/** One source, and whether it could be asked. */
export interface Asked {
  readonly source: string;
  /** Absent: it was. */
  readonly failure?: string;
}

/** All that was heard about one pod, or without one about its node. */
export interface Facts {
  readonly pod?: PodName;
  readonly nowMs: number;
  /** `absent`: the API server has no such pod; `undefined`: it was not asked. */
  readonly state: PodState | "absent" | undefined;
  readonly node: string | undefined;
  readonly statements: readonly Statement[];
  /** Of the pod, the latest first. */
  readonly calls: readonly DocumentCall[];
  readonly attachments: readonly DocumentPod[];
  readonly leases: readonly DocumentLease[];
  readonly pools: readonly DocumentPool[];
  readonly isolation: readonly DocumentPolicedPod[];
  readonly agent: NodeDocument | undefined;
  /** `undefined`: it could not be asked. */
  readonly runtime: RuntimeSays | undefined;
  readonly findings: readonly DocumentFinding[];
  readonly asked: readonly Asked[];
}

/** The answer. */
export interface Verdict {
  /** `cause`: something keeps the pod from its network. `fine`: nothing was found. `unknown`: too little could be asked. */
  readonly t: "cause" | "fine" | "unknown" | "absent";
  /** Stays the same from release to release; empty where nothing was found. */
  readonly code: string;
  readonly cause: string;
  readonly evidence: readonly string[];
  readonly todo: readonly string[];
}
