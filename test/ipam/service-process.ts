import { join } from "node:path";
import { IpamClient } from "../../ipam/service/ipam-client.ts";
import { AgentProcess } from "../support/agent-process.ts";
import { ownProgram } from "../support/own-program.ts";
import { scratchDir } from "../support/scratch-dir.ts";

/** A directory for one `pipette ipam serve`, which may be started in it again and again. */
export class ServiceHome implements AsyncDisposable {
  readonly #scratch = scratchDir();
  readonly directory = this.#scratch.path;
  readonly socket = join(this.directory, "run", "ipam.sock");
  readonly dataDir = join(this.directory, "data");
  readonly #running = new Set<AgentProcess>();
  readonly #clients = new Set<IpamClient>();

  /** Starts the service and waits until it says that it is ready. */
  async start(args: readonly string[] = [], env: Readonly<Record<string, string>> = {}): Promise<AgentProcess> {
    const service = this.spawn(args, env);
    await service.logged((line) => line["message"] === "ready");
    return service;
  }

  spawn(args: readonly string[] = [], env: Readonly<Record<string, string>> = {}, socket = this.socket): AgentProcess {
    const command = [...ownProgram, "ipam", "serve", "--socket", socket, "--data-dir", this.dataDir];
    const service = new AgentProcess([...command, ...args], env);
    this.#running.add(service);
    return service;
  }

  client(): IpamClient {
    const client = new IpamClient(this.socket, { timeoutMs: 20_000 });
    this.#clients.add(client);
    return client;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of this.#clients) client[Symbol.dispose]();
    for (const service of this.#running) await service.end("SIGKILL");
    this.#scratch[Symbol.dispose]();
  }
}

/** One network with room for a few thousand. */
export const serviceConf = {
  cniVersion: "1.1.0",
  name: "net",
  ipam: { type: "pipette-ipam", ranges: [[{ subnet: "10.88.0.0/16" }]] },
} as const;

export const attachmentOf = (containerId: string) => ({ network: serviceConf.name, containerId, ifname: "eth0" });
