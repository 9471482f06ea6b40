import type { NodeDocumentOf, NodeKind, NodesDocument } from "../../shared/documents/mod.ts";
import type { Step } from "./patch.ts";

/** What server and page say to each other. Documents are those of `pipette get -o json`. */

/**
 * A document that somebody follows: `cluster`, `NODE/KIND`, or `NODE/KIND/NAME` where a question narrows it down. With
 * `*` for the node it is that of every node.
 */
export type Topic = string;

/** What became of one document. */
export type Change =
  | { readonly topic: Topic; readonly version: number; readonly atMs: number; readonly document: object }
  | {
      readonly topic: Topic;
      readonly version: number;
      /** The version that the steps begin with. */
      readonly from: number;
      readonly atMs: number;
      readonly steps: readonly Step[];
    }
  /** It cannot be had at present; what was had before may still be shown, with its age. */
  | { readonly topic: Topic; readonly version: number; readonly fault: string }
  /** Its node is no longer there. */
  | { readonly topic: Topic; readonly version: number; readonly gone: true };

export interface Frame {
  readonly changes: readonly Change[];
  /** Everything that there is of the topics, and nothing else. */
  readonly fresh?: true;
  /** Frames that were left out before this one, because the reader was slow. */
  readonly skipped?: number;
}

export type DocumentOf<K extends NodeKind | "cluster"> = K extends NodeKind ? NodeDocumentOf<K> : NodesDocument;

/** Commands that the page may have run, with what each takes. */
export interface CommandInput {
  readonly name: string;
  readonly fields: Readonly<Record<string, string>>;
  /** Only says which command line it is. */
  readonly preview?: boolean;
}

export interface CommandAnswer {
  /** What a person would type. */
  readonly line: string;
  /** Absent for a preview. */
  readonly status?: number;
  /** What it printed, if that is JSON. */
  readonly json?: unknown;
  /** What it said besides. */
  readonly said?: string;
}

export interface About {
  readonly title: string;
  readonly version: string;
  readonly isLive: boolean;
  /** Names of the commands that can be run here. */
  readonly commands: readonly string[];
  /** Who has signed in; absent: whoever has the address. */
  readonly person?: string;
  /** Why nothing of nodes is shown to them; absent: it is. */
  readonly withoutNodes?: string;
}

/** What the server answers to the address's token, beside its cookie. */
export interface Admission {
  /** What the page sends in its header from then on. */
  readonly key: string;
}

/** The header that only a page's own script sends: its key, and "1" before it has one. */
export const pageHeader = "x-pipette-page";
