import { sameIp } from "../../../shared/net/ip.ts";
import type { PipelineContext } from "./pipeline/context.ts";
import { Category } from "./pipeline/cookie.ts";
import { podFlows } from "./pipeline/mod.ts";
import { isolationKey } from "./policies/policy-flows.ts";
import { AppliedRecord } from "./program/applied-record.ts";
import type { FlowSet, FlowSetChanges } from "./program/flow-set.ts";

/** The data that a pod's flows depend on. */
export type PodOnSwitch = Parameters<typeof podFlows>[1];

/** Records which pods the switch's program has, by owner, so that only changes are passed on. */
export class AppliedPods {
  readonly #record = new AppliedRecord<PodOnSwitch>();

  /** Whether the program has the flows of this pod as it is. */
  has(owner: string, pod: PodOnSwitch): boolean {
    return this.#record.isApplied(podKey(owner), (applied) => isSame(applied, pod));
  }

  /** The flow sets of changed pods, which count as applied from now on. */
  changed(context: PipelineContext, pods: Iterable<readonly [string, PodOnSwitch]>): FlowSetChanges {
    const changes = new Map<string, FlowSet | undefined>();
    for (const [owner, pod] of pods) {
      const key = podKey(owner);
      if (this.#record.isApplied(key, (applied) => isSame(applied, pod))) continue;
      this.#record.set(key, pod);
      changes.set(key, { category: Category.pod, flows: podFlows(context, pod), needs: isolationKey(owner) });
    }
    for (const key of this.#overtaken(changes)) changes.set(key, undefined);
    return changes;
  }

  /** The changes that remove these pods, if they were applied. */
  removed(owners: readonly string[]): FlowSetChanges {
    const keys = owners.map(podKey).filter((key) => this.#record.delete(key));
    return new Map(keys.map((key) => [key, undefined]));
  }

  /** The program has accepted the changes of these pods. */
  confirm(owners: readonly string[]): void {
    this.#record.clearRefusals(owners.map(podKey));
  }

  /** These changes may have failed and have to be passed on again. @param changes absent: all */
  markDirty(changes?: FlowSetChanges): void {
    this.#record.markDirty(changes?.keys());
  }

  /** The switch refuses this pod. */
  refuse(owner: string, why: string): void {
    this.#record.refuse(podKey(owner), why);
  }

  /** Why the switch does not take a pod's flows, by their keys in the program. */
  get refusals(): ReadonlyMap<string, string> {
    return this.#record.refusals;
  }

  /**
   * Pods whose port number belongs to another pod now, because the switch renumbers ports after its database was lost.
   * Their flows are removed with the same change, and added again once their new number is known.
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
export const podKey = (owner: string): string => `${prefix}${owner}`;
const prefix = "pod/";

/** The owner's, of a flow set's key. */
export const ownerOf = (key: string): string => key.slice(prefix.length);

const isSame = (a: PodOnSwitch, b: PodOnSwitch): boolean =>
  a.ofport === b.ofport &&
  a.mac === b.mac &&
  a.vnid === b.vnid &&
  a.ips.length === b.ips.length &&
  a.ips.every((ip, i) => sameIp(ip, b.ips[i] ?? ip));
