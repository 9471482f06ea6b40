import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { EtcdCluster } from "../registry/etcd-cluster.ts";
import { eventually } from "../support/agent-process.ts";
import { kubernetesProgram } from "./assets.ts";

const adminToken = "administrator";

export interface ApiAnswer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>> & { readonly message?: string };
}

/** A real API server of Kubernetes with an etcd of its own, and nothing else of a cluster. It ends with this process. */
export class ApiServer implements AsyncDisposable {
  readonly url: string;
  /** Files, as the registry of agent.yaml names them. */
  readonly ca: string;
  readonly #directory: string;
  readonly #etcd: EtcdCluster;
  readonly #process: Bun.Subprocess;

  private constructor(url: string, ca: string, directory: string, etcd: EtcdCluster, process: Bun.Subprocess) {
    this.url = url;
    this.ca = ca;
    this.#directory = directory;
    this.#etcd = etcd;
    this.#process = process;
  }

  static async start(): Promise<ApiServer> {
    const directory = mkdtempSync(join(tmpdir(), "pt-api-"));
    const at = (name: string): string => join(directory, name);
    const etcd = await EtcdCluster.start();
    const port = await freePort();
    writeFileSync(at("tokens"), `${adminToken},admin,admin,system:masters\n`, { mode: 0o600 });
    await execa("openssl", [
      ...["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=kube-apiserver"],
      ...["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", at("key.pem"), "-out", at("ca.pem")],
    ]);
    const options = {
      "etcd-servers": etcd.endpoints.join(","),
      "bind-address": "127.0.0.1",
      "secure-port": port,
      "tls-cert-file": at("ca.pem"),
      "tls-private-key-file": at("key.pem"),
      "token-auth-file": at("tokens"),
      "service-account-issuer": "https://kubernetes.test",
      "service-account-key-file": at("key.pem"),
      "service-account-signing-key-file": at("key.pem"),
      "authorization-mode": "RBAC",
      "service-cluster-ip-range": "10.96.0.0/24",
    };
    const words = Object.entries(options).map(([name, value]) => `--${name}=${value}`);
    const command = ["setpriv", "--pdeathsig", "KILL", kubernetesProgram("kube-apiserver"), ...words];
    const child = Bun.spawn(command, { stdin: "ignore", stdout: "ignore", stderr: Bun.file(at("log")) });
    const server = new ApiServer(`https://127.0.0.1:${port}`, at("ca.pem"), directory, etcd, child);
    const isReady = async () => {
      if (child.exitCode !== null) throw new Error(`kube-apiserver has ended: ${await Bun.file(at("log")).text()}`);
      return (await server.ask("GET", "/readyz").catch(() => undefined))?.status === 200;
    };
    await eventually(isReady, "the API server");
    return server;
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

  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.kill("SIGKILL");
    await this.#process.exited;
    await this.#etcd[Symbol.asyncDispose]();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise<void>((resolve) => server.close(() => resolve()));
  return typeof address === "object" ? (address?.port ?? 0) : 0;
}
