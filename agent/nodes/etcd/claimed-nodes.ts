import { formatCidr } from "../../../shared/ip.ts";
import { LiveValue } from "../../live-value.ts";
import type { ClusterNode, Followed } from "../node-registry.ts";
import type { Owner } from "./records.ts";

type Nodes = ReadonlyMap<string, ClusterNode>;

/**
 * The nodes, those first whose subnets' keys say that they have them, and of equals who has said it for longest: a record
 * that claims what another has comes after it. There is nothing until both are known, or the first would be believed for good.
 */
export class ClaimedNodes implements Followed<Nodes> {
  readonly #value = new LiveValue<Nodes>();
  readonly #parts = new AsyncDisposableStack();

  /** Both are ended with it. @param nodes @param owners of subnets, by their texts; each with what changed last at the end */
  constructor(nodes: Followed<Nodes>, owners: Followed<ReadonlyMap<string, Owner>>) {
    this.#parts.use(nodes);
    this.#parts.use(owners);
    const publish = (): void => {
      if (nodes.current === undefined || owners.current === undefined) return;
      const ordered = inOrder(nodes.current, owners.current);
      // A node that joins is told of twice, as what it has and as who has it.
      if (!isSame(ordered, this.#value.current)) this.#value.set(ordered);
    };
    this.#parts.use(nodes.subscribe(publish));
    this.#parts.use(owners.subscribe(publish));
  }

  get current(): Nodes | undefined {
    return this.#value.current;
  }

  subscribe(listener: (nodes: Nodes) => void): Disposable {
    return this.#value.subscribe(listener);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#parts.disposeAsync();
  }
}

function inOrder(nodes: Nodes, owners: ReadonlyMap<string, Owner>): Nodes {
  const holds = ({ name, uid, subnets }: ClusterNode): boolean =>
    subnets.every((subnet) => {
      const owner = owners.get(formatCidr(subnet));
      return owner?.node === name && owner.uid === uid;
    });
  const holders: [string, ClusterNode][] = [];
  const others: [string, ClusterNode][] = [];
  for (const entry of nodes) (holds(entry[1]) ? holders : others).push(entry);
  return new Map([...holders, ...others]);
}

function isSame(a: Nodes, b: Nodes | undefined): boolean {
  if (a.size !== b?.size) return false;
  const others = b.values();
  return [...a.values()].every((node) => node === others.next().value);
}
