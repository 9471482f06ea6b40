import type { FindingsDocument, NodeDocument } from "../../shared/documents/mod.ts";
import type { Health } from "../parts/mark.tsx";
import type { OfNode } from "../stream/store.ts";

/** A node in a word, and what is behind it. */
export interface NodeHealth {
  readonly node: string;
  readonly health: Health;
  readonly word: string;
  readonly reasons: readonly string[];
}

export function healthOf({ node, document, fault }: OfNode<NodeDocument>): NodeHealth {
  if (fault !== undefined) return { node, health: "unknown", word: "does not answer", reasons: [fault] };
  if (document === undefined) return { node, health: "unknown", word: "not asked yet", reasons: [] };
  const { state, problems, registryTroubles, configuration, shortcomings, refusals } = document;
  const hard = problems.filter(({ advisory }) => !advisory).map(({ message }) => message);
  const soft = [
    ...problems.filter(({ advisory }) => advisory).map(({ message }) => message),
    ...registryTroubles.map(({ what, reason }) => `${what}: ${reason}`),
    ...configuration,
    ...shortcomings,
    ...refusals,
    ...document.policyDifferences,
    ...document.serviceDifferences,
    ...(document.servicesFault === "" ? [] : [document.servicesFault]),
  ];
  const reasons = [...hard, ...soft];
  if (hard.length > 0) return { node, health: "bad", word: "pods get no network", reasons };
  if (state !== "ready") return { node, health: "warn", word: state, reasons };
  if (soft.length > 0) return { node, health: "warn", word: "ready, with shortcomings", reasons };
  return { node, health: "good", word: "ready", reasons };
}

export interface FindingCounts {
  readonly errors: number;
  readonly warnings: number;
  readonly notes: number;
}

export function findingCounts(all: readonly OfNode<FindingsDocument>[]): FindingCounts {
  const severities = all.flatMap(({ document }) => document?.findings ?? []).map(({ severity }) => severity);
  const of = (wanted: string): number => severities.filter((each) => each === wanted).length;
  return { errors: of("error"), warnings: of("warning"), notes: of("note") };
}
