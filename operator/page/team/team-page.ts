import { HttpsServer, type ServerTls } from "../../../shared/https/mod.ts";
import type { PageFile } from "../bundle-page.ts";
import { PageApi } from "../page-api.ts";
import { LoginEntrance, type LoginParts } from "./login-entrance.ts";
import type { AgentsSource } from "./person-source.ts";
import { SharedSource } from "./shared-source.ts";

/** The browsers of a team, and others that knock: a proxy in front has few, for many people. */
const bounds = { maxConnections: 512, strangerMs: 15_000 };

export interface TeamPageParts extends Omit<LoginParts, "agents"> {
  /** Disposed of with the page. */
  readonly agents: AgentsSource;
  readonly listen: { readonly host: string; readonly port: number };
  readonly tls: () => ServerTls;
  readonly files: readonly PageFile[];
}

/** The page for a team: over TLS, for whoever signs in, each with their own rights. */
export class TeamPage implements AsyncDisposable {
  readonly port: number;
  readonly #server: HttpsServer;
  readonly #tls: () => ServerTls;
  readonly #resources: AsyncDisposableStack;

  /** @throws {Error} where nobody may listen there */
  static async start(parts: TeamPageParts): Promise<TeamPage> {
    const { listen, tls, files, logger } = parts;
    await using starting = new AsyncDisposableStack();
    const agents = starting.use(new SharedSource(parts.agents));
    const entrance = starting.use(new LoginEntrance({ ...parts, agents }));
    const api = new PageApi(files, entrance, logger);
    const server = starting.use(
      await HttpsServer.listen(listen, tls(), (exchange) => void api.serve(exchange), bounds),
    );
    return new TeamPage(server, tls, starting.move());
  }

  private constructor(server: HttpsServer, tls: () => ServerTls, resources: AsyncDisposableStack) {
    this.port = server.port;
    this.#server = server;
    this.#tls = tls;
    this.#resources = resources;
  }

  /** For connections that come from now on. */
  replaceTls(): void {
    this.#server.replaceTls(this.#tls());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#resources.disposeAsync();
  }
}
