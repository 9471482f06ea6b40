import { join } from "node:path";
import { pause } from "../../shared/async/abortable.ts";
import { CniError } from "../../shared/errors.ts";
import type { Logger } from "../../shared/log.ts";
import { readSmallFile } from "../../shared/os/plain-file.ts";
import { reasonOf } from "../../shared/reason.ts";
import { parseJson } from "../../shared/schema/json.ts";
import { misfit, type Shape } from "../config/yaml-shape.ts";
import { writeAtomically, writeAtomicallySlowly } from "../platform/atomic-file.ts";
import type { ClusterNode } from "./node-registry.ts";
import { type NodeText, nodeOfText, nodeTextShape, textOfNode } from "./node-text.ts";

/** What was last heard of the cluster. */
export interface CachedRegistry {
  /** This node as a member; absent where it never was one. */
  readonly self?: ClusterNode;
  /** Why it is none any more, where that is so: its pods, which may still stand, have addresses of its subnets. */
  readonly refused?: string;
  /** The other nodes. */
  readonly nodes: ReadonlyMap<string, ClusterNode>;
  /** Whether they are peers, which do not contradict each other; else they are what the registry has told. */
  readonly admitted: boolean;
  readonly tenants: ReadonlyMap<string, number>;
}

/** Ten thousand nodes are 3 MiB; what is more than this cannot be right, and is neither read nor written. */
const maxBytes = 16 * 1024 * 1024;
/** Between two writes. A change that is lost with the process is heard of again from the registry. */
const pauseMs = 1000;
const fileVersion = 1;

const fileShape: Shape = {
  t: "map",
  required: ["version", "registry", "nodes", "tenants"],
  keys: {
    version: { t: "integer", least: fileVersion, most: fileVersion },
    registry: { t: "string", wanted: "a name" },
    admitted: { t: "boolean" },
    self: nodeTextShape,
    refused: { t: "string", wanted: "a sentence" },
    nodes: { t: "list", of: nodeTextShape, least: 0, most: 100_000 },
    tenants: {
      t: "foreign",
      wanted: "VNIDs by project",
      wrong: (value) => (Object.values(value).every((vnid) => Number.isInteger(vnid)) ? undefined : "no VNID"),
    },
  },
};

interface Content {
  readonly registry: string;
  /** Absent in files of releases that kept every record that they had heard of. */
  readonly admitted?: boolean;
  readonly self?: NodeText;
  readonly refused?: string;
  readonly nodes: readonly NodeText[];
  readonly tenants: Readonly<Record<string, number>>;
}

/** Keeps what is known of the cluster in the data directory, so that a node can go on without its registry. */
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
  #said: string | undefined;

  /**
   * What is no such file, or is another registry's, counts as nothing known.
   * @param registry tells it from others
   */
  constructor(dataDir: string, registry: string, logger: Logger) {
    this.#path = join(dataDir, "nodes.json");
    this.#registry = registry;
    this.#logger = logger;
    this.#state = this.#read() ?? { nodes: new Map(), admitted: true, tenants: new Map() };
  }

  get state(): CachedRegistry {
    return this.#state;
  }

  /** Counts at once, and is on the disk a moment later. @param change peers; VNIDs that count */
  update(change: Partial<Pick<CachedRegistry, "nodes" | "tenants">>): void {
    const admitted = this.#state.admitted || change.nodes !== undefined;
    this.#state = { ...this.#state, ...change, admitted };
    this.#isChanged = true;
    this.#writing ??= this.#writeChanges();
  }

  /** This node is a member. On the disk when it returns: its pods will have addresses out of its subnets. */
  join(self: ClusterNode): void {
    const { nodes, admitted, tenants } = this.#state;
    this.#state = { self, nodes, admitted, tenants };
    this.#writeNow();
  }

  /** This node is no member any more. On the disk when it returns: a start that cannot ask does not take it for one. */
  leave(refused: string): void {
    this.#state = { ...this.#state, refused };
    this.#writeNow();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended.abort();
    await this.#writing;
    if (this.#isChanged) this.#writeNow();
  }

  /** One at a time, with pauses; until there is nothing new. */
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
    this.#say(`what is known of the other nodes cannot be kept: ${CniError.from(caught).message}`);
  }

  /** @throws {Error} where it is longer than anything that is right */
  #text(): string {
    const { self, refused, nodes, admitted, tenants } = this.#state;
    const text = JSON.stringify({
      version: fileVersion,
      registry: this.#registry,
      admitted,
      ...(self === undefined ? {} : { self: textOfNode(self) }),
      ...(refused === undefined ? {} : { refused }),
      // One that another reader than this one let through must not cost the others.
      nodes: [...nodes.values()].map(textOfNode).filter((node) => misfit(node, nodeTextShape) === undefined),
      tenants: Object.fromEntries(tenants),
    });
    if (text.length <= maxBytes) return text;
    throw new Error(`they would take ${text.length} bytes, wanted at most ${maxBytes}`);
  }

  #read(): CachedRegistry | undefined {
    let value: unknown;
    try {
      value = parseJson(readSmallFile(this.#path, maxBytes));
    } catch (caught) {
      if (!(caught instanceof Error && "code" in caught && caught.code === "ENOENT"))
        this.#say(`what was known of the other nodes is of no use: ${reasonOf(caught)}`);
      return undefined;
    }
    const fault = misfit(value, fileShape, "ignored");
    if (fault !== undefined) {
      this.#say(`what was known of the other nodes is of no use: ${fault} is not what it should be`);
      return undefined;
    }
    const { registry, self, refused, nodes, admitted = false, tenants } = value as Content;
    if (registry !== this.#registry) {
      this.#logger.info("what was known of the other nodes is of another registry", { registry });
      return undefined;
    }
    return {
      ...(self === undefined ? {} : { self: nodeOfText(self) }),
      ...(refused === undefined ? {} : { refused }),
      nodes: new Map(nodes.map((node) => [node.name, nodeOfText(node)])),
      admitted,
      tenants: new Map(Object.entries(tenants)),
    };
  }

  #say(sentence: string): void {
    if (sentence === this.#said) return;
    this.#said = sentence;
    this.#logger.error(sentence, { path: this.#path });
  }
}
