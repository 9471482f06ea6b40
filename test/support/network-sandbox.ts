import { readdirSync, readlinkSync } from "node:fs";
import { execa } from "execa";
import { NetworkNamespace } from "./network-namespace.ts";
import { ownNamedNamespaces } from "./own-named-namespaces.ts";

/**
 * A network of its own for one test file. The calling thread moves into a fresh, anonymous network namespace,
 * "the node", and everything that it opens or starts from then on sees only that: bridges, nftables, sysctls. Its pods'
 * namespaces have names that others do not see either, since agents look for addresses in all that have one.
 * Disposing moves it back and removes the pods' namespaces.
 */
export class NetworkSandbox implements AsyncDisposable {
  readonly #prefix: string;
  readonly #pods: string[] = [];
  readonly #home = NetworkNamespace.current();

  /** `prefix` is the start of the namespaces' names in /run/netns; the process id follows. */
  private constructor(prefix: string) {
    this.#prefix = `${prefix}${process.pid}-`;
    ownNamedNamespaces();
    using node = NetworkNamespace.create();
    node.enter();
  }

  static async enter(prefix: string): Promise<NetworkSandbox> {
    const sandbox = new NetworkSandbox(prefix);
    await execa("ip", ["link", "set", "lo", "up"]);
    return sandbox;
  }

  /** A new namespace, down to its loopback, under /run/netns. Answers its path. */
  async addPod(name = `p${this.#pods.length}`): Promise<string> {
    const full = `${this.#prefix}${name}`;
    await execa("ip", ["netns", "add", full]);
    this.#pods.push(full);
    return `/run/netns/${full}`;
  }

  async removePod(path: string): Promise<void> {
    const name = nameOf(path);
    this.#pods.splice(this.#pods.indexOf(name), 1);
    await execa("ip", ["netns", "del", name]);
  }

  /** Runs a command line, split at blanks, in the node's namespace; answers its output. */
  async node(command: string): Promise<string> {
    const [file = "", ...args] = command.split(" ");
    return (await execa(file, args)).stdout;
  }

  /** The same with something to read. */
  async nodeWith(command: string, input: string): Promise<string> {
    const [file = "", ...args] = command.split(" ");
    return (await execa(file, args, { input })).stdout;
  }

  /** The same in a pod's. */
  pod(path: string, command: string): Promise<string> {
    return this.node(`ip netns exec ${nameOf(path)} ${command}`);
  }

  /** Whether one of `count` pings comes back within two seconds, from a pod or (no path) from the node. */
  async ping(path: string | undefined, address: string, count: "one" | "many" = "many"): Promise<boolean> {
    const command = `ping -n -q -c 1 ${count === "one" ? "-W 2" : "-i 0.2 -w 2"} ${address}`;
    try {
      await (path === undefined ? this.node(command) : this.pod(path, command));
      return true;
    } catch {
      return false;
    }
  }

  /** The network namespaces that threads of this process live in, each once. */
  threadNamespaces(): readonly string[] {
    const all = readdirSync("/proc/self/task").flatMap((thread) => {
      try {
        return [readlinkSync(`/proc/self/task/${thread}/ns/net`)];
      } catch {
        return []; // The thread has ended since.
      }
    });
    return [...new Set(all)];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const name of this.#pods.splice(0)) await execa("ip", ["netns", "del", name], { reject: false });
    this.#home.enter();
    this.#home[Symbol.dispose]();
  }
}

const nameOf = (path: string): string => path.slice(path.lastIndexOf("/") + 1);
