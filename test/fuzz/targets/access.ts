import { answerOperator } from "../../../agent/views/mod.ts";
import { ClusterAccess, noTrust, operatorToken, Refusal } from "../../../shared/access/mod.ts";
import { answerScrape, type Exchange, metricsPath, refuse } from "../../../shared/https/mod.ts";
import { ApiClient, serviceAccountAccess } from "../../../shared/kubernetes/mod.ts";
import type { ApiRequest, Transport } from "../../../shared/kubernetes/transport.ts";
import { createLogger } from "../../../shared/log.ts";
import type { Opened, Target } from "../engine/target.ts";
import { jsonMutator } from "../mutate/json.ts";
import { type Answered, type Asked, askedIn, exchanged, headerOf } from "./exchanges.ts";
import { jsonOf } from "./words.ts";

const audience = operatorToken.audienceOf("node-1");
const words = [
  ...["method", "target", "headers", "body", "token", "access", "status", "code", "spec", "user", "username", "uid"],
  ...["authenticated", "audiences", "allowed", "denied", "groups", "extra", "GET", "PUT", "/metrics", "/v1/trace"],
  ...["/v1/documents/pods", "/v1/log-level?level=debug", "authorization", "Bearer secret-of-ann", audience],
  ...[operatorToken.header, "secret-of-ann", "bearer\tsecret-of-ann", "Basic secret-of-ann", "x-remote-user"],
];

type Review = "token" | "access";

/** An API server whose two answers are an input, as text or as JSON, with any status. */
class Server implements Transport {
  answers: Readonly<Record<string, unknown>> = {};
  /** Tokens that it was asked about. */
  readonly tokens: string[] = [];

  async request({ path, body }: ApiRequest) {
    const review: Review = path.includes("tokenreviews") ? "token" : "access";
    if (review === "token") this.tokens.push(JSON.parse(body ?? "{}").spec.token);
    const answer = this.answers[review];
    const text = typeof answer === "string" ? answer : JSON.stringify(answer ?? {});
    const { code } = this.answers;
    return {
      status: typeof code === "number" && Number.isInteger(code) && code >= 200 && code < 600 ? code : 201,
      header: () => undefined,
      body: (async function* () {
        yield new TextEncoder().encode(text);
      })(),
    };
  }
  async [Symbol.asyncDispose](): Promise<void> {}
}

const member = (value: unknown, ...keys: readonly string[]): unknown =>
  keys.reduce<unknown>(
    (inner, key) => (typeof inner === "object" && inner !== null ? Reflect.get(inner, key) : undefined),
    value,
  );

/** Whether what the API server has answered lets somebody in, said once more and simply. */
function isLetIn({ answers }: Server, asked: Asked): boolean {
  const parsed = (review: Review): unknown => {
    const answer = answers[review];
    return typeof answer === "string" ? jsonOf(new TextEncoder().encode(answer)) : answer;
  };
  const [token, access] = [parsed("token"), parsed("access")];
  const isKnown = member(token, "status", "authenticated") === true;
  const isNamed = typeof member(token, "status", "user", "username") === "string";
  const audiences = member(token, "status", "audiences");
  const isForThis = Array.isArray(audiences) && audiences.includes(audience);
  const hasBearer = /^bearer /i.test(headerOf(asked, "authorization") ?? "");
  const hasOwn = headerOf(asked, operatorToken.header) !== undefined;
  const isAllowed = member(access, "status", "allowed") === true && member(access, "status", "denied") !== true;
  return isKnown && isNamed && isAllowed && (hasBearer || (hasOwn && isForThis));
}

/** Tokens go to the API server as they came, and to nobody else. */
function requireKept(server: Server, asked: Asked, { body, headers }: Answered): void {
  const given = ["authorization", operatorToken.header].flatMap((name) => headerOf(asked, name) ?? []);
  for (const token of server.tokens) {
    if (token === "" || /\s/.test(token) || !given.some((text) => text.endsWith(token)))
      throw new Error("A token goes to the API server that nobody has sent");
    if (token.length >= 12 && `${body} ${JSON.stringify(headers)}`.includes(token) && !isSaid(server, token))
      throw new Error("An answer holds the token");
  }
}

/** What an API server says of a user is told to whoever asks, whatever it is. */
const isSaid = ({ answers }: Server, text: string): boolean => JSON.stringify(answers).includes(text);

/** Trouble with the server's answers is told as 503; everything else has its own. */
const expected = new Set([200, 400, 401, 403, 404, 405, 409, 413, 429, 503]);

function open(): Opened {
  const server = new Server();
  const trust = serviceAccountAccess({ server: "http://127.0.0.1:1" }, {}, "server");
  const client = new ApiClient(trust, { transport: server });
  const logger = createLogger("error", () => undefined);
  const never = new AbortController().signal;
  const documents = {
    document: async () => ({ revision: "1", atMs: 0, json: new TextEncoder().encode("{}") }),
    trace: async (json: Uint8Array) => json,
  };
  const run = async (input: Uint8Array): Promise<void> => {
    const value = jsonOf(input);
    server.answers = typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
    server.tokens.length = 0;
    const asked = askedIn(value);
    const access = { client, logger, trust: () => noTrust, pod: () => undefined, operatorAudience: audience };
    const guard = new ClusterAccess(access);
    let changes = 0;
    const logLevels = { level: () => "info" as const, set: () => void changes++ };
    const serve = (exchange: Exchange): Promise<void> =>
      exchange.path === metricsPath
        ? answerScrape(exchange, { text: async () => "numbers", contentType: "text/plain" }, guard)
        : answerOperator(exchange, { guard, documents, logLevels }, never);
    const answered = await exchanged(asked, async (exchange) => {
      try {
        await serve(exchange);
      } catch (caught) {
        if (!(caught instanceof Refusal)) throw caught;
        refuse(exchange, caught, logger);
      }
    });
    if (!expected.has(answered.status)) throw new Error(`It is answered with ${answered.status}`);
    if (answered.status !== 200 && changes > 0) throw new Error("Whoever is refused has changed the log level");
    if (answered.status !== 200) JSON.parse(answered.body);
    else if (!isLetIn(server, asked)) throw new Error("Somebody is let in whom the API server does not let in");
    requireKept(server, asked, answered);
  };
  return { run, close: () => client[Symbol.asyncDispose]() };
}

export const accessHeaders: Target = {
  name: "access-headers",
  what: "who asks an agent by HTTPS, and what an API server says of them",
  mutators: [jsonMutator(words)],
  dictionary: words,
  maxBytes: 8 * 1024,
  open,
};
