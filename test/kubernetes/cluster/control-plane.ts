import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { execa } from "execa";
import { EtcdCluster } from "../../registry/etcd-cluster.ts";
import { eventually } from "../../support/agent-process.ts";
import { kubernetesProgram, longestStartMs } from "../assets.ts";
import { Daemon } from "./daemon.ts";

export const podCidrs = ["10.10.0.0/16", "fd10::/48"] as const;
export const serviceCidrs = ["10.96.0.0/16", "fd96::/108"] as const;
/** The API server's own service. */
const apiServices = ["10.96.0.1", "fd96::1"] as const;
const port = 6443;

/** How long a pod stays on a node that is not ready. Clusters have five minutes, which no test waits for. */
export const patienceSeconds = 3;

/** Who may come, and the groups of each. The name is the token as well. */
const users: Readonly<Record<string, string>> = {
  admin: "system:masters",
  "system:kube-controller-manager": "",
  "system:kube-scheduler": "",
  "system:kube-proxy": "",
};

/** All of a cluster but its nodes, in the calling thread's network namespace. It ends with this process. */
export class ControlPlane implements AsyncDisposable {
  readonly url: string;
  readonly directory: string;
  readonly apiServer: Daemon;
  readonly #etcd: EtcdCluster;
  readonly #others: readonly Daemon[];

  private constructor(directory: string, address: string, etcd: EtcdCluster, names: readonly string[]) {
    this.url = `https://${address}:${port}`;
    this.directory = directory;
    this.#etcd = etcd;
    this.#writeUsers(names);
    this.apiServer = this.#daemon("kube-apiserver", apiServerOptions(directory, address, etcd.endpoints));
    this.#others = [
      this.#daemon("kube-controller-manager", {
        kubeconfig: this.kubeconfig("system:kube-controller-manager"),
        ...controllerOptions(directory),
      }),
      this.#daemon("kube-scheduler", { kubeconfig: this.kubeconfig("system:kube-scheduler"), ...schedulerOptions }),
    ];
  }

  /**
   * @param parent where its directory is made
   * @param address where nodes reach it
   * @param nodes the names of those that may join
   */
  static async start(parent: string, address: string, nodes: readonly string[]): Promise<ControlPlane> {
    const directory = join(parent, "control-plane");
    mkdirSync(directory);
    const [etcd] = await Promise.all([EtcdCluster.start({ parent }), makeCertificate(directory, address)]);
    const plane = new ControlPlane(directory, address, etcd, nodes);
    try {
      await plane.startApiServer();
      for (const daemon of plane.#others) daemon.start();
      return plane;
    } catch (caught) {
      await plane[Symbol.asyncDispose]();
      throw caught;
    }
  }

  /** @returns once it serves */
  async startApiServer(): Promise<void> {
    this.apiServer.start();
    await eventually(
      async () => {
        this.apiServer.mustRun();
        return (await this.kubectl("get --raw /readyz").catch(() => "")) === "ok";
      },
      "the API server",
      longestStartMs,
    );
  }

  /** The authority that the API server's certificate is from: a file. */
  get ca(): string {
    return join(this.directory, "ca.pem");
  }

  /** What lets `user` in: a file. */
  kubeconfig(user: string): string {
    const path = join(this.directory, `${user}.kubeconfig`);
    const config = {
      apiVersion: "v1",
      kind: "Config",
      clusters: [{ name: "lab", cluster: { server: this.url, "certificate-authority": this.ca } }],
      users: [{ name: user, user: { token: user } }],
      contexts: [{ name: "lab", context: { cluster: "lab", user } }],
      "current-context": "lab",
    };
    writeFileSync(path, JSON.stringify(config), { mode: 0o600 });
    return path;
  }

  /** Runs a command line, split at blanks; answers its output. @throws where it fails */
  kubectl(command: string, withinMs?: number): Promise<string> {
    return this.kubectlWords(command.split(" "), "", withinMs);
  }

  async kubectlWords(words: readonly string[], input = "", timeout = 90_000): Promise<string> {
    const options = { input, timeout, cwd: "/", env: { KUBECONFIG: this.kubeconfig("admin") } };
    return (await execa(kubernetesProgram("kubectl"), words, options)).stdout;
  }

  /** As `kubectl apply -f` with these objects. */
  async apply(...objects: readonly object[]): Promise<void> {
    await this.kubectlWords(["apply", "-f", "-"], JSON.stringify({ apiVersion: "v1", kind: "List", items: objects }));
  }

  async get<T>(what: string): Promise<T> {
    return JSON.parse(await this.kubectl(`get ${what} -o json`)) as T;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const daemon of [...this.#others, this.apiServer]) await daemon[Symbol.asyncDispose]();
    await this.#etcd[Symbol.asyncDispose]();
  }

  #daemon(name: string, options: Readonly<Record<string, unknown>>): Daemon {
    const words = Object.entries(options).map(([option, value]) => `--${option}=${value}`);
    return new Daemon([kubernetesProgram(name), ...words], { log: join(this.directory, `${name}.log`) });
  }

  #writeUsers(nodes: readonly string[]): void {
    const all = { ...users, ...Object.fromEntries(nodes.map((name) => [`system:node:${name}`, "system:nodes"])) };
    const lines = Object.entries(all).map(([name, group]) => `${name},${name},${name},${group}\n`);
    writeFileSync(join(this.directory, "tokens"), lines.join(""), { mode: 0o600 });
  }
}

async function makeCertificate(directory: string, address: string): Promise<void> {
  const names = [...apiServices, address].map((ip) => `IP:${ip}`).join(",");
  await execa("openssl", [
    ...["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=kube-apiserver"],
    ...["-addext", `subjectAltName=${names}`],
    ...["-keyout", join(directory, "key.pem"), "-out", join(directory, "ca.pem")],
  ]);
}

const apiServerOptions = (directory: string, address: string, etcd: readonly string[]) => ({
  "etcd-servers": etcd.join(","),
  "advertise-address": address,
  "secure-port": port,
  "tls-cert-file": join(directory, "ca.pem"),
  "tls-private-key-file": join(directory, "key.pem"),
  "token-auth-file": join(directory, "tokens"),
  "service-account-issuer": "https://kubernetes.default.svc",
  "service-account-key-file": join(directory, "key.pem"),
  "service-account-signing-key-file": join(directory, "key.pem"),
  "authorization-mode": "Node,RBAC",
  "enable-admission-plugins": "NodeRestriction",
  "service-cluster-ip-range": serviceCidrs.join(","),
  "default-not-ready-toleration-seconds": patienceSeconds,
  "default-unreachable-toleration-seconds": patienceSeconds,
  "allow-privileged": true,
  // Without, one that is to end waits a minute for those who watch.
  "shutdown-watch-termination-grace-period": "1s",
  // Nobody knows the nodes' names.
  "kubelet-preferred-address-types": "InternalIP",
});

const controllerOptions = (directory: string) => ({
  "leader-elect": false,
  "use-service-account-credentials": true,
  "service-account-private-key-file": join(directory, "key.pem"),
  "root-ca-file": join(directory, "ca.pem"),
  "allocate-node-cidrs": true,
  "cluster-cidr": podCidrs.join(","),
  "service-cluster-ip-range": serviceCidrs.join(","),
  "node-cidr-mask-size-ipv4": 24,
  "node-cidr-mask-size-ipv6": 64,
  // What slows a large cluster down on purpose would only slow the tests down.
  "kube-api-qps": 500,
  "kube-api-burst": 1000,
});

const schedulerOptions = { "leader-elect": false, "kube-api-qps": 500, "kube-api-burst": 1000 };
