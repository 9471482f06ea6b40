import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { freeze } from "../support/freeze.ts";

const schema = "/usr/share/openvswitch/vswitch.ovsschema";

export interface OpenVswitchPlace {
  /** Where its directory is made. */
  readonly parent?: string;
  /** Does something, such as starting a daemon, in the network namespace that is to be the switch's. */
  readonly within?: <T>(work: () => T) => T;
}

/**
 * An Open vSwitch of one's own, with the data path in user space, in the network namespace and with the rights of the
 * calling process unless its place says otherwise: so begin with a `NetworkSandbox`. Both daemons are children of the
 * process and end with it.
 */
export class OpenVswitch implements AsyncDisposable {
  readonly directory: string;
  readonly #within: <T>(work: () => T) => T;
  readonly #daemons = new Map<DaemonName, ChildProcess>();
  /** Process id of the switch that runs, or ran last. */
  #switchPid = 0;

  private constructor({ parent = tmpdir(), within = (work) => work() }: OpenVswitchPlace) {
    this.directory = mkdtempSync(join(parent, "pt-ovs-"));
    this.#within = within;
  }

  /** Both daemons; with `"database"` the server of the database alone. */
  static async start(what: "both" | "database" = "both", place: OpenVswitchPlace = {}): Promise<OpenVswitch> {
    const started = new OpenVswitch(place);
    try {
      await started.startNewDatabase();
      if (what === "both") await started.startSwitch();
      return started;
    } catch (caught) {
      await started[Symbol.asyncDispose]();
      throw caught;
    }
  }

  /** Path of the database's socket. */
  get socket(): string {
    return join(this.directory, "db.sock");
  }

  /** Path of a bridge's socket for OpenFlow. */
  management(bridge: string): string {
    return join(this.directory, `${bridge}.mgmt`);
  }

  /** Path of the socket of ovs-vswitchd that ovs-appctl takes, named as ovs-vswitchd does by itself. */
  get control(): string {
    return join(this.directory, `ovs-vswitchd.${this.#switchPid}.ctl`);
  }

  /** With nothing in it. */
  async startNewDatabase(): Promise<void> {
    rmSync(join(this.directory, "conf.db"), { force: true });
    await this.run("ovsdb-tool", "create", join(this.directory, "conf.db"), schema);
    await this.startDatabase();
    await this.vsctl("--no-wait", "init");
  }

  async startDatabase(): Promise<void> {
    const remotes = [`--remote=punix:${this.socket}`, `--unixctl=${join(this.directory, "ovsdb.ctl")}`];
    // What a killed one has left would look as if it were there.
    rmSync(this.socket, { force: true });
    await this.#start("ovsdb-server", [join(this.directory, "conf.db"), ...remotes], () => this.socket);
  }

  async startSwitch(): Promise<void> {
    const options = ["--disable-system", `--pidfile=${join(this.directory, "ovs-vswitchd.pid")}`];
    await this.#start("ovs-vswitchd", [`unix:${this.socket}`, ...options], ({ pid = 0 }) => {
      this.#switchPid = pid;
      return this.control;
    });
  }

  /** Ends one daemon and waits for its end. Where it is killed its sockets stay behind. */
  async stop(daemon: DaemonName, signal: "SIGTERM" | "SIGKILL" | "SIGSTOP" | "SIGCONT" = "SIGTERM"): Promise<void> {
    const child = this.#daemons.get(daemon);
    if (child === undefined) return;
    if (signal === "SIGSTOP") return freeze(child);
    if (signal === "SIGCONT") return void child.kill(signal);
    this.#daemons.delete(daemon);
    const ended = child.exitCode === null && child.signalCode === null ? onceEnded(child) : undefined;
    child.kill(signal);
    await ended;
  }

  /** Runs ovs-vsctl on this database, for 30 s at most; answers its output. A socket that is there may not listen yet. */
  vsctl(...args: readonly string[]): Promise<string> {
    return this.run("ovs-vsctl", `--db=unix:${this.socket}`, "--timeout=30", "--retry", ...args);
  }

  /** Asks ovs-vswitchd to do something, as ovs-appctl does; answers its output. */
  switchControl(...command: readonly string[]): Promise<string> {
    return this.run("ovs-appctl", "-t", this.control, ...command);
  }

  /** Has packets go by the flows that there are now: the purge alone skips what the switch is just correcting. */
  async forgetCachedFlows(): Promise<void> {
    for (const command of [["revalidator/purge"], ["dpctl/del-flows", "netdev@ovs-netdev"]])
      await this.switchControl(...command);
  }

  /** Asks ovsdb-server to do something, as ovs-appctl does; answers its output. */
  databaseControl(...command: readonly string[]): Promise<string> {
    return this.run("ovs-appctl", "-t", join(this.directory, "ovsdb.ctl"), ...command);
  }

  /** Runs a tool of Open vSwitch; answers its output. */
  async run(tool: string, ...args: readonly string[]): Promise<string> {
    return (await execa(tool, args, { env: this.#environment, timeout: 60_000 })).stdout;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // Stopped processes do not hear that they should end.
    await this.stop("ovs-vswitchd", "SIGKILL");
    await this.stop("ovsdb-server", "SIGKILL");
    rmSync(this.directory, { recursive: true, force: true });
  }

  get #environment(): Record<string, string> {
    return { OVS_RUNDIR: this.directory, OVS_LOGDIR: this.directory, OVS_DBDIR: this.directory };
  }

  /** @param socketOf path of what the process listens at once it is up */
  async #start(daemon: DaemonName, args: readonly string[], socketOf: (child: ChildProcess) => string): Promise<void> {
    // Ends with this process however that ends.
    const options = ["--no-chdir", "-vconsole:off", `--log-file=${join(this.directory, `${daemon}.log`)}`];
    const environment = { ...process.env, ...this.#environment };
    const command = ["--pdeathsig", "KILL", daemon, ...args, ...options];
    const child = this.#within(() => spawn("setpriv", command, { stdio: "ignore", env: environment }));
    this.#daemons.set(daemon, child);
    const socket = socketOf(child);
    const until = performance.now() + 30_000;
    while (!existsSync(socket)) {
      if (child.exitCode !== null || child.signalCode !== null || performance.now() > until)
        throw new Error(`Cannot start ${daemon}: it ended with ${child.exitCode ?? child.signalCode ?? "nothing"}`);
      await Bun.sleep(5);
    }
  }
}

export type DaemonName = "ovsdb-server" | "ovs-vswitchd";

const onceEnded = (child: ChildProcess): Promise<void> => new Promise((resolve) => child.once("exit", () => resolve()));
