import { readFileSync } from "node:fs";
import { execa } from "execa";
import { eventually } from "../support/agent-process.ts";

/** The targets that units of ours and of systemd itself mean; none of the machine's own units is known. */
const targets = ["basic", "multi-user", "network-pre", "shutdown", "sysinit"];

/** Where the machine inside has them: wherever they lie outside, a directory above may be hidden there. */
export const executablesInside = "/mnt";

/**
 * Makes the machine inside the machine, and becomes its process 1. What systemd or an installation writes to is its own:
 * /etc is a copy, and what is mounted here ends with it.
 */
const script = `set -e
mount --make-rprivate /
mount -t proc proc /proc
mount --bind "$0" ${executablesInside}
for directory in run var/lib opt tmp usr/local/bin usr/libexec; do mount -t tmpfs -o mode=755 tmpfs /$directory; done
mkdir /run/etc /run/netns /run/systemd && cp -a /etc/. /run/etc && mount --bind /run/etc /etc
for directory in /lib/systemd/system /lib/systemd/system-generators /etc/systemd; do
  mount -t tmpfs -o mode=755 tmpfs $directory
done
mkdir /etc/systemd/system
if [ "$(stat -f -c %T /sys/fs/cgroup)" = cgroup2fs ]; then
  mount -t cgroup2 cgroup2 /sys/fs/cgroup
else
  mount -t tmpfs -o mode=755 tmpfs /sys/fs/cgroup && mkdir /sys/fs/cgroup/systemd
  mount -t cgroup -o none,name=systemd systemd /sys/fs/cgroup/systemd
fi
for target in ${targets.join(" ")}; do
  printf '[Unit]\\nDefaultDependencies=no\\n' >/lib/systemd/system/$target.target
done
ip link set lo up
# As systemd does where it is started by a kernel: mounts of the machine show up in its services.
mount --make-rshared /
export container=other
exec /lib/systemd/systemd --system --unit=basic.target --show-status=no --log-target=null`;

export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
}

/** A machine of its own network, mounts and processes that systemd runs. It ends with this process, however that ends. */
export class SystemdNode implements AsyncDisposable {
  readonly #holder: Bun.Subprocess<"ignore", "inherit", "inherit">;
  readonly firstPid: number;
  readonly #prefix: readonly string[];

  private constructor(holder: Bun.Subprocess<"ignore", "inherit", "inherit">, firstPid: number) {
    this.#holder = holder;
    this.firstPid = firstPid;
    this.#prefix = ["nsenter", "--target", String(firstPid), "--mount", "--net", "--pid", "--"];
  }

  /** @param executables directory of those that it is to have */
  static async start(executables: string): Promise<SystemdNode> {
    const own = ["--mount", "--net", "--pid", "--ipc", "--uts", "--cgroup", "--fork", "--kill-child"];
    const command = ["setpriv", "--pdeathsig", "KILL", "unshare", ...own, "sh", "-c", script, executables];
    const holder = Bun.spawn(command, { stdin: "ignore", stdout: "inherit", stderr: "inherit" });
    const { pid } = holder;
    const first = await eventually(() => {
      const child = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
      return child !== "" && readFileSync(`/proc/${child}/comm`, "utf8") === "systemd\n" && child;
    }, "systemd");
    const node = new SystemdNode(holder, Number(first));
    await eventually(
      () =>
        node
          .run("systemctl is-active basic.target")
          .then(() => true)
          .catch(() => false),
      "systemd to have started",
    );
    return node;
  }

  /** Runs a command line, split at blanks, on the node; answers its output. @throws where it fails */
  async run(command: string, { env = {}, input = "" }: RunOptions = {}): Promise<string> {
    const [file = "", ...args] = [...this.#prefix, ...command.split(" ")];
    return (await execa(file, args, { cwd: "/", timeout: 60_000, input, env })).stdout;
  }

  /** The same in the network namespace of that name. */
  runIn(namespace: string, command: string): Promise<string> {
    return this.run(`ip netns exec ${namespace} ${command}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#holder.kill("SIGKILL");
    await this.#holder.exited;
  }
}
