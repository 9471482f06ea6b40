import { hresult, Refusal } from "./refusal.ts";
import type { Kind } from "./store.ts";

interface Handle {
  readonly kind: Kind;
  readonly id: string;
  readonly pid: number;
}

/** The handles that processes hold. As with RPC, those of a process that ends are closed for it. */
export class Handles {
  readonly #open = new Map<number, Handle>();
  #next = 0x1000;
  readonly #ended = new Set<number>();

  /** One for a process that has ended meanwhile is closed at once. */
  open(kind: Kind, id: string, pid: number): number {
    this.#next += 16;
    if (!this.#ended.has(pid)) this.#open.set(this.#next, { kind, id, pid });
    return this.#next;
  }

  /** @throws {Refusal} where the process has no such handle */
  id(kind: Kind, handle: number, pid: number): string {
    const found = this.#open.get(handle);
    if (found?.kind === kind && found.pid === pid) return found.id;
    throw new Refusal(hresult.invalidHandle, `There is no handle ${handle}.`);
  }

  close(kind: Kind, handle: number, pid: number): void {
    this.id(kind, handle, pid);
    this.#open.delete(handle);
  }

  /** What is open, as in `endpoint "…" by process 32`. */
  list(): readonly string[] {
    return [...this.#open.values()].map(({ kind, id, pid }) => `${kind} "${id}" by process ${pid}`);
  }

  /** As when the service stops. */
  clear(): void {
    this.#open.clear();
  }

  began(pid: number): void {
    this.#ended.delete(pid);
  }

  ended(pid: number): void {
    this.#ended.add(pid);
    for (const [handle, { pid: owner }] of this.#open) if (owner === pid) this.#open.delete(handle);
  }
}
