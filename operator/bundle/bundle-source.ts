import { constants } from "node:fs";
import { lstat, open, stat } from "node:fs/promises";
import { join } from "node:path";
import {
  type BundleIndex,
  bundleIndexSchema,
  documentVersion,
  maxDocumentBytes,
  maxIndexBytes,
  type NodeKind,
  type NodesDocument,
  readNodeDocument,
  readNodesDocument,
  readOne,
} from "../../shared/documents/mod.ts";
import { CniCode, CniError } from "../../shared/errors.ts";
import { reasonOf } from "../../shared/reason.ts";
import { show } from "../../shared/schema/json-fields.ts";
import type { Answer, DocumentSource, Question } from "../document-source.ts";
import { narrowed } from "./narrowed.ts";
import { readArchive } from "./read-archive.ts";

/** Where a bundle has its files. */
interface Files {
  /** `undefined`: there is none. */
  read(path: string): Promise<Uint8Array | undefined>;
}

/** A support bundle: what nodes said once, as it was packed. */
export class BundleSource implements DocumentSource {
  readonly title: string;
  readonly isLive = false;
  readonly #files: Files;
  readonly #index: BundleIndex;

  private constructor(path: string, files: Files, index: BundleIndex) {
    this.title = `the bundle ${show(path)}`;
    this.#files = files;
    this.#index = index;
  }

  /** @param path a directory, or a tar archive, compressed with gzip or not @throws {CniError} 6 for what is no bundle */
  static async open(path: string): Promise<BundleSource> {
    const files = await filesOf(path);
    const index = await files.read("index.json");
    if (index === undefined)
      throw new CniError(
        CniCode.decode,
        `Cannot read the bundle ${show(path)}: it has no "index.json", wanted what "pipette bundle" makes`,
      );
    const what = `the index of the bundle ${show(path)}`;
    return new BundleSource(path, files, readOne(bundleIndexSchema, index, what, maxIndexBytes));
  }

  async nodes(): Promise<readonly string[]> {
    return this.#index.nodes;
  }

  async cluster(): Promise<NodesDocument> {
    const bytes = await this.#checked("cluster/nodes.json", "show the nodes");
    if (bytes !== undefined) return readNodesDocument(bytes, this.title);
    const nodes = this.#index.nodes.map((name) => ({ name, addresses: [], subnets: [] }));
    return { kind: "nodes", version: documentVersion, source: this.title, nodes, omitted: 0 };
  }

  async get<K extends NodeKind>(node: string, { kind, name = "", ...question }: Question<K>): Promise<Answer<K>> {
    const action = `show the ${kind} of node "${node}"`;
    if (!this.#index.nodes.includes(node))
      throw new CniError(
        CniCode.notAvailable,
        `Cannot ${action}: ${this.title} has nothing of it, wanted one of ${this.#index.nodes.slice(0, 20).join(", ")}`,
      );
    const path = `nodes/${node}/${kind}.json`;
    const bytes = await this.#checked(path, action);
    if (bytes === undefined) throw new CniError(CniCode.notAvailable, `Cannot ${action}: ${this.#whyNot(path)}`);
    const document = narrowed(kind, readNodeDocument(kind, node, bytes, this.title), name);
    const revision = Bun.hash(bytes).toString(16);
    if (question.ifNotRevision === revision) return { t: "unchanged", revision };
    return { t: "document", revision, atMs: this.#index.madeAtMs, document };
  }

  async [Symbol.asyncDispose](): Promise<void> {}

  /** The file as it was packed. @throws {CniError} for one that has been changed since */
  async #checked(path: string, action: string): Promise<Uint8Array | undefined> {
    const bytes = await this.#files.read(path);
    if (bytes === undefined) return undefined;
    const listed = this.#index.files.find((file) => file.path === path);
    const is =
      listed === undefined
        ? "which its index does not list"
        : listed.sha256 === new Bun.CryptoHasher("sha256").update(bytes).digest("hex")
          ? undefined
          : "which is another than its index says";
    if (is === undefined) return bytes;
    throw new CniError(CniCode.decode, `Cannot ${action}: ${this.title} has "${path}", ${is}`);
  }

  #whyNot(path: string): string {
    const failure = this.#index.failures.find(({ item }) => item === path || item === path.replace(/\.json$/, ""));
    return `${this.title} has no "${path}"${failure === undefined ? "" : `: ${failure.reason}`}`;
  }
}

/** @throws {CniError} */
async function filesOf(path: string): Promise<Files> {
  const action = `read the bundle ${show(path)}`;
  try {
    if ((await stat(path)).isDirectory()) return { read: (name) => readPlain(path, name) };
    const files = await readArchive(path);
    return { read: async (name) => files.get(name) };
  } catch (caught) {
    if (caught instanceof CniError) throw caught;
    throw new CniError(CniCode.io, `Cannot ${action}: ${reasonOf(caught)}`, { cause: caught });
  }
}

/**
 * A bundle comes from somebody else: a link in it may lead to any file of this machine, and a pipe or a device never ends.
 * @throws {CniError} for what is no regular file in it, or too long for a document
 */
async function readPlain(directory: string, name: string): Promise<Uint8Array | undefined> {
  const path = join(directory, name);
  const refused = (is: string): CniError => new CniError(CniCode.decode, `Cannot read ${show(path)}: ${is}`);
  try {
    const folders = name.split("/").slice(0, -1);
    for (const [i] of folders.entries())
      if (!(await lstat(join(directory, ...folders.slice(0, i + 1)))).isDirectory())
        throw refused("it is not in folders of the bundle");
    if (!(await lstat(path)).isFile()) throw refused("it is no regular file");
    // Nobody may put another one into its place in between. Windows has neither flag.
    const { O_RDONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = constants as Partial<typeof constants>;
    await using file = await open(path, (O_RDONLY ?? 0) | O_NOFOLLOW | O_NONBLOCK);
    const is = await file.stat();
    const most = name === "index.json" ? maxIndexBytes : maxDocumentBytes;
    if (!is.isFile()) throw refused("it is no regular file");
    if (is.size > most) throw refused(`it has ${is.size} bytes, wanted at most ${most}`);
    return await file.readFile();
  } catch (caught) {
    if (caught instanceof CniError) throw caught;
    if ((caught as { readonly code?: unknown }).code === "ENOENT") return undefined;
    throw refused(reasonOf(caught));
  }
}
