import { sameIp } from "../../../shared/net/ip.ts";
import type { PipelineContext } from "./pipeline/context.ts";
import { Category } from "./pipeline/cookie.ts";
import { podFlows } from "./pipeline/mod.ts";
import { AppliedRecord } from "./program/applied-record.ts";
import type { FlowSet, FlowSetChanges } from "./program/flow-set.ts";

/** What the flows of a pod are made of. */
export type PodOnSwitch = Parameters<typeof podFlows>[1];

/** What the switch's program has of pods, by their owners' keys, so that it is given only changes. */
export class AppliedPods {
  readonly #record = new AppliedRecord<PodOnSwitch>();

  /** The flow sets of those that are others than applied; they are taken for applied from now on. */
  changed(context: PipelineContext, pods: Iterable<readonly [string, PodOnSwitch]>): FlowSetChanges {
    const changes = new Map<string, FlowSet | undefined>();
    for (const [owner, pod] of pods) {
      const key = podKey(owner);
      if (this.#record.isApplied(key, (applied) => isSame(applied, pod))) continue;
      this.#record.set(key, pod);
      changes.set(key, { category: Category.pod, flows: podFlows(context, pod) });
    }
    for (const key of this.#overtaken(changes)) changes.set(key, undefined);
    return changes;
  }

  /** What takes these away, as far as they were applied. */
  removed(owners: readonly string[]): FlowSetChanges {
    const keys = owners.map(podKey).filter((key) => this.#record.delete(key));
    return new Map(keys.map((key) => [key, undefined]));
  }

  /** The program has taken what was changed of these. */
  confirm(owners: readonly string[]): void {
    this.#record.confirm(owners.map(podKey));
  }

  /** These may have come to nothing: they are given again. @param changes absent: all */
  markDirty(changes?: FlowSetChanges): void {
    this.#record.markDirty(changes?.keys());
  }

  /** The switch does not take this one. */
  refuse(owner: string, why: string): void {
    this.#record.refuse(podKey(owner), why);
  }

  /** Why the switch does not take a pod's flows, by their keys in the program. */
  get refusals(): ReadonlyMap<string, string> {
    return this.#record.refusals;
  }

  /**
   * Those whose port number is another's now, since the switch numbers ports anew where its database was lost. Their
   * flows go with the same change, and are given again once the number that they have now is known.
   */
  #overtaken(changes: FlowSetChanges): readonly string[] {
    const applied = [...this.#record.entries()];
    const taken = new Set(applied.flatMap(([key, { ofport }]) => (changes.has(key) ? [ofport] : [])));
    const overtaken = applied.filter(([key, { ofport }]) => !changes.has(key) && taken.has(ofport)).map(([key]) => key);
    this.#record.markDirty(overtaken);
    return overtaken;
  }
}

/** Of its flow set in the program. */
export const podKey = (owner: string): string => `pod/${owner}`;

const isSame = (a: PodOnSwitch, b: PodOnSwitch): boolean =>
  a.ofport === b.ofport &&
  a.mac === b.mac &&
  a.vnid === b.vnid &&
  a.ips.length === b.ips.length &&
  a.ips.every((ip, i) => sameIp(ip, b.ips[i] ?? ip));
