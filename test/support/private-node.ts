import { existsSync, mkdtempSync, readdirSync, readFileSync, rmdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { execa } from "execa";

/**
 * Mounts the node's own file systems over the fixed places of runtimes, below /run and /var/lib. The shell stays as
 * process 1: bash reaps orphans, and ends when its stdin is closed, that is with the process that started the node.
 */
const script = `set -e
mount -t tmpfs -o mode=755 run /run
mount -t tmpfs -o mode=755 lib /var/lib
mount -t tmpfs -o mode=755 libexec /usr/libexec
mount -t tmpfs -o mode=1777 shm /dev/shm
mkdir /run/netns
ip link set lo up
echo ready
read -r _ || true`;

/**
 * Puts the first process into a control group of its own, which it sees as the root, and mounts the hierarchies again.
 * A cpuset has to be filled before a process can join it.
 */
const ownGroups = `set -e
for group in /sys/fs/cgroup/*/; do
  mkdir $group$0
  case $group in */cpuset/) for file in cpuset.cpus cpuset.mems; do cat $group$file > $group$0/$file; done;; esac
  echo $$ > $group$0/cgroup.procs
done
exec unshare --cgroup bash -c '
  for group in /sys/fs/cgroup/*/; do
    name=$(basename $group)
    umount $group
    case $name in
      unified) mount -t cgroup2 cgroup2 $group;;
      systemd) mount -t cgroup -o none,name=systemd cgroup $group;;
      *) mount -t cgroup -o $name cgroup $group;;
    esac
  done
  eval "$0"
' "$1"`;

export interface PrivateNodeOptions {
  /** Whether it sees only its own control groups: kubelets take those that they see for the machine's. */
  readonly ownGroups?: boolean;
}

/**
 * A machine inside the machine, for container runtimes: network, mounts and processes of its own. Whatever runs in
 * it, daemonized or not, ends with it, and it ends with this process, however that ends.
 */
export class PrivateNode implements AsyncDisposable {
  /** For its files, seen from inside and outside alike; gone with the node. */
  readonly directory = mkdtempSync(join(tmpdir(), "pipette-node-"));
  /** The control group for the pods that run in it; gone with the node. */
  readonly cgroup = `/${basename(this.directory)}`;
  readonly #holder: Bun.Subprocess<"pipe", "pipe", "inherit">;
  #prefix: readonly string[] = [];
  #firstPid = 0;

  private constructor({ ownGroups: hasOwnGroups = false }: PrivateNodeOptions) {
    const own = ["--mount", "--propagation", "private", "--net", "--pid", "--fork", "--mount-proc"];
    const first = hasOwnGroups ? [ownGroups, this.cgroup, script] : [script];
    this.#holder = Bun.spawn(["unshare", ...own, "--kill-child", "bash", "-c", ...first], {
      stdin: "pipe",
      stdout: "pipe",
      stderr: "inherit",
    });
  }

  static async start(options: PrivateNodeOptions = {}): Promise<PrivateNode> {
    const node = new PrivateNode(options);
    for await (const chunk of node.#holder.stdout) {
      if (!new TextDecoder().decode(chunk).includes("ready")) continue;
      const { pid } = node.#holder;
      const first = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
      node.#firstPid = Number(first);
      node.#prefix = ["nsenter", "--target", first, "--mount", "--net", "--pid", "--cgroup", "--"];
      return node;
    }
    await node[Symbol.asyncDispose]();
    throw new Error("Cannot start a node in namespaces of its own: it has ended, wanted it ready");
  }

  /** What to put before a command so that it runs in the node. */
  get prefix(): readonly string[] {
    return this.#prefix;
  }

  /** The process that holds the node's namespaces, as it is numbered outside. */
  get firstPid(): number {
    return this.#firstPid;
  }

  /** Runs a command line, split at blanks, in the node; answers its output. @throws where it fails */
  run(command: string): Promise<string> {
    return this.runWords(command.split(" "));
  }

  async runWords(words: readonly string[]): Promise<string> {
    const [file = "", ...args] = [...this.#prefix, ...words];
    return (await execa(file, args, { cwd: "/", timeout: 60_000, stdin: "ignore" })).stdout;
  }

  /** The same in the network namespace at `path`, a path of the node's. */
  runIn(path: string, command: string): Promise<string> {
    return this.runWords(["nsenter", `--net=${path}`, ...command.split(" ")]);
  }

  /** Whether a ping comes back within two seconds, from the network namespace at `path` or (`undefined`) from the node. */
  async ping(path: string | undefined, address: string): Promise<boolean> {
    const command = `ping -n -q -c 1 -W 2 ${address}`;
    return (path === undefined ? this.run(command) : this.runIn(path, command)).then(
      () => true,
      () => false,
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#holder.stdin.end();
    const timer = setTimeout(() => this.#holder.kill("SIGKILL"), 5_000);
    await this.#holder.exited;
    clearTimeout(timer);
    removeCgroup(this.cgroup);
    rmSync(this.directory, { recursive: true, force: true });
  }
}

/** Removes the group in every hierarchy, children first. */
function removeCgroup(name: string): void {
  const root = "/sys/fs/cgroup";
  const hierarchies = readdirSync(root, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  const removeTree = (path: string): void => {
    if (!existsSync(path)) return;
    for (const entry of readdirSync(path, { withFileTypes: true }))
      if (entry.isDirectory()) removeTree(join(path, entry.name));
    rmdirSync(path);
  };
  for (const place of [root, ...hierarchies.map((entry) => join(root, entry.name))]) removeTree(join(place, name));
}
