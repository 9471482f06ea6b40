import { createHash } from "node:crypto";
import { tar } from "../../shared/archive/tar.ts";
import { type BundleIndex, documentVersion } from "../../shared/documents/mod.ts";
import { version } from "../../shared/version.ts";
import type { Collected } from "./collect.ts";

/** What a bundle says of itself. */
export interface About {
  readonly madeAtMs: number;
  readonly nodes: readonly string[];
  /** How often something secret was left out. */
  readonly leftOut: number;
}

/** The index for programs, with a checksum of each file. */
export const indexOf = ({ files, failures }: Collected, { madeAtMs, nodes }: About): BundleIndex => ({
  kind: "bundle",
  version: documentVersion,
  madeAtMs,
  pipetteVersion: version,
  nodes,
  files: files.map(({ path, bytes }) => ({ path, bytes: bytes.length, sha256: sha256(bytes) })),
  failures,
});

const sha256 = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

/** The same for people. */
export function readableIndex(
  { nodes, files, failures, madeAtMs, pipetteVersion }: BundleIndex,
  leftOut: number,
): string {
  return [
    "# Support bundle of Pipette",
    "",
    `Made ${new Date(madeAtMs).toISOString()} by ${pipetteVersion}. Nodes: ${nodes.join(", ") || "none"}.`,
    `Tokens, keys, passwords and CNI_ARGS were left out where they were seen (${leftOut} places); look yourself before you give it away.`,
    "",
    "`pipette get … --bundle FILE` shows the documents as of a node; `SHA256SUMS` is for `sha256sum -c`.",
    "",
    "| file | bytes |",
    "|---|---|",
    ...files.map(({ path, bytes }) => `| ${cell(path)} | ${bytes} |`),
    "",
    ...(failures.length === 0
      ? ["Everything that was wanted is here."]
      : [
          "| could not be had | why |",
          "|---|---|",
          ...failures.map(({ item, reason }) => `| ${cell(item)} | ${cell(reason)} |`),
        ]),
    "",
  ].join("\n");
}

/** A reason may be an agent's, and hold what ends a cell. */
const cell = (text: string): string => text.replaceAll("|", "\\|").replaceAll("\n", " ");

/** The archive in gzip's format. */
export function archiveOf(collected: Collected, about: About): Uint8Array<ArrayBuffer> {
  const index = indexOf(collected, about);
  const text = (content: string): Uint8Array => new TextEncoder().encode(content);
  const sums = index.files.map(({ path, sha256 }) => `${sha256}  ${path}\n`).join("");
  const all = [
    { path: "index.md", bytes: text(readableIndex(index, about.leftOut)) },
    { path: "index.json", bytes: text(`${JSON.stringify(index)}\n`) },
    { path: "SHA256SUMS", bytes: text(sums) },
    ...collected.files,
  ];
  const mtime = Math.floor(about.madeAtMs / 1000);
  return Bun.gzipSync(
    tar(
      all.map(({ path, bytes }) => ({ t: "file" as const, path, mode: 0o600, bytes })),
      mtime,
    ),
  );
}
