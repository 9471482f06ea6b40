import { eventually } from "../../support/agent-process.ts";
import type { NetworkNamespace } from "../../support/network-namespace.ts";

/** The device of a node that encrypts, as agents name it. */
export const encryptingDevice = "pipette-wg0";

/** What a node has of /etc is its own too: it is written to memory. */
const ownEtc =
  "mkdir /run/etc /run/work && mount -t overlay none -o lowerdir=/etc,upperdir=/run/etc,workdir=/run/work /etc";

/**
 * A /run that only one node sees. It is held by a process that ends when this process does, however that ends, and that
 * takes the node's encrypting device away then: its daemon ends with it, and nothing else would end that.
 */
export class OwnRun implements AsyncDisposable {
  readonly #child: Bun.Subprocess<"pipe", "pipe", "inherit">;

  private constructor(namespace: NetworkNamespace) {
    const script = `mount -t tmpfs none /run && ${ownEtc} && echo ready && read nothing; ip link del ${encryptingDevice} 2>/dev/null; true`;
    this.#child = namespace.within(() =>
      Bun.spawn(["unshare", "--mount", "--propagation", "private", "sh", "-c", script], {
        stdin: "pipe",
        stdout: "pipe",
        stderr: "inherit",
      }),
    );
  }

  static async start(namespace: NetworkNamespace): Promise<OwnRun> {
    const own = new OwnRun(namespace);
    let said = "";
    void (async () => {
      for await (const chunk of own.#child.stdout) said += new TextDecoder().decode(chunk);
    })();
    await eventually(() => said === "ready\n", "a /run of its own");
    return own;
  }

  /** What `nsenter` takes to get there. */
  get entering(): readonly string[] {
    return [`--mount=/proc/${this.#child.pid}/ns/mnt`];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#child.stdin.end();
    await this.#child.exited;
  }
}
