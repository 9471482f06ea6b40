import { join } from "node:path";
import { pause } from "../../shared/async/abortable.ts";
import { LogOnChange } from "../../shared/async/log-on-change.ts";
import { CniError } from "../../shared/errors.ts";
import type { Logger } from "../../shared/log.ts";
import { writeAtomically, writeAtomicallySlowly } from "../../shared/os/atomic-file.ts";
import {
  anyText,
  boolean,
  defaulted,
  integer,
  list,
  maxRecordBytes,
  object,
  opaque,
  optional,
  readRecord,
  required,
  validate,
} from "../../shared/schema/mod.ts";
import type { ClusterNode } from "./node-registry.ts";
import { nodeSchema, textOfNode } from "./node-text.ts";

/** The last known state of the cluster. */
export interface CachedRegistry {
  /** This node as a member; absent where it never was one. */
  readonly self?: ClusterNode;
  /** Why it is no member any more, if so; its record stays, because running pods may still use its subnets. */
  readonly refused?: string;
  /** The other nodes. */
  readonly nodes: ReadonlyMap<string, ClusterNode>;
  /** Whether they were checked for conflicts; else they are the registry's unchecked records. */
  readonly admitted: boolean;
  readonly tenants: ReadonlyMap<string, number>;
}

/** The pause between two writes. A change that is lost with the process comes again from the registry. */
const pauseMs = 1000;
const fileVersion = 1;
const ofNoUse = "what was known of the other nodes is of no use";

const vnids = opaque<Readonly<Record<string, number>>>("VNIDs by project", (value) =>
  Object.values(value).every((vnid) => Number.isInteger(vnid)) ? undefined : '"$" has what is no VNID',
);

const recordSchema = object({
  version: required(integer(fileVersion, fileVersion)),
  registry: required(anyText),
  // Absent in files of earlier releases, which kept unchecked records.
  admitted: defaulted(boolean, false),
  self: optional(nodeSchema),
  refused: optional(anyText),
  nodes: required(list(nodeSchema, 0, 100_000)),
  tenants: required(vnids),
});

const pathIn = (dataDir: string): string => join(dataDir, "nodes.json");

const anyNode = opaque("a node", () => undefined);

/** For readers of single nodes: an invalid one does not hide the others. */
const nodesSchema = object({ self: optional(anyNode), nodes: required(list(anyNode, 0, 100_000)) });

/** The cached cluster of the agent with this data directory; nothing if it cannot be read. */
export function readKnownNodes(
  dataDir: string,
): Pick<CachedRegistry, "self"> & { readonly nodes: readonly ClusterNode[] } {
  const read = readRecord(pathIn(dataDir), nodesSchema, { wrongOptional: "ignored" });
  if (read.t !== "ok") return { nodes: [] };
  const nodesOf = (values: readonly unknown[]): readonly ClusterNode[] =>
    values.flatMap((value) => {
      const node = validate(nodeSchema, value, { unknownKeys: "ignored", maxIssues: 1 });
      return node.t === "ok" ? [node.value] : [];
    });
  const [self] = nodesOf([read.value.self]);
  return { ...(self === undefined ? {} : { self }), nodes: nodesOf(read.value.nodes) };
}

/** Keeps the state of the cluster in the data directory, so that a node can work without its registry. */
export class RegistryCache implements AsyncDisposable {
  readonly #path: string;
  readonly #registry: string;
  readonly #logger: Logger;
  #state: CachedRegistry;
  /** Counts writes, so that a slow one does not overtake the next. */
  #written = 0;
  #isChanged = false;
  #writing: Promise<void> | undefined;
  readonly #ended = new AbortController();
  readonly #problem: LogOnChange;

  /**
   * An invalid file, or one of another registry, counts as empty.
   * @param registry tells it from others
   */
  constructor(dataDir: string, registry: string, logger: Logger) {
    this.#path = pathIn(dataDir);
    this.#registry = registry;
    this.#logger = logger;
    this.#problem = new LogOnChange(logger, "error");
    this.#state = this.#read() ?? { nodes: new Map(), admitted: true, tenants: new Map() };
  }

  get state(): CachedRegistry {
    return this.#state;
  }

  /** Takes effect at once, and is written a moment later. @param change accepted peers or VNIDs */
  update(change: Partial<Pick<CachedRegistry, "nodes" | "tenants">>): void {
    const admitted = this.#state.admitted || change.nodes !== undefined;
    this.#state = { ...this.#state, ...change, admitted };
    this.#isChanged = true;
    this.#writing ??= this.#writeChanges();
  }

  /** Records that this node is a member. Written before it returns, because pods will get addresses of its subnets. */
  join(self: ClusterNode): void {
    const { nodes, admitted, tenants } = this.#state;
    this.#state = { self, nodes, admitted, tenants };
    this.#writeNow();
  }

  /**
   * Records that this node is no longer a member. Written before it returns, so that a restart without the registry
   * does not assume membership.
   */
  leave(refused: string): void {
    this.#state = { ...this.#state, refused };
    this.#writeNow();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended.abort();
    await this.#writing;
    if (this.#isChanged) this.#writeNow();
  }

  /** Writes one version at a time, with pauses, until there is nothing new. */
  async #writeChanges(): Promise<void> {
    while (this.#isChanged && !this.#ended.signal.aborted) {
      this.#isChanged = false;
      const written = ++this.#written;
      try {
        await writeAtomicallySlowly(this.#path, this.#text(), () => this.#written === written);
      } catch (caught) {
        this.#cannotKeep(caught);
      }
      await pause(pauseMs, this.#ended.signal);
    }
    this.#writing = undefined;
  }

  #writeNow(): void {
    this.#isChanged = false;
    this.#written++;
    try {
      writeAtomically(this.#path, this.#text());
    } catch (caught) {
      this.#cannotKeep(caught);
    }
  }

  #cannotKeep(caught: unknown): void {
    this.#say("what is known of the other nodes cannot be kept", CniError.from(caught).message);
  }

  /** @throws {Error} if it is longer than any valid content */
  #text(): string {
    const { self, refused, nodes, admitted, tenants } = this.#state;
    const text = JSON.stringify({
      version: fileVersion,
      registry: this.#registry,
      admitted,
      ...(self === undefined ? {} : { self: textOfNode(self) }),
      ...(refused === undefined ? {} : { refused }),
      // A node that this schema refuses is left out, so that it does not make the whole file invalid.
      nodes: [...nodes.values()].map(textOfNode).filter((node) => validate(nodeSchema, node).t === "ok"),
      tenants: Object.fromEntries(tenants),
    });
    if (text.length <= maxRecordBytes) return text;
    throw new Error(`they would take ${text.length} bytes, wanted at most ${maxRecordBytes}`);
  }

  #read(): CachedRegistry | undefined {
    const read = readRecord(this.#path, recordSchema);
    if (read.t === "wrong") this.#say(ofNoUse, read.is);
    if (read.t !== "ok") return undefined;
    const { registry, self, refused, nodes, admitted, tenants } = read.value;
    if (registry !== this.#registry) {
      this.#logger.info("what was known of the other nodes is of another registry", { registry });
      return undefined;
    }
    return {
      ...(self === undefined ? {} : { self }),
      ...(refused === undefined ? {} : { refused }),
      nodes: new Map(nodes.map((node) => [node.name, node])),
      admitted,
      tenants: new Map(Object.entries(tenants)),
    };
  }

  #say(message: string, reason: string): void {
    this.#problem.log(message, reason, { path: this.#path });
  }
}
