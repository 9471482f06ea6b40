import { formatIp } from "../../../shared/net/ip.ts";
import type { PipelineContext } from "./pipeline/context.ts";
import { Category } from "./pipeline/cookie.ts";
import { podFlows } from "./pipeline/mod.ts";
import type { FlowSet } from "./program/flow-set.ts";

/** What the flows of a pod are made of. */
export type FlowPort = Parameters<typeof podFlows>[1];
export type PodParts = ReadonlyMap<string, FlowSet | undefined>;

/** Of a pod that the program may have something of: nobody knows what. */
const unknown = "";

/** What the program was told of pods, by their owners' keys, to tell it only of changes. What is answered is taken for told. */
export class AppliedPods {
  readonly #told = new Map<string, { readonly ofport: number; readonly text: string }>();

  /** The parts of those whose flows are other than was told. */
  changed(context: PipelineContext, ports: Iterable<readonly [string, FlowPort]>): PodParts {
    const parts = new Map<string, FlowSet | undefined>();
    for (const [key, port] of ports) {
      const text = [port.ofport, port.mac, port.vnid, ...port.ips.map(formatIp)].join(" ");
      if (this.#told.get(key)?.text === text) continue;
      this.#told.set(key, { ofport: port.ofport, text });
      parts.set(partKey(key), { category: Category.pod, flows: podFlows(context, port) });
    }
    for (const [key, ofport] of this.#overtaken(parts)) {
      this.#told.set(key, { ofport, text: unknown });
      parts.set(partKey(key), undefined);
    }
    return parts;
  }

  /** These may have come to nothing: they are told again. */
  doubt(parts: PodParts): void {
    for (const [key, { ofport }] of this.#told) {
      if (parts.has(partKey(key))) this.#told.set(key, { ofport, text: unknown });
    }
  }

  /** What takes these away, as far as they were told. */
  gone(keys: readonly string[]): PodParts {
    return new Map(keys.filter((key) => this.#told.delete(key)).map((key) => [partKey(key), undefined]));
  }

  /** All of it is to be told again. */
  forget(): void {
    for (const [key, { ofport }] of this.#told) this.#told.set(key, { ofport, text: unknown });
  }

  /** Those whose port number is another's now: the switch numbers ports anew where its database was lost. */
  #overtaken(parts: PodParts): (readonly [string, number])[] {
    const told = [...this.#told].map(([key, { ofport }]) => [key, ofport] as const);
    const taken = new Set(told.flatMap(([key, ofport]) => (parts.has(partKey(key)) ? [ofport] : [])));
    return told.filter(([key, ofport]) => !parts.has(partKey(key)) && taken.has(ofport));
  }
}

export const partKey = (owner: string): string => `pod/${owner}`;
