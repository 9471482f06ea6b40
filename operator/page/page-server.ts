import { HttpsServer } from "../../shared/https/mod.ts";
import type { Logger } from "../../shared/log.ts";
import { reasonOf } from "../../shared/reason.ts";
import type { DocumentSource } from "../document-source.ts";
import type { PageFile } from "./bundle-page.ts";
import type { Commands } from "./entrance.ts";
import { Hub } from "./hub.ts";
import { LinkEntrance } from "./link-entrance.ts";
import { PageApi } from "./page-api.ts";

/** The browsers of one person: six connections each, and others of this machine that knock. */
const bounds = { maxConnections: 64, strangerMs: 15_000 };
/** Attempts to find a port that is free on both loopback addresses. */
const portTries = 5;

export interface PageParts {
  readonly source: DocumentSource;
  readonly commands: Commands;
  readonly files: readonly PageFile[];
  readonly logger: Logger;
  /** 0: any that is free. */
  readonly port: number;
}

/** The page's server, which only this machine can reach. */
export class PageServer implements AsyncDisposable {
  /** With the token: for one browser, once. */
  readonly url: string;
  readonly #hub: Hub;
  readonly #servers: readonly HttpsServer[];

  /** On the loopback addresses of both families; without one of them, on the other. @throws {Error} on neither */
  static async start({ source, commands, files, logger, port }: PageParts): Promise<PageServer> {
    // What comes before the server knows its port waits for that.
    const began = Promise.withResolvers<PageApi>();
    const { servers, host } = await listen(port, (api) => void began.promise.then(api));
    const own = servers[0]?.port ?? port;
    const hub = new Hub(source, logger);
    const about = { title: source.title, isLive: source.isLive };
    const entrance = new LinkEntrance(own, { hub, commands, about: async () => about });
    began.resolve(new PageApi(files, entrance, logger));
    return new PageServer(`http://${host}:${own}/#token=${entrance.token}`, hub, servers);
  }

  private constructor(url: string, hub: Hub, servers: readonly HttpsServer[]) {
    this.url = url;
    this.#hub = hub;
    this.#servers = servers;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#hub[Symbol.dispose]();
    await Promise.all(this.#servers.map((server) => server[Symbol.asyncDispose]()));
  }
}

/** @param serve is given what is to be done with the page's API once there is one */
async function listen(
  wanted: number,
  serve: (work: (api: PageApi) => void) => void,
): Promise<{ readonly servers: readonly HttpsServer[]; readonly host: string }> {
  const open = (host: string, port: number): Promise<HttpsServer> =>
    HttpsServer.listen({ host, port }, undefined, (exchange) => serve((api) => void api.serve(exchange)), bounds);
  for (let tries = 1; ; tries++) {
    const [first, firstFault] = await tried(open("127.0.0.1", wanted));
    const [second, secondFault] = await tried(open("::1", first?.port ?? wanted));
    // Somebody else has the port on the second address: the browser might get there by the name "localhost".
    const isTaken = first !== undefined && secondFault?.code === "EADDRINUSE";
    if (isTaken && wanted === 0 && tries < portTries) {
      await first[Symbol.asyncDispose]();
      continue;
    }
    const servers = [first, second].filter((each) => each !== undefined);
    if (servers.length === 0) throw firstFault;
    return { servers, host: first === undefined ? "[::1]" : "127.0.0.1" };
  }
}

async function tried<T>(work: Promise<T>): Promise<[T, undefined] | [undefined, Error & { code?: string }]> {
  try {
    return [await work, undefined];
  } catch (caught) {
    return [undefined, caught instanceof Error ? caught : new Error(reasonOf(caught))];
  }
}
