import { createHash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { BundleSource } from "../../operator/bundle/bundle-source.ts";
import { documentVersion } from "../../shared/documents/mod.ts";
import { scratchDir } from "../support/scratch-dir.ts";
import { documentsOfNode, type GeneratedNode, generatedAtMs } from "./generated-documents.ts";

/** A support bundle of a generated cluster, in a directory that goes with it. */
export async function generatedBundle(
  nodes: readonly GeneratedNode[],
): Promise<AsyncDisposable & { readonly source: BundleSource }> {
  const scratch = scratchDir();
  const files = nodes.flatMap((node) =>
    Object.entries(documentsOfNode(node, nodes)).map(([kind, document]) => {
      const path = `nodes/${node.name}/${kind}.json`;
      const bytes = new TextEncoder().encode(JSON.stringify(document));
      mkdirSync(dirname(join(scratch.path, path)), { recursive: true });
      writeFileSync(join(scratch.path, path), bytes);
      return { path, bytes: bytes.length, sha256: createHash("sha256").update(bytes).digest("hex") };
    }),
  );
  const head = { kind: "bundle", version: documentVersion, madeAtMs: generatedAtMs, pipetteVersion: "0.1.0" };
  const index = { ...head, nodes: nodes.map(({ name }) => name), files, failures: [] };
  writeFileSync(join(scratch.path, "index.json"), JSON.stringify(index));
  const source = await BundleSource.open(scratch.path);
  return {
    source,
    [Symbol.asyncDispose]: async () => {
      await source[Symbol.asyncDispose]();
      scratch[Symbol.dispose]();
    },
  };
}
