import { type Cidr, sameIp } from "../../../shared/net/ip.ts";
import type { ClusterNode } from "../../cluster/node-registry.ts";
import type { PipelineContext } from "./pipeline/context.ts";
import { Category } from "./pipeline/cookie.ts";
import { peerFlows } from "./pipeline/mod.ts";
import { AppliedRecord } from "./program/applied-record.ts";
import { isRefusedFlowSet, type SwitchProgram } from "./program/flow-set.ts";

/** Records which other nodes the switch's program has, so that only changes are passed on. */
export class AppliedPeers {
  readonly #record = new AppliedRecord<ClusterNode>();

  /**
   * Passes changed nodes to the program, each separately: one whose flows are refused, for example because of a
   * duplicate address, does not affect the others and is tried again next time. Removed nodes come first.
   * @returns whether anything had changed
   * @throws {CniError} 11, 102: the first refusal, once all are applied
   */
  async apply(
    program: SwitchProgram,
    context: PipelineContext,
    nodes: ReadonlyMap<string, ClusterNode>,
  ): Promise<boolean> {
    const wanted = new Map([...nodes].map(([name, node]) => [`node/${name}`, node]));
    const gone = [...this.#record.entries()].filter(([key]) => !wanted.has(key)).map(([key]) => key);
    const changed = [...wanted].filter(([key, node]) => !this.#record.isApplied(key, (one) => isSame(one, node)));
    const outcomes = await Promise.allSettled([
      ...gone.map((key) => this.#remove(program, key)),
      ...changed.map(([key, node]) => this.#set(program, key, node, context)),
    ]);
    const failed = outcomes.find((outcome) => outcome.status === "rejected");
    if (failed !== undefined) throw failed.reason;
    return outcomes.length > 0;
  }

  /** Everything has to be passed to the program again. */
  markDirty(): void {
    this.#record.markDirty();
  }

  /** Why the switch does not take a node's flows, by their keys in the program. */
  get refusals(): ReadonlyMap<string, string> {
    return this.#record.refusals;
  }

  /** It stays dirty, and is tried again, until the program has removed it. */
  async #remove(program: SwitchProgram, key: string): Promise<void> {
    await this.#attempt(key, () => program.set(new Map([[key, undefined]])));
    this.#record.delete(key);
  }

  async #set(program: SwitchProgram, key: string, node: ClusterNode, context: PipelineContext): Promise<void> {
    this.#record.set(key, node);
    await this.#attempt(key, () =>
      program.set(new Map([[key, { category: Category.node, flows: peerFlows(context, node) }]])),
    );
    this.#record.clearRefusals([key]);
  }

  async #attempt(key: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (caught) {
      this.#record.markDirty([key]);
      if (isRefusedFlowSet(caught)) this.#record.refuse(key, caught.message);
      // An earlier refusal may no longer apply.
      else this.#record.clearRefusals([key]);
      throw caught;
    }
  }
}

/** Compares only what flows depend on. */
const isSame = (a: ClusterNode, b: ClusterNode): boolean =>
  a.mac === b.mac &&
  Bun.deepEquals(a.encryption, b.encryption) &&
  a.addresses.length === b.addresses.length &&
  a.addresses.every((ip, i) => sameIp(ip, b.addresses[i] ?? ip)) &&
  a.subnets.length === b.subnets.length &&
  a.subnets.every((subnet, i) => isSameCidr(subnet, b.subnets[i] ?? subnet));

const isSameCidr = (a: Cidr, b: Cidr): boolean => sameIp(a.ip, b.ip) && a.prefix === b.prefix;
