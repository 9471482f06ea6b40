import { isNodeName } from "../../shared/documents/mod.ts";
import { CniCode, CniError } from "../../shared/errors.ts";
import { show } from "../../shared/schema/json-fields.ts";
import type { DocumentSource } from "../document-source.ts";

/** As `nodeOptions` has them. */
export interface NodeChoice {
  readonly node: readonly string[];
  readonly "all-nodes": boolean;
}

/**
 * The nodes that the options name; without any all that the source has, which with a socket is the one.
 * @throws {CniError} 7 for what names no node, or both
 */
export async function chosenNodes(
  source: DocumentSource,
  { node: named, "all-nodes": all }: NodeChoice,
  signal: AbortSignal,
): Promise<readonly string[]> {
  if (all && named.length > 0) throw wrong('"--node" and "--all-nodes" are both there, wanted one of them');
  const bad = named.find((name) => !isNodeName(name));
  if (bad !== undefined) throw wrong(`"--node" is ${show(bad)}, wanted the name of a node`);
  if (named.length > 0) return [...new Set(named)];
  return (await source.nodes(signal)).toSorted();
}

const wrong = (is: string): CniError => new CniError(CniCode.invalidConfig, `Cannot choose nodes: ${is}`);
