import { readNode, readOwner } from "../../agent/cluster/etcd/records.ts";
import type { Endpoint } from "../../agent/protocols/etcd/connection.ts";
import { keyOf, parseEndpoints, textOf, type WatchResponse, watch } from "../../agent/protocols/etcd/mod.ts";
import { formatCidr } from "../../shared/net/ip.ts";

/**
 * Replays everything that ever happened to the registry from etcd's history, and looks after each single revision whether
 * every subnet of a node is marked as its own, every mark belongs to a node, and no node has changed its subnet.
 */
export async function replay(
  endpoint: string,
  upTo: { readonly name: string },
  prefix = "/pipette/v1/",
): Promise<{ readonly revisions: number; readonly violations: readonly string[] }> {
  const [target] = parseEndpoints([endpoint], {}) as [Endpoint];
  const history = new History(prefix, upTo.name);
  await watch({
    endpoint: target,
    request: { key: prefix, rangeEnd: `${prefix.slice(0, -1)}0`, startRevision: 1 },
    signal: history.end.signal,
    timeoutMs: 30_000,
    onResponse: (response) => history.take(response),
  });
  if (!history.end.signal.aborted) throw new Error(`Cannot replay the registry: node "${upTo.name}" never came`);
  return history;
}

class History {
  readonly #prefix: string;
  readonly #last: string;
  readonly end = new AbortController();
  readonly violations: string[] = [];
  revisions = 0;
  readonly #nodes = new Map<string, { readonly uid: string; readonly subnets: readonly string[] }>();
  readonly #marks = new Map<string, string>();
  readonly #ever = new Map<string, string>();

  constructor(prefix: string, last: string) {
    this.#prefix = prefix;
    this.#last = last;
  }

  take({ events }: WatchResponse): void {
    for (const [i, { type, kv }] of events.entries()) {
      if (kv === undefined || this.end.signal.aborted) continue;
      this.#apply(keyOf(kv).slice(this.#prefix.length), type === 0 ? textOf(kv) : undefined);
      if (events[i + 1]?.kv?.modRevision === kv.modRevision) continue;
      this.revisions++;
      this.#look(kv.modRevision);
      if (this.#nodes.has(this.#last)) this.end.abort();
    }
  }

  #apply(key: string, value: string | undefined): void {
    const [kind, name] = [key.slice(0, key.indexOf("/")), key.slice(key.indexOf("/") + 1)];
    if (kind === "subnets") {
      const owner = value === undefined ? undefined : readOwner(value);
      if (owner === undefined) this.#marks.delete(name);
      else this.#marks.set(name, `${owner.node} ${owner.uid}`);
    }
    if (kind !== "nodes") return;
    if (value === undefined) {
      this.#nodes.delete(name);
      this.#ever.delete(name);
      return;
    }
    const { uid, subnets } = readNode(name, value);
    const texts = subnets.map(formatCidr);
    const now = `${uid} ${texts}`;
    if ((this.#ever.get(name) ?? now) !== now) this.violations.push(`${name} was ${this.#ever.get(name)}, is ${now}`);
    this.#ever.set(name, now);
    this.#nodes.set(name, { uid, subnets: texts });
  }

  #look(revision: number): void {
    const wanted = new Map(
      [...this.#nodes].flatMap(([name, { uid, subnets }]) => subnets.map((each) => [each, `${name} ${uid}`])),
    );
    const subnets = [...this.#nodes.values()].flatMap((node) => node.subnets);
    if (wanted.size !== subnets.length) this.violations.push(`revision ${revision}: a subnet has two nodes`);
    if (wanted.size !== this.#marks.size)
      this.violations.push(`revision ${revision}: ${wanted.size} subnets, ${this.#marks.size} marks`);
    for (const [subnet, owner] of wanted) {
      if (this.#marks.get(subnet) !== owner)
        this.violations.push(`revision ${revision}: ${subnet} of ${owner} is marked for ${this.#marks.get(subnet)}`);
    }
  }
}
