import { runProgram } from "../../../../platform/run-program.ts";

/** A question to strongSwan, which answers within milliseconds or not at all. */
const strokeMs = 5_000;
/** How often a node lets the other one begin. */
const patience = 3;

/**
 * Where strongSwan itself encrypts (kernel-libipsec) it does not notice packets that need keys, so connections are begun
 * from here. The one with the lesser name begins at once, since two that begin in the same moment undo each other's.
 */
export class UserspaceConnections {
  readonly #own: string;
  /** How often each tunnel was found without keys, by its port's name. */
  readonly #waited = new Map<string, number>();

  /** @param own name of this node */
  constructor(own: string) {
    this.#own = own;
  }

  /**
   * Begins with those that have no keys. Never throws: it is called again.
   * @param idle ports' names, with their nodes
   * @returns of those with which it was to begin, the ones that strongSwan does not know
   */
  async begin(idle: ReadonlyMap<string, string>): Promise<readonly string[]> {
    for (const port of this.#waited.keys()) if (!idle.has(port)) this.#waited.delete(port);
    const due = [...idle].flatMap(([port, node]) => {
      const times = this.#waited.get(port) ?? 0;
      this.#waited.set(port, times + 1);
      return this.#own < node || times >= patience ? [port] : [];
    });
    if (due.length === 0) return [];
    const { stdout } = await runProgram("ipsec", ["statusall"], { deadlineMs: strokeMs });
    const names = childrenOf(stdout, new Set(due));
    for (const name of names) await runProgram("ipsec", ["stroke", "up-nb", name], { deadlineMs: strokeMs });
    // Its exit status says something only in the daemon's own process numbers.
    if (!stdout.includes("Connections:")) return [];
    return due.filter((port) => !names.some((name) => name.startsWith(`${port}-`)));
  }
}

/** Names of connections for packets, as `ipsec statusall` lists them: `p-n2-3fa09c-out-1:   child:  dynamic[udp] …`. */
export const childrenOf = (status: string, ports: ReadonlySet<string>): readonly string[] =>
  [...status.matchAll(/^\s*(([\w.-]{1,15}?)(?:-(?:in|out))?-\d{1,10}):\s+child:/gm)].flatMap(
    ([, name = "", port = ""]) => (ports.has(port) ? [name] : []),
  );
