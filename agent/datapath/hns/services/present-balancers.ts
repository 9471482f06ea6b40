import type { Hcn, HcnLoadBalancer } from "../../../protocols/hcn/mod.ts";
import { type PresentBalancer, readPresent } from "./load-balancer.ts";
import { isOwnId } from "./own-ids.ts";

/** How long it is told that others have removed load balancers of ours. */
const vanishedMs = 3_600_000;

/**
 * All load balancers of the node, anybody's, from the last listing and our own changes since: a listing asks HNS about
 * every single one.
 */
export class PresentBalancers {
  readonly #hcn: Hcn;
  #seen = new Map<string, PresentBalancer>();
  /**
   * What HNS was given for one, where it shows it in other words: for HNS to write a document differently is no change
   * of somebody's.
   */
  readonly #written = new Map<string, { readonly shown: string; readonly given: string }>();
  #listedAtMs: number | undefined;
  /** Listings that lacked load balancers of ours. */
  readonly #vanishedAtMs: number[] = [];
  vanished = 0;

  constructor(hcn: Hcn) {
    this.#hcn = hcn;
  }

  all(): readonly PresentBalancer[] {
    return [...this.#seen.values()];
  }

  /** Absent: never, or what was seen then is known to be wrong. */
  get listedAtMs(): number | undefined {
    return this.#listedAtMs;
  }

  distrust(): void {
    this.#listedAtMs = undefined;
  }

  /** @returns how many of ours are gone without our doing. @throws {HcnError}; what was seen before stays then */
  async list(): Promise<number> {
    const listed = new Map((await this.#hcn.loadBalancers()).map((each) => [each.id, this.#read(each)]));
    const gone = [...this.#seen.keys()].filter((id) => isOwnId(id) && !listed.has(id));
    for (const id of this.#written.keys()) if (!listed.has(id)) this.#written.delete(id);
    if (gone.length > 0) this.#vanishedAtMs.push(performance.now());
    this.vanished += gone.length;
    this.#seen = listed;
    this.#listedAtMs = performance.now();
    return gone.length;
  }

  /** More than once lately ours were gone: somebody works against us, as kube-proxy does. */
  get hasOpponent(): boolean {
    const recent = this.#vanishedAtMs.filter((atMs) => performance.now() - atMs < vanishedMs);
    return recent.length > 1;
  }

  /** As HNS shows one that it was given. @param given `PresentBalancer.text` of that */
  note(shown: HcnLoadBalancer, given: string): void {
    const { text } = readPresent(shown);
    if (text !== given) this.#written.set(shown.id, { shown: text, given });
    this.#seen.set(shown.id, this.#read(shown));
  }

  forget(id: string): void {
    this.#seen.delete(id);
    this.#written.delete(id);
  }

  #read(document: HcnLoadBalancer): PresentBalancer {
    const present = readPresent(document);
    const written = this.#written.get(present.id);
    return written?.shown === present.text ? { ...present, text: written.given } : present;
  }
}
