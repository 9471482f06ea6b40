import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePorts } from "../support/free-ports.ts";
import { freeze } from "../support/freeze.ts";
import { textAt } from "./text-at.ts";

/** Where a member is: an address, and the network namespace that has it. */
export interface MemberPlace {
  readonly address: string;
  /** Its name in /run/netns … */
  readonly namespace?: string;
  /** … or what does something inside it. */
  readonly within?: <T>(work: () => T) => T;
}

export interface EtcdClusterOptions {
  /** How many members on 127.0.0.1, or where each is. */
  readonly members?: number | readonly MemberPlace[];
  /** For members and clients alike; absent: neither encrypts. */
  readonly tls?: { readonly ca: string; readonly cert: string; readonly key: string };
  /** Where the database counts as full. */
  readonly quotaBytes?: number;
  /** Where its directory is made. */
  readonly parent?: string;
}

interface Member {
  readonly name: string;
  readonly clientUrl: string;
  readonly peerUrl: string;
  readonly plainUrl: string;
  readonly place: MemberPlace;
  process: ChildProcess | undefined;
  ran: boolean;
}

/**
 * A cluster of etcd of one's own. Its members are children of the process, and end with it. It waits for the disk as
 * little as a member that is killed, rather than a machine, needs.
 */
export class EtcdCluster implements AsyncDisposable {
  readonly directory: string;
  readonly #options: EtcdClusterOptions;
  readonly #members: readonly Member[];
  // Members that are left from another cluster on the same ports are none of this one's.
  #token: string = randomUUID();

  private constructor(options: EtcdClusterOptions, members: readonly Member[]) {
    this.directory = mkdtempSync(join(options.parent ?? tmpdir(), "pt-etcd-"));
    this.#options = options;
    this.#members = members;
  }

  static async start(options: EtcdClusterOptions = {}): Promise<EtcdCluster> {
    const { members = 1, tls } = options;
    const scheme = tls === undefined ? "http" : "https";
    const places: readonly MemberPlace[] =
      typeof members === "number" ? Array.from({ length: members }, () => ({ address: "127.0.0.1" })) : members;
    const all: Member[] = [];
    for (const [i, place] of places.entries()) {
      const { address, namespace, within } = place;
      // In a namespace nobody else is on the usual ports.
      const isAlone = namespace !== undefined || within !== undefined;
      const [client, peer, plain] = isAlone ? [2379, 2380, 2381] : await freePorts(3);
      all.push({
        name: `n${i}`,
        clientUrl: `${scheme}://${address}:${client}`,
        peerUrl: `http://${address}:${peer}`,
        plainUrl: `http://${address}:${plain}`,
        place,
        process: undefined,
        ran: false,
      });
    }
    const cluster = new EtcdCluster(options, all);
    try {
      await Promise.all(all.map((_, i) => cluster.startMember(i)));
      return cluster;
    } catch (caught) {
      await cluster[Symbol.asyncDispose]();
      throw caught;
    }
  }

  /** One per member, for the registry. */
  get endpoints(): readonly string[] {
    return this.#members.map(({ clientUrl }) => clientUrl);
  }

  endpoint(i: number): string {
    return this.#member(i).clientUrl;
  }

  /** Which member leads, as soon as one of those that answer says that it does. */
  async leader(): Promise<number> {
    for (const until = performance.now() + 30_000; performance.now() < until; await Bun.sleep(20)) {
      const metrics = await Promise.all(
        this.#members.map(({ plainUrl, place }) => textAt(`${plainUrl}/metrics`, place.within)),
      );
      const found = metrics.findIndex((text) => text.includes("\netcd_server_is_leader 1\n"));
      if (found >= 0) return found;
    }
    throw new Error("Cannot find the leader: no member says that it is, wanted one");
  }

  /** Starts a member, or starts it again from what it has on disk, and waits until it serves with a majority. */
  async startMember(i: number): Promise<void> {
    const member = this.#member(i);
    this.#spawn(member);
    member.ran = true;
    await this.healthy(i);
  }

  /** Until the member serves, which takes a majority of them. */
  async healthy(i: number): Promise<void> {
    const member = this.#member(i);
    const until = performance.now() + 30_000;
    for (;;) {
      const answer = await textAt(`${member.plainUrl}/health`, member.place.within);
      if (answer.includes('"health":"true"')) return;
      const ended = member.process?.exitCode ?? member.process?.signalCode;
      if (ended !== null || performance.now() > until)
        throw new Error(`Cannot start etcd: ${ended ?? "it does not serve"}\n${this.log(i).slice(-2_000)}`);
      await Bun.sleep(20);
    }
  }

  /** Ends a member and waits for its end; or stops it, or lets it go on. */
  async signal(i: number, signal: "SIGKILL" | "SIGTERM" | "SIGSTOP" | "SIGCONT"): Promise<void> {
    const member = this.#member(i);
    const { process } = member;
    if (process === undefined) return;
    if (signal === "SIGSTOP") return freeze(process);
    if (signal === "SIGCONT") return void process.kill(signal);
    member.process = undefined;
    const ended =
      process.exitCode === null && process.signalCode === null
        ? new Promise<void>((resolve) => process.once("exit", () => resolve()))
        : undefined;
    process.kill(signal);
    await ended;
  }

  /** Where a member keeps everything that it knows. */
  data(i: number): string {
    return join(this.directory, this.#member(i).name);
  }

  /** Ends all members and begins anew at the same addresses: another cluster, which knows nothing. */
  async begin(): Promise<void> {
    await Promise.all(this.#members.map((_, i) => this.signal(i, "SIGKILL")));
    this.#token = randomUUID();
    for (const [i, member] of this.#members.entries()) {
      rmSync(this.data(i), { recursive: true, force: true });
      member.ran = false;
    }
    await Promise.all(this.#members.map((_, i) => this.startMember(i)));
  }

  /** What a member has said. */
  log(i: number): string {
    return readFileSync(join(this.directory, `${this.#member(i).name}.log`), "utf8");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#members.map((_, i) => this.signal(i, "SIGKILL")));
    rmSync(this.directory, { recursive: true, force: true });
  }

  #member(i: number): Member {
    const member = this.#members[i];
    if (member === undefined) throw new Error(`Cannot find member ${i}: there are ${this.#members.length}`);
    return member;
  }

  #spawn(member: Member): void {
    const { tls, quotaBytes } = this.#options;
    const { namespace, within = (work) => work() } = member.place;
    const inNamespace = namespace === undefined ? [] : ["ip", "netns", "exec", namespace];
    const certificates =
      tls === undefined
        ? []
        : ["--client-cert-auth", "--trusted-ca-file", tls.ca, "--cert-file", tls.cert, "--key-file", tls.key];
    const args = [
      ...["--name", member.name, "--data-dir", join(this.directory, member.name)],
      ...["--listen-client-urls", member.clientUrl, "--advertise-client-urls", member.clientUrl],
      ...["--listen-peer-urls", member.peerUrl, "--initial-advertise-peer-urls", member.peerUrl],
      ...["--listen-metrics-urls", member.plainUrl],
      ...["--initial-cluster", this.#members.map(({ name, peerUrl }) => `${name}=${peerUrl}`).join(",")],
      ...["--initial-cluster-state", member.ran ? "existing" : "new", "--initial-cluster-token", this.#token],
      ...["--heartbeat-interval", "50", "--election-timeout", "500", "--pre-vote", "--unsafe-no-fsync"],
      ...["--logger", "zap", "--log-level", "warn"],
      ...(quotaBytes === undefined ? [] : ["--quota-backend-bytes", String(quotaBytes)]),
      ...certificates,
    ];
    const log = openSync(join(this.directory, `${member.name}.log`), "a");
    // Ends with this process however that ends.
    const command = ["--pdeathsig", "KILL", ...inNamespace, "etcd", ...args];
    member.process = within(() => spawn("setpriv", command, { stdio: ["ignore", log, log] }));
    closeSync(log);
  }
}
