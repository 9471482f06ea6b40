import { readFileSync } from "node:fs";
import { join } from "node:path";
import { eventually } from "../../support/eventually.ts";
import type { NetworkNamespace } from "../../support/network-namespace.ts";
import type { OpenVswitch } from "../open-vswitch.ts";
import type { OwnRun } from "./own-run.ts";

/** Who encrypts: as `ovs.ipsec.esp`. */
export type LabEsp = "kernel" | "userspace";

const monitorProgram = "/usr/share/openvswitch/scripts/ovs-monitor-ipsec";

/** charon marks its own packets, which would else go into its device again. */
const plugins: Readonly<Record<LabEsp, string>> = {
  kernel: "",
  userspace: `kernel-libipsec { load = yes
      allow_peer_ts = yes
      fwmark = 0x42 }
    kernel-netlink { fwmark = !0x42 }
    socket-default { fwmark = 0x42 }`,
};

/**
 * strongSwan and ovs-monitor-ipsec of one node, as Debian has them, in process numbers of their own: so all of it ends
 * with the process that holds these, which ends with this one.
 */
export class IpsecDaemons implements AsyncDisposable {
  readonly #vswitch: OpenVswitch;
  readonly #enter: readonly string[];
  readonly #holder: Bun.Subprocess<"pipe", "pipe", "inherit">;
  readonly #within: NetworkNamespace["within"];
  /** What those that start from now on find in their environment. */
  env: Readonly<Record<string, string>> = {};
  #first = 0;
  #monitor: Bun.Subprocess | undefined;

  private constructor(namespace: NetworkNamespace, run: OwnRun, vswitch: OpenVswitch, esp: LabEsp) {
    this.#vswitch = vswitch;
    this.#within = namespace.within;
    this.#enter = ["setpriv", "--pdeathsig", "KILL", "nsenter", `--net=${namespace.path}`, ...run.entering];
    const log = `filelog { lab { path = ${this.logFile}\n default = 1\n flush_line = yes } }`;
    const conf = `charon { plugins { ${plugins[esp]} }\n ${log} }`;
    const script = `mount -t proc none /proc && printf '%b' "$1" > /etc/strongswan.d/zz-lab.conf && echo ready && read nothing; true`;
    this.#holder = Bun.spawn(
      [...this.#enter, ..."unshare --pid --fork --kill-child=KILL --mount --propagation private".split(" ")].concat([
        // As the first process it takes in what daemons leave behind, which dash does not.
        ...["bash", "-c", script, "bash", conf],
      ]),
      { stdin: "pipe", stdout: "pipe", stderr: "inherit" },
    );
  }

  /** With both daemons. */
  static async start(
    namespace: NetworkNamespace,
    run: OwnRun,
    vswitch: OpenVswitch,
    esp: LabEsp,
  ): Promise<IpsecDaemons> {
    const daemons = new IpsecDaemons(namespace, run, vswitch, esp);
    const { value } = await daemons.#holder.stdout.getReader().read();
    if (new TextDecoder().decode(value) !== "ready\n") throw new Error("Cannot make a place for strongSwan");
    daemons.#first = childOf(daemons.#holder.pid);
    await daemons.startMonitor();
    return daemons;
  }

  /** What charon writes. */
  get logFile(): string {
    return join(this.#vswitch.directory, "charon.log");
  }

  get log(): string {
    try {
      return readFileSync(this.logFile, "utf8");
    } catch {
      return "";
    }
  }

  /** Process of the monitor, as this process numbers it. */
  get monitorPid(): number {
    return childOf(this.#monitor?.pid ?? 0);
  }

  /** Starts it, and it starts strongSwan anew. */
  async startMonitor(): Promise<void> {
    const { directory, socket } = this.#vswitch;
    const pidfile = join(directory, "ovs-monitor-ipsec.pid");
    const options = ["--ike-daemon=strongswan", `--pidfile=${pidfile}`, `--log-file=${join(directory, "monitor.log")}`];
    this.#monitor = this.#start(["/usr/bin/python3", monitorProgram, ...options, `unix:${socket}`]);
    await eventually(async () => /Security Associations/.test(await this.run("ipsec", "status")), "strongSwan");
    await eventually(async () => (await this.run(...this.control("version"))) !== "", "ovs-monitor-ipsec");
  }

  /** Arguments by which ovs-appctl asks the monitor. */
  control(...command: readonly string[]): readonly string[] {
    return ["ovs-appctl", "-t", "ovs-monitor-ipsec", ...command];
  }

  /** Starts strongSwan alone, with what the monitor has told it. */
  async startCharon(how: "as it was" | "without connections" = "as it was"): Promise<void> {
    if (how === "without connections") await this.run("truncate", "--size=0", "/etc/ipsec.conf");
    // What a killed one has left would look as if it ran.
    await this.run("rm", "-f", "/run/charon.pid", "/run/starter.charon.pid");
    await this.run("ipsec", "start");
    await eventually(async () => /Security Associations/.test(await this.run("ipsec", "status")), "strongSwan");
  }

  /** Runs a program among them to its end, whatever comes of it; answers its output. */
  async run(...command: readonly string[]): Promise<string> {
    const child = this.#start(command);
    const said = await new Response(child.stdout).text();
    await child.exited;
    return said;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#holder.kill("SIGKILL");
    await this.#holder.exited;
  }

  #start(command: readonly string[]): Bun.Subprocess<"ignore", "pipe", "ignore"> {
    const target = ["nsenter", `--target=${this.#first}`, "--pid", "--mount", "--net"];
    return this.#within(() =>
      Bun.spawn(["setpriv", "--pdeathsig", "KILL", ...target, ...command], {
        stdin: "ignore",
        stdout: "pipe",
        stderr: "ignore",
        env: { ...process.env, ...this.env, OVS_RUNDIR: this.#vswitch.directory, OVS_LOGDIR: this.#vswitch.directory },
      }),
    );
  }
}

function childOf(pid: number): number {
  try {
    return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ")[0]);
  } catch {
    return 0;
  }
}
