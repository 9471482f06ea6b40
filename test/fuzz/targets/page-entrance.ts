import type { Commands, Entrance } from "../../../operator/page/entrance.ts";
import { Hub } from "../../../operator/page/hub.ts";
import { LinkEntrance } from "../../../operator/page/link-entrance.ts";
import { PageApi } from "../../../operator/page/page-api.ts";
import { LoginEntrance } from "../../../operator/page/team/login-entrance.ts";
import type { AgentsSource } from "../../../operator/page/team/person-source.ts";
import { createLogger } from "../../../shared/log.ts";
import { parseCidr } from "../../../shared/net/ip.ts";
import { pageHeader } from "../../../ui/stream/wire.ts";
import type { Target } from "../engine/target.ts";
import { jsonMutator } from "../mutate/json.ts";
import { type Answered, type Asked, askedIn, exchanged, headerOf } from "./exchanges.ts";
import { jsonOf } from "./words.ts";

const port = 8443;
const name = "pipette.example.com";
/** What inputs have in place of secrets, which are others each time. */
const places = { token: "$TOKEN", cookie: "$COOKIE", key: "$KEY" } as const;
const words = [
  ...["entrance", "link", "login", "requests", "method", "target", "headers", "body", "token", "POST", "GET", "HEAD"],
  ...["/", "/api/v1/session", "/api/v1/about", "/api/v1/commands", "/api/v1/leave", "/api/v1/events?topics=cluster"],
  ...["host", ":authority", "cookie", "origin", "sec-fetch-site", "same-origin", "cross-site", "none", pageHeader, "1"],
  ...["content-type", "application/json", "x-forwarded-for", "10.0.0.9, 192.0.2.7", ...Object.values(places)],
  ...[`127.0.0.1:${port}`, `localhost:${port}`, `http://localhost:${port}`, name, `https://${name}`, "evil.example"],
];

const logger = createLogger("error", () => undefined);
const commands: Commands = { names: ["why"], run: async () => ({ line: "pipette", text: "", status: 0 }) as never };

/** Nodes that there are none of. */
const source: AgentsSource = {
  ...{ title: "a cluster", isLive: true },
  nodes: async () => [],
  cluster: async () => ({ kind: "nodes", version: 1, source: "", nodes: [], omitted: 0 }),
  get: async () => {
    throw new Error("There is no node");
  },
  proxyNameOf: async () => "",
  [Symbol.asyncDispose]: async () => undefined,
};

/** A door, and what is true of it. */
interface Door extends Disposable {
  readonly entrance: Entrance;
  readonly token: string;
  readonly scheme: "http" | "https";
  isHost(host: string): boolean;
}

function linkDoor(): Door {
  const hub = new Hub(source, logger);
  const entrance = new LinkEntrance(port, { hub, commands, about: async () => ({ title: "", isLive: true }) });
  const hosts = [`127.0.0.1:${port}`, `[::1]:${port}`, `localhost:${port}`];
  return {
    ...{ entrance, token: entrance.token, scheme: "http" },
    isHost: (host) => hosts.includes(host),
    [Symbol.dispose]: () => hub[Symbol.dispose](),
  };
}

function loginDoor(): Door {
  const token = `t.${crypto.randomUUID()}`;
  const user = { name: "ann", uid: "1", groups: [], extra: {} };
  const access = {
    userOfToken: async (given: string) => (given === token ? user : undefined),
    userOf: async () => user,
    isAllowed: async () => true,
  };
  const proxies = ["10.0.0.0/8", "fd00::/8"].flatMap((text) => parseCidr(text) ?? []);
  const parts = { access, agents: source, namespace: "kube-system", hosts: [name], proxies, logger };
  const entrance = new LoginEntrance({ ...parts, commandsFor: async () => commands });
  return {
    ...{ entrance, token, scheme: "https" },
    isHost: (host) => host === name || ["localhost", "127.0.0.1", "[::1]"].includes(host.replace(/:\d{1,5}$/, "")),
    [Symbol.dispose]: () => entrance[Symbol.dispose](),
  };
}

/** What the browser that was let in has, and how many tokens came in vain before. */
interface Held {
  cookie: string;
  key: string;
  inVain: number;
}

/** With the secrets in their places. */
function filled({ headers, body, ...rest }: Asked, { token }: Door, held: Held): Asked {
  const fill = (text: string): string =>
    text.replaceAll(places.token, token).replaceAll(places.cookie, held.cookie).replaceAll(places.key, held.key);
  return { ...rest, headers: headers.map(([key, value]) => [key, fill(value)] as const), body: fill(body) };
}

/** Whether a request may be heard at all: it is meant for this server, and no other page has sent it. */
function isOfOurs(asked: Asked, { isHost, scheme }: Door): boolean {
  const host = headerOf(asked, "host") ?? headerOf(asked, ":authority") ?? "";
  const [origin, site] = [headerOf(asked, "origin"), headerOf(asked, "sec-fetch-site")];
  const isFromHere = origin === undefined || origin === `${scheme}://${host}`;
  return isHost(host.toLowerCase()) && isFromHere && (site === undefined || ["same-origin", "none"].includes(site));
}

/** Whether cookie and key are those of the browser that was let in. */
function isOfBrowser(asked: Asked, { cookie, key }: Held): boolean {
  const cookies = (headerOf(asked, "cookie") ?? "").split(";").map((text) => text.trim());
  return cookie !== "" && cookies.includes(cookie) && headerOf(asked, pageHeader) === key;
}

const expected = new Set([200, 400, 401, 403, 404, 405, 413, 415, 429, 503]);

/** @throws where an answer tells what it must not, or lets somebody in who may not */
function judge(asked: Asked, answered: Answered, door: Door, held: Held): void {
  const { status, headers, body } = answered;
  if (!expected.has(status)) throw new Error(`It is answered with ${status}`);
  if (headers["content-security-policy"]?.startsWith("default-src 'none'") !== true)
    throw new Error("An answer comes without the rules for a page");
  const path = asked.target.split("?")[0];
  if (status === 403 && body.includes("the token is wrong")) held.inVain++;
  if (status !== 200 || (asked.method === "GET" && path === "/")) return;
  if (!isOfOurs(asked, door)) throw new Error("A request of another page, or for another host, is heard");
  if (path === "/api/v1/session") {
    const token: unknown = Object(jsonOf(new TextEncoder().encode(asked.body))).token;
    if (token !== door.token || headerOf(asked, pageHeader) !== "1") throw new Error("A wrong token lets somebody in");
    if (door.scheme === "http" && (held.cookie !== "" || held.inVain >= 10))
      throw new Error("The address lets in a second browser, or one that guesses");
    held.cookie = headers["set-cookie"]?.split(";")[0] ?? "";
    held.key = Object(JSON.parse(body)).key;
    return;
  }
  if (!isOfBrowser(asked, held)) throw new Error("Somebody is shown something who was not let in");
  if (path === "/api/v1/leave") held.cookie = "";
}

/** Of one input; the eleventh wrong token is refused like all that follow. */
const maxRequests = 16;

async function run(input: Uint8Array): Promise<void> {
  const value = Object(jsonOf(input));
  using door = value.entrance === "login" ? loginDoor() : linkDoor();
  const file = { path: "/", contentType: "text/html", gzip: Bun.gzipSync("page") };
  const api = new PageApi([file], door.entrance, logger);
  const held: Held = { cookie: "", key: "", inVain: 0 };
  const requests: readonly unknown[] = Array.isArray(value.requests) ? value.requests : [];
  for (const request of requests.slice(0, maxRequests)) {
    const before = { ...held };
    const asked = filled(askedIn(request), door, held);
    const answered = await exchanged(asked, (exchange) => api.serve(exchange), "10.0.0.1");
    judge(asked, answered, door, held);
    const secrets = [door.token, before.cookie.split("=")[1] ?? "", before.key].filter((text) => text !== "");
    if (secrets.some((secret) => answered.body.includes(secret))) throw new Error("An answer holds a secret");
  }
}

export const pageEntrance: Target = {
  name: "page-entrance",
  what: "who comes to the page's server: by the address, by signing in, or from another page",
  mutators: [jsonMutator(words)],
  dictionary: words,
  maxBytes: 8 * 1024,
  open: () => ({ run }),
};
