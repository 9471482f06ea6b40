import type { Pod } from "../../shared/policy/mod.ts";
import { podKey } from "./group-index.ts";

/**
 * What changed on the whole since the last look: what came and went in between is no change, and nothing is told twice.
 */

export interface NodesChange {
  readonly entered: readonly string[];
  readonly left: readonly string[];
}

/** Nodes, each with the number of reasons for which it is there. */
export class CountedNodes {
  readonly #counts = new Map<string, number>();
  /** Nodes that came or went since the last look, and whether they were there then. */
  #before: Map<string, boolean> | undefined;
  #isKnown = false;

  /** Answers whether the node is new. */
  add(node: string): boolean {
    const count = this.#counts.get(node) ?? 0;
    this.#counts.set(node, count + 1);
    if (count === 0) this.#remember(node, false);
    return count === 0;
  }

  /** Answers whether this was the last reason. */
  delete(node: string): boolean {
    const count = this.#counts.get(node) ?? 0;
    if (count > 1) {
      this.#counts.set(node, count - 1);
      return false;
    }
    if (this.#counts.delete(node)) this.#remember(node, true);
    return count === 1;
  }

  has(node: string): boolean {
    return this.#counts.has(node);
  }

  [Symbol.iterator](): IterableIterator<string> {
    return this.#counts.keys();
  }

  /** Those at the last look. */
  before(): string[] {
    const { entered, left } = this.change();
    const isNew = new Set(entered);
    return [...[...this].filter((node) => !isNew.has(node)), ...left];
  }

  change(): NodesChange {
    if (!this.#isKnown) return { entered: [...this], left: [] };
    const [entered, left]: [string[], string[]] = [[], []];
    for (const [node, wasThere] of this.#before ?? [])
      if (wasThere !== this.has(node)) (wasThere ? left : entered).push(node);
    return { entered, left };
  }

  settle(): void {
    this.#isKnown = true;
    this.#before = undefined;
  }

  #remember(node: string, wasThere: boolean): void {
    if (!this.#isKnown) return;
    this.#before ??= new Map();
    if (!this.#before.has(node)) this.#before.set(node, wasThere);
  }
}

export interface MembersChange {
  readonly added: readonly Pod[];
  readonly removed: readonly Pod[];
}

interface MemberChange {
  readonly before: Pod | undefined;
  after: Pod | undefined;
}

/** Members of a group that joined, left or changed, as they were at the last look and are now. */
export class ChangedMembers {
  #changes: Map<string, MemberChange> | undefined;

  note(before: Pod | undefined, after: Pod | undefined): void {
    const pod = before ?? after;
    if (pod === undefined) return;
    const key = podKey(pod);
    this.#changes ??= new Map();
    const known = this.#changes.get(key);
    if (known === undefined) this.#changes.set(key, { before, after });
    else known.after = after;
  }

  get all(): Iterable<MemberChange> {
    return this.#changes?.values() ?? [];
  }

  settle(): void {
    this.#changes = undefined;
  }
}
