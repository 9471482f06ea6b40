import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { executables } from "../conformance/plugin.ts";
import { pathOf, plainObjects } from "../manifests/manifest.ts";
import { AgentProcess, eventually } from "../support/agent-process.ts";
import { freePorts } from "../support/free-ports.ts";
import type { ApiServer } from "./api-server.ts";

const system = "/api/v1/namespaces/kube-system";
/** What of the manifest is not the controller's own pod. */
const isOfRights = (kind: string): boolean => !["DaemonSet", "Deployment", "Service"].includes(kind);

/** The accounts and rights of conf/kubernetes, as an administrator makes them. */
export async function installController(server: ApiServer): Promise<void> {
  await eventually(async () => (await server.ask("GET", system)).status === 200, "kube-system");
  for (const each of [...plainObjects(), ...plainObjects("pipette-controller.yaml")].filter(({ kind }) =>
    isOfRights(kind),
  ))
    await server.create(pathOf(each), each);
}

/** The compiled `pipette controller`, with the rights that the manifest gives it. It ends with its scope. */
export class ControllerProcess implements AsyncDisposable {
  readonly url: string;
  readonly directory: string;
  readonly #server: ApiServer;
  readonly #port: number;
  #process: AgentProcess;

  static async start(server: ApiServer, more: readonly string[] = []): Promise<ControllerProcess> {
    const directory = mkdtempSync(join(tmpdir(), "pt-controller-"));
    const { body } = await server.ask("POST", `${system}/serviceaccounts/pipette-controller/token`, {
      apiVersion: "authentication.k8s.io/v1",
      kind: "TokenRequest",
      spec: {},
    });
    const config = {
      clusters: [{ name: "c", cluster: { server: server.url, "certificate-authority": server.ca } }],
      users: [{ name: "u", user: { token: (body["status"] as { token: string }).token } }],
      contexts: [{ name: "x", context: { cluster: "c", user: "u" } }],
      "current-context": "x",
    };
    writeFileSync(join(directory, "kubeconfig"), JSON.stringify(config), { mode: 0o600 });
    const [port = 0] = await freePorts(1);
    return new ControllerProcess(server, directory, port, more);
  }

  private constructor(server: ApiServer, directory: string, port: number, more: readonly string[]) {
    this.#server = server;
    this.#port = port;
    this.directory = directory;
    this.url = `https://127.0.0.1:${port}`;
    this.#process = this.#spawn(more);
  }

  get log(): AgentProcess["lines"] {
    return this.#process.lines;
  }

  get pid(): number {
    return this.#process.pid;
  }

  logged(message: string): Promise<unknown> {
    return this.#process.logged((line) => line["message"] === message);
  }

  /** The authority that it has published. */
  async ca(): Promise<string> {
    const { body } = await this.#server.ask("GET", `${system}/configmaps/pipette-controller-ca`);
    return (body["data"] as Record<string, string>)["ca.crt"] ?? "";
  }

  /** @param ca absent: the published one */
  async ask(path: string, token: string, init: RequestInit = {}, ca?: string): Promise<Response> {
    const headers = { authorization: `Bearer ${token}`, ...init.headers };
    return await fetch(`${this.url}${path}`, { ...init, headers, tls: { ca: ca ?? (await this.ca()) } });
  }

  /** Has kubectl ask the controller itself. @param ca in PEM */
  kubectlFlags(token: string, ca: string): readonly string[] {
    const file = join(this.directory, "ca.crt");
    writeFileSync(file, ca);
    const cache = join(this.directory, "kubectl-cache");
    return [
      "--kubeconfig",
      "/dev/null",
      "--server",
      this.url,
      "--token",
      token,
      "--certificate-authority",
      file,
      "--cache-dir",
      cache,
    ];
  }

  /** With what it has kept of before. */
  async restart(signal: "SIGTERM" | "SIGKILL", more: readonly string[] = []): Promise<void> {
    await this.#process.end(signal);
    this.#process = this.#spawn(more);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#process.end("SIGTERM");
    rmSync(this.directory, { recursive: true, force: true });
  }

  #spawn(more: readonly string[]): AgentProcess {
    const own = ["--kubeconfig", join(this.directory, "kubeconfig"), "--listen", `127.0.0.1:${this.#port}`];
    const words = ["controller", ...own, "--name", "127.0.0.1", "--data-dir", join(this.directory, "data"), ...more];
    return new AgentProcess([join(executables, "pipette"), ...words]);
  }
}
