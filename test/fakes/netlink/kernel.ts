import type { ProgramEnded } from "../../../agent/platform/run-program.ts";
import type { ChangeSocket } from "../../../agent/protocols/netlink/change-socket.ts";
import { Errno } from "../../../agent/protocols/netlink/errno.ts";
import type { RawMessage } from "../../../agent/protocols/netlink/message-reader.ts";
import type { NetworkNamespace, OpenedNamespace } from "../../../agent/protocols/netlink/namespace.ts";
import { NetlinkError } from "../../../agent/protocols/netlink/netlink-error.ts";
import { NamespaceInMemory } from "./namespace.ts";
import { LinkSocketInMemory } from "./node-links.ts";
import { type ChainInMemory, PacketFilterInMemory } from "./packet-filter.ts";

/** A node whose kernel is a few maps: its own namespace and those of pods. */
export class NodeInMemory {
  readonly own = new NamespaceInMemory(0);
  /** By their paths. */
  readonly pods = new Map<string, NamespaceInMemory>();
  readonly filter = new PacketFilterInMemory();
  /** Where `nft` is asked, it says this in place of doing it. */
  nftRefusal: ProgramEnded | undefined;
  /** Runs before every request to the kernel about interfaces; what it throws is its refusal. */
  before: (action: string) => void = () => undefined;
  /** What the kernel says to everybody and nobody has read. */
  readonly changes: RawMessage[] = [];

  addPod(path: string): NamespaceInMemory {
    const namespace = new NamespaceInMemory(100 + this.pods.size);
    this.pods.set(path, namespace);
    return namespace;
  }

  /** `nft -f -`, as far as its chains' rules can be counted. */
  nft(text: string): ProgramEnded {
    if (this.nftRefusal !== undefined) return this.nftRefusal;
    let chain: ChainInMemory | undefined;
    let table = "";
    for (const line of text.split("\n")) {
      const [, flushed, emptied] = /^flush chain (inet \S+) (\S+)$/.exec(line) ?? [];
      const rules = this.filter.tables.get(flushed ?? "")?.chains.get(emptied ?? "");
      if (rules !== undefined) rules.rules = [];
      this.filter.tables.delete(/^delete table (inet \S+)$/.exec(line)?.[1] ?? "");
      table = /^table (inet \S+) \{$/.exec(line)?.[1] ?? table;
      const name = /^ {2}chain (\S+) \{$/.exec(line)?.[1];
      if (name !== undefined) {
        chain = { rules: [] };
        const tables = this.filter.tables;
        if (!tables.has(table)) tables.set(table, { chains: new Map(), sets: new Map() });
        tables.get(table)?.chains.set(name, chain);
      } else if (/^ {4}.*;$/.test(line)) chain?.rules.push({ expressions: [], comment: line.trim() });
    }
    return { stdout: "", stderr: "", failure: "", status: 0, isAbsent: false };
  }

  socketIn(namespace: NamespaceInMemory): LinkSocketInMemory {
    const all = (): readonly NamespaceInMemory[] => [this.own, ...this.pods.values()];
    const withId = (id: number): NamespaceInMemory | undefined => all().find((one) => one.id === id);
    const socket = new LinkSocketInMemory(namespace, (fd) => withId(fd) ?? this.own, withId);
    socket.before = (action) => this.before(action);
    return socket;
  }
}

/** The node of the test that runs. */
export const present: { node: NodeInMemory } = { node: new NodeInMemory() };

/** In the place of the real one, of which every agent opens its own (`mocks.ts`). */
export class Kernel implements Disposable {
  static readonly isInMemory = true;
  readonly #node = present.node;

  namespaceAt(path: string): OpenedNamespace {
    const found = this.#node.pods.get(path);
    if (found === undefined) return { t: "missing" };
    return { t: "open", namespace: { path, fd: found.id, [Symbol.dispose]: () => undefined } };
  }

  openSocket(): LinkSocketInMemory {
    return this.#node.socketIn(this.#node.own);
  }

  openSocketIn({ path }: NetworkNamespace): LinkSocketInMemory {
    const found = this.#node.pods.get(path);
    if (found === undefined) throw new Error(`Broken invariant: no namespace "${path}"`);
    return this.#node.socketIn(found);
  }

  openPacketFilterSocket(): PacketFilterInMemory {
    return this.#node.filter;
  }

  openLinkChanges(): Pick<ChangeSocket, "drain"> & Disposable {
    const { changes } = this.#node;
    return {
      drain: (visit) => {
        for (const change of changes.splice(0)) visit(change);
        return false;
      },
      [Symbol.dispose]: () => undefined,
    };
  }

  openPacketFilterChanges(): Pick<ChangeSocket, "drain"> & Disposable {
    return { drain: () => false, [Symbol.dispose]: () => undefined };
  }

  isOwn({ port }: RawMessage): boolean {
    return port === 1;
  }

  writeSysctl(file: string, value: string, namespace?: NetworkNamespace): void {
    const { sysctls } = (namespace === undefined ? undefined : this.#node.pods.get(namespace.path)) ?? this.#node.own;
    if (!sysctls.has(file)) throw new NetlinkError(`open "${file}"`, Errno.ENOENT);
    sysctls.set(file, value);
  }

  [Symbol.dispose](): void {}
}
