import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { EtcdCluster } from "../registry/etcd-cluster.ts";
import { eventually } from "../support/agent-process.ts";
import { Certificates } from "../support/certificates.ts";
import { freePorts } from "../support/free-ports.ts";
import { kubernetesProgram, longestStartMs } from "./assets.ts";

/** Of an administrator, for whoever asks it by other means. */
export const adminToken = "administrator";
/** The common name by which servers behind it know it. */
const frontProxy = "front-proxy-client";

export interface ApiAnswer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>> & { readonly message?: string };
}

export interface ApiServerOptions {
  /** More words for its command line, or others: `{ "watch-cache": false }`. */
  readonly flags?: Readonly<Record<string, string | number | boolean>>;
  /** A controller manager that gives Nodes pod CIDRs out of these, a /24 and a /64 each. */
  readonly podCidrs?: string;
  /** More of its controllers. */
  readonly controllers?: readonly string[];
  /** Passes requests on to the servers of APIServices, as whoever asks it. */
  readonly aggregates?: true;
}

/** A real API server of Kubernetes with an etcd of its own, and little else of a cluster. It ends with this process. */
export class ApiServer implements AsyncDisposable {
  readonly url: string;
  readonly certificates: Certificates;
  readonly #directory: string;
  readonly #etcd: EtcdCluster;
  readonly #options: ApiServerOptions;
  readonly #port: number;
  #server: Bun.Subprocess | undefined;
  #controllers: Bun.Subprocess | undefined;

  private constructor(directory: string, etcd: EtcdCluster, port: number, options: ApiServerOptions) {
    this.url = `https://127.0.0.1:${port}`;
    this.certificates = new Certificates(directory);
    this.#directory = directory;
    this.#etcd = etcd;
    this.#port = port;
    this.#options = options;
  }

  static async start(options: ApiServerOptions = {}): Promise<ApiServer> {
    const directory = mkdtempSync(join(tmpdir(), "pt-api-"));
    const server = new ApiServer(directory, await EtcdCluster.start(), await freePort(), options);
    try {
      writeFileSync(server.#at("tokens"), `${adminToken},admin,admin,system:masters\n`, { mode: 0o600 });
      await server.certificates.make("ca");
      await server.certificates.make("server", "ca", "127.0.0.1");
      await server.certificates.make("accounts");
      if (options.aggregates) await server.certificates.make(frontProxy, "ca");
      writeFileSync(server.#at("kubeconfig"), JSON.stringify(server.#kubeconfig()), { mode: 0o600 });
      await server.startAgain();
      if (options.podCidrs !== undefined) server.#startControllers(options.podCidrs);
      return server;
    } catch (caught) {
      await server[Symbol.asyncDispose]();
      throw caught;
    }
  }

  /** Files, as the registry of agent.yaml names them. */
  get ca(): string {
    return this.certificates.file("ca.pem");
  }

  /** An administrator's. */
  get kubeconfig(): string {
    return this.#at("kubeconfig");
  }

  /** Signs the tokens of service accounts. */
  get accountsKey(): string {
    return readFileSync(this.certificates.file("accounts.key"), "utf8");
  }

  /** At the same place, with what etcd has, and nothing in its caches. */
  async startAgain(): Promise<void> {
    const flags = {
      "etcd-servers": this.#etcd.endpoints.join(","),
      "bind-address": "127.0.0.1",
      // Else it looks for a default route, which a network of one's own has not.
      "advertise-address": "192.0.2.254",
      "secure-port": this.#port,
      "tls-cert-file": this.#at("server.pem"),
      "tls-private-key-file": this.#at("server.key"),
      "token-auth-file": this.#at("tokens"),
      "service-account-issuer": "https://kubernetes.test",
      "service-account-key-file": this.#at("accounts.pem"),
      "service-account-signing-key-file": this.#at("accounts.key"),
      "authorization-mode": "RBAC",
      "service-cluster-ip-range": "10.96.0.0/24",
      ...(this.#options.aggregates ? this.#frontProxyFlags() : {}),
      ...this.#options.flags,
    };
    const child = this.#spawn("kube-apiserver", flags);
    this.#server = child;
    const isReady = async () => {
      if (child.exitCode !== null) throw new Error(`kube-apiserver has ended: ${this.log("kube-apiserver")}`);
      return (await this.ask("GET", "/readyz").catch(() => undefined))?.status === 200;
    };
    await eventually(isReady, "the API server", longestStartMs);
  }

  /** Ends it, or stops it, or lets it go on. */
  async signal(signal: "SIGKILL" | "SIGSTOP" | "SIGCONT"): Promise<void> {
    this.#server?.kill(signal);
    if (signal === "SIGKILL") await this.#server?.exited;
  }

  /** As an administrator; with a token as whoever has that. */
  async ask(method: string, path: string, body?: object, token = adminToken): Promise<ApiAnswer> {
    const type = method === "PATCH" ? "application/merge-patch+json" : "application/json";
    const headers = { authorization: `Bearer ${token}`, "content-type": type };
    const tls = { ca: await Bun.file(this.ca).text() };
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    const answer = await fetch(`${this.url}${path}`, { method, headers, tls, ...sent });
    const text = await answer.text();
    return { status: answer.status, body: text.startsWith("{") ? JSON.parse(text) : { message: text } };
  }

  /** @throws where the API server does not take it */
  async create(path: string, object: object): Promise<ApiAnswer["body"]> {
    const { status, body } = await this.ask("POST", path, object);
    if (status !== 201) throw new Error(`The API server answers ${status}: ${body.message}`);
    return body;
  }

  /** As an administrator; answers what it prints. @throws with what it says */
  async kubectl(...words: readonly string[]): Promise<string> {
    const own = ["--kubeconfig", this.#at("kubeconfig"), "--cache-dir", this.#at("kubectl-cache")];
    return (await execa(kubernetesProgram("kubectl"), [...own, ...words])).stdout;
  }

  /**
   * `kubectl apply -f FILE …`, with every field known to the server; answers a line per object.
   * @param how `server`: as far as it goes without changing anything
   * @throws with what the server finds wrong
   */
  async apply(files: readonly string[], how: "really" | "server" = "really"): Promise<readonly string[]> {
    const dryRun = how === "server" ? ["--dry-run=server"] : [];
    const named = files.flatMap((file) => ["-f", file]);
    return (await this.kubectl("apply", "--validate=strict", ...dryRun, ...named)).split("\n");
  }

  /** Forgets in etcd what was before now: a version from then is too old. */
  async compact(): Promise<void> {
    const post = async (path: string, body: object): Promise<Record<string, unknown>> => {
      const answer = await fetch(`${this.#etcd.endpoint(0)}/v3/${path}`, {
        method: "POST",
        body: JSON.stringify(body),
      });
      if (!answer.ok) throw new Error(`etcd answers ${answer.status}: ${await answer.text()}`);
      return (await answer.json()) as Record<string, unknown>;
    };
    const { header } = (await post("kv/range", { key: btoa("none") })) as { header: { revision: string } };
    await post("kv/compaction", { revision: header.revision, physical: true });
  }

  /** What one of its programs has said. */
  log(program: string): string {
    return readFileSync(this.#at(`${program}.log`), "utf8");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of [this.#controllers, this.#server]) {
      child?.kill("SIGKILL");
      await child?.exited;
    }
    await this.#etcd[Symbol.asyncDispose]();
    rmSync(this.#directory, { recursive: true, force: true });
  }

  #at(name: string): string {
    return join(this.#directory, name);
  }

  #frontProxyFlags(): Readonly<Record<string, string>> {
    return {
      "client-ca-file": this.ca,
      "requestheader-client-ca-file": this.ca,
      "requestheader-allowed-names": frontProxy,
      "requestheader-extra-headers-prefix": "X-Remote-Extra-",
      "requestheader-group-headers": "X-Remote-Group",
      "requestheader-username-headers": "X-Remote-User",
      "proxy-client-cert-file": this.#at(`${frontProxy}.pem`),
      "proxy-client-key-file": this.#at(`${frontProxy}.key`),
    };
  }

  #startControllers(podCidrs: string): void {
    this.#controllers = this.#spawn("kube-controller-manager", {
      kubeconfig: this.#at("kubeconfig"),
      controllers: ["node-ipam-controller", ...(this.#options.controllers ?? [])].join(","),
      "allocate-node-cidrs": true,
      "cluster-cidr": podCidrs,
      "leader-elect": false,
      "secure-port": 0,
    });
  }

  /** A child that ends with this process however that ends. */
  #spawn(program: string, flags: Readonly<Record<string, string | number | boolean>>): Bun.Subprocess {
    const words = Object.entries(flags).map(([name, value]) => `--${name}=${value}`);
    const command = ["setpriv", "--pdeathsig", "KILL", kubernetesProgram(program), ...words];
    return Bun.spawn(command, { stdin: "ignore", stdout: "ignore", stderr: Bun.file(this.#at(`${program}.log`)) });
  }

  #kubeconfig(): object {
    return {
      apiVersion: "v1",
      kind: "Config",
      clusters: [{ name: "test", cluster: { server: this.url, "certificate-authority": this.ca } }],
      users: [{ name: "admin", user: { token: adminToken } }],
      contexts: [{ name: "test", context: { cluster: "test", user: "admin" } }],
      "current-context": "test",
    };
  }
}

async function freePort(): Promise<number> {
  const [port = 0] = await freePorts(1);
  return port;
}
