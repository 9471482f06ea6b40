import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { HoldingProxy } from "../registry/holding-proxy.ts";
import { AgentHome, type AgentProcess, resultOf } from "../support/agent-process.ts";
import { NetworkNamespace } from "../support/network-namespace.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { ApiServer } from "./api-server.ts";
import { agentPod, person, shipChart } from "./operators.ts";
import { requestToken } from "./service-account.ts";

/** What a test with such a cluster needs of the machine. */
export const operatorNeeds = ["linux", "root", "nft", "kube-apiserver", "etcd", "openssl", "helm"] as const;

/** Where all its nodes are. The API server passes nothing on to loopback addresses. */
export const address = "192.0.2.1";
export const agentPort = 10_352;
export const hostilePort = 10_353;
/** Nobody listens there. */
export const deadPort = 10_399;

/** What a hostile agent was asked with, and what it answers; `undefined`: nothing, ever. */
export interface Hostile {
  headers: Readonly<Record<string, unknown>>[];
  answer: (path: string) => HostileAnswer | undefined;
}

interface HostileAnswer {
  readonly status?: number;
  readonly body: string | Uint8Array;
  readonly cut?: boolean;
}

/** A real API server with the chart's roles, real agents behind it, one agent that means harm, and people. */
export class OperatorCluster implements AsyncDisposable {
  readonly server: ApiServer;
  readonly sandbox: NetworkSandbox;
  readonly directory: string;
  readonly hostile: Hostile = { headers: [], answer: () => ({ body: "{}" }) };
  readonly #stack: AsyncDisposableStack;

  private constructor(stack: AsyncDisposableStack, server: ApiServer, sandbox: NetworkSandbox) {
    this.#stack = stack;
    this.server = server;
    this.sandbox = sandbox;
    this.directory = mkdtempSync(join(tmpdir(), "pt-operator-"));
    stack.defer(() => rmSync(this.directory, { recursive: true, force: true }));
  }

  static async start(prefix: string): Promise<OperatorCluster> {
    await using stack = new AsyncDisposableStack();
    const sandbox = stack.use(await NetworkSandbox.enter(prefix));
    await sandbox.node(`ip addr add ${address}/32 dev lo`);
    const server = stack.use(
      await ApiServer.start({ flags: { "allow-privileged": true, "kubelet-preferred-address-types": "InternalIP" } }),
    );
    const cluster = new OperatorCluster(stack.move(), server, sandbox);
    // With a port for operators.
    await shipChart(server, ["metrics.enabled"], ["ConfigMap", "DaemonSet"]);
    await server.certificates.make("hostile", "ca", address);
    cluster.#stack.use(
      await cluster.listen(hostilePort, (request, response) => {
        cluster.hostile.headers.push(request.headers);
        const answer = cluster.hostile.answer(request.url ?? "");
        if (answer === undefined) return;
        const { status = 200, body, cut } = answer;
        if (cut === true) {
          response.writeHead(status, { "content-type": "application/json", "content-length": "100000" });
          response.write(body, () => request.socket.destroy());
          return;
        }
        response.writeHead(status, { "content-type": "application/json" }).end(body);
      }),
    );
    return cluster;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }

  /** An agent's pod, whoever listens there. @param status more of it */
  async agentPod(node: string, port: number, status: object = {}, podIP = address): Promise<void> {
    await agentPod(this.server, { node, podIP, port }, status);
  }

  /**
   * A real agent that listens for operators as this node's. Without a place it has the network of the API server.
   */
  async agent(
    node: string,
    port: number,
    place: { readonly at: string; readonly prefix: readonly string[] } = { at: address, prefix: [] },
  ): Promise<{ readonly home: AgentHome; readonly agent: AgentProcess }> {
    const { server } = this;
    const token = join(this.directory, `token-of-${node}`);
    writeFileSync(token, await requestToken(server, {}), { mode: 0o600 });
    const metrics = { listen: `${place.at}:${port}`, server: server.url, ca: server.ca, token };
    const home = this.#stack.use(new AgentHome({ metrics }, undefined, place.prefix));
    const agent = await home.start({ PIPETTE_NODE_NAME: node });
    await agent.logged(({ message }) => message === "metrics are served");
    return { home, agent };
  }

  /** A network beside that of the API server, for an agent of its own: reached by a wire, and with a way to it. */
  async place(at: string): Promise<{ readonly at: string; readonly prefix: readonly string[] }> {
    const namespace = this.#stack.use(NetworkNamespace.create());
    this.#stack.use(await HoldingProxy.into(namespace.within, this.server.url));
    await this.sandbox.node(`ip link add ptwire type veth peer name eth0 netns ${namespace.path}`);
    await this.sandbox.node("ip link set ptwire up");
    await this.sandbox.node(`ip route add ${at}/32 dev ptwire`);
    await namespace.ip(
      "link set lo up",
      "link set eth0 up",
      `addr add ${at}/32 dev eth0`,
      `route add ${address}/32 dev eth0`,
    );
    return { at, prefix: ["setpriv", "--pdeathsig", "KILL", "nsenter", `--net=${namespace.path}`] };
  }

  async addPod(home: AgentHome, id: string, name: string): Promise<void> {
    const args = `IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=${name};K8S_POD_UID=u-${name}`;
    resultOf(await home.cmd("cmdAdd", id, { netns: await this.sandbox.addPod(id), args }));
  }

  /** Somebody with these roles of the chart's, and a kubeconfig of their own. @returns its path */
  async person(name: string, roles: readonly string[]): Promise<string> {
    return await person(this.server, this.directory, name, roles);
  }

  /** Somebody else's server on the nodes' address: an agent's, or a kubelet's. */
  async listen(
    port: number,
    handle: (request: IncomingMessage, response: ServerResponse) => void,
  ): Promise<AsyncDisposable> {
    const { cert, key } = this.server.certificates.pair("hostile");
    const listener: Server = createServer({ cert: readFileSync(cert), key: readFileSync(key) }, handle);
    await new Promise<void>((resolve) => listener.listen(port, address, resolve));
    return {
      [Symbol.asyncDispose]: async () => {
        listener.closeAllConnections();
        listener.close();
      },
    };
  }
}
