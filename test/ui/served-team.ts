import { readFileSync } from "node:fs";
import { pageFiles } from "../../operator/page/mod.ts";
import { TeamPage } from "../../operator/page/team/mod.ts";
import { Refusal, type User, type Wish, wishText } from "../../shared/access/mod.ts";
import { createLogger } from "../../shared/log.ts";
import { Certificates } from "../support/certificates.ts";
import { scratchDir } from "../support/scratch-dir.ts";
import type { GeneratedSource } from "./generated-source.ts";

type Parts = Parameters<typeof TeamPage.start>[0];

/** Rights that let somebody look at nodes, as `wishText` writes them. */
export const viewerRights = [
  "list nodes",
  'list pods in namespace "kube-system"',
  'create serviceaccounts/token in namespace "kube-system"',
  'get pods/proxy in namespace "kube-system"',
];

/** An API server as far as the page asks it who somebody is and what they may: a test says it, and changes it. */
export class ScriptedAccess {
  /** Whose they are. */
  readonly tokens = new Map<string, User>();
  readonly rights = new Map<string, readonly string[]>();
  /** Nobody can be asked. */
  isSilent = false;
  /** Of tokens that were asked about. */
  reviews = 0;

  person(name: string, rights: readonly string[], token = `token-of-${name}`): string {
    this.tokens.set(token, { name, uid: `uid-of-${name}`, groups: [], extra: {} });
    this.rights.set(name, rights);
    return token;
  }

  async userOf(): Promise<never> {
    throw new Refusal(401, "nobody who is known");
  }

  async userOfToken(token: string): Promise<User | undefined> {
    this.reviews++;
    this.#mustAnswer();
    return this.tokens.get(token);
  }

  async isAllowed(user: User, wish: Wish): Promise<boolean> {
    this.#mustAnswer();
    const ofOne = wish.t === "resource" && wish.name !== undefined ? `${wishText(wish)} "${wish.name}"` : "";
    const rights = this.rights.get(user.name) ?? [];
    return rights.includes(wishText(wish)) || rights.includes(ofOne);
  }

  #mustAnswer(): void {
    if (this.isSilent) throw new Refusal(503, "the API server cannot be asked who that is", 5);
  }
}

/** The page for a team, over a generated cluster and an authority of its own. */
export class ServedTeam implements AsyncDisposable {
  readonly access = new ScriptedAccess();
  readonly log: Record<string, unknown>[] = [];
  readonly #resources = new AsyncDisposableStack();
  ca = "";
  port = 0;

  static async of(
    source: GeneratedSource,
    more: Partial<Pick<Parts, "hosts" | "proxies" | "commandsFor">> = {},
  ): Promise<ServedTeam> {
    const team = new ServedTeam();
    const scratch = team.#resources.use(scratchDir());
    const certificates = new Certificates(scratch.path);
    await certificates.make("ca");
    await certificates.make("page", "ca", "127.0.0.1", "localhost");
    team.ca = readFileSync(certificates.file("ca.pem"), "utf8");
    const { cert, key } = certificates.pair("page");
    const tls = { cert: readFileSync(cert, "utf8"), key: readFileSync(key, "utf8") };
    const page = await TeamPage.start({
      access: team.access,
      agents: Object.assign(source, { proxyNameOf: async (node: string) => `https:agent-of-${node}:10352` }),
      ...{ namespace: "kube-system", hosts: [], proxies: [], files: await pageFiles() },
      commandsFor: async () => ({ names: [], run: () => Promise.reject(new Refusal(404, "there is none")) }),
      logger: createLogger("debug", (line) => team.log.push(JSON.parse(line))),
      listen: { host: "127.0.0.1", port: 0 },
      tls: () => tls,
      ...more,
    });
    team.#resources.use(page);
    team.port = page.port;
    return team;
  }

  get origin(): string {
    return `https://127.0.0.1:${this.port}`;
  }

  at(view: string): string {
    return `${this.origin}/#/${view}`;
  }

  /** A request, as a program makes it. */
  ask(path: string, headers: Record<string, string> = {}, body?: unknown): Promise<Response> {
    const sent = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
    const type: Record<string, string> = body === undefined ? {} : { "content-type": "application/json" };
    return fetch(`${this.origin}${path}`, { headers: { ...type, ...headers }, ...sent, tls: { ca: this.ca } });
  }

  signIn(token: unknown, headers: Record<string, string> = {}): Promise<Response> {
    return this.ask("/api/v1/session", { "x-pipette-page": "1", ...headers }, { token });
  }

  /** What a browser sends once somebody is signed in. */
  async signedIn(token: string): Promise<Record<string, string>> {
    const answer = await this.signIn(token);
    if (!answer.ok) throw new Error(await answer.text());
    const cookie = (answer.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
    return { cookie, "x-pipette-page": ((await answer.json()) as { key: string }).key };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#resources.disposeAsync();
  }
}
