import { Refusal } from "../../shared/access/mod.ts";
import { isNodeKind } from "../../shared/documents/mod.ts";
import { CniCode, CniError } from "../../shared/errors.ts";
import { allow, type Exchange, type Guard, identify } from "../../shared/https/mod.ts";
import { GrpcCode, RpcError } from "../../shared/rpc/rpc-error.ts";
import { type LogLevels, levelOf } from "./document-service.ts";
import type { DocumentQuestion, MadeDocument } from "./views.ts";

/** Documents of an agent; its `Views`, as far as they are asked from afar. */
export interface Documents {
  document(question: DocumentQuestion, gone: AbortSignal): Promise<MadeDocument | undefined>;
  /** As `TraceSessions.answer`. */
  trace(json: Uint8Array, by: string, gone: AbortSignal): Promise<Uint8Array>;
}

export interface Told {
  /** Absent: nobody is known here, so nobody is told anything but numbers. */
  readonly guard: Guard | undefined;
  /** Absent while the agent has not begun. */
  readonly documents: Documents | undefined;
  readonly logLevels: LogLevels;
}

/** What stands in paths and in rights: `get` of `/v1/documents/pods`, `update` of `/v1/log-level` and `/v1/trace`. */
const paths = { documents: "/v1/documents/", logLevel: "/v1/log-level", trace: "/v1/trace" } as const;

/**
 * Answers an operator who comes by the API server, or who has a token of their own.
 * @throws {Refusal}
 */
export async function answerOperator(exchange: Exchange, told: Told, ended: AbortSignal): Promise<void> {
  const { path, method } = exchange;
  if (path === paths.trace) return await answerTrace(exchange, told, ended);
  if (path === paths.logLevel) return await answerLogLevel(exchange, told);
  if (!path.startsWith(paths.documents)) throw new Refusal(404, "the server could not find the requested resource");
  if (method !== "GET") throw new Refusal(405, "this can only be read");
  const { guard, documents } = told;
  if (guard === undefined)
    throw new Refusal(403, "nobody is known over plain HTTP, so that documents are for HTTPS or the socket");
  await allow(guard, await identify(guard, exchange), { t: "path", verb: "get", path });
  const kind = path.slice(paths.documents.length);
  if (!isNodeKind(kind)) throw new Refusal(404, "there is no such kind of documents");
  if (documents === undefined) throw new Refusal(503, "the agent is still starting", 1);
  await answerDocument(exchange, documents, kind, ended);
}

async function answerDocument(
  exchange: Exchange,
  documents: Documents,
  kind: string,
  ended: AbortSignal,
): Promise<void> {
  const { query } = exchange;
  const question = {
    kind,
    name: query.get("name") ?? "",
    ifNotRevision: query.get("ifNotRevision") ?? "",
    waitMs: waitOf(query.get("waitMs")),
  };
  const gone = exchange.gone;
  const made = await asRefusals(() => documents.document(question, AbortSignal.any([gone, ended])));
  const type = "application/json";
  if (made === undefined) {
    exchange.answer(200, type, JSON.stringify({ revision: question.ifNotRevision, unchanged: true }));
    return;
  }
  const head = JSON.stringify({ revision: made.revision, atMs: made.atMs });
  const text = new TextDecoder().decode(made.json);
  exchange.answer(200, type, `${head.slice(0, -1)},"document":${text}}`);
}

/** @throws {Refusal} 400 */
function waitOf(text: string | null): number {
  if (text === null) return 0;
  if (/^\d{1,6}$/.test(text)) return Number(text);
  throw new Refusal(400, '"waitMs" is no number of milliseconds');
}

async function answerLogLevel(exchange: Exchange, { guard, logLevels }: Told): Promise<void> {
  const { method, path, query } = exchange;
  if (method !== "GET" && method !== "PUT") throw new Refusal(405, "this can be read with GET and changed with PUT");
  if (guard === undefined) throw new Refusal(403, "nobody is known over plain HTTP");
  const user = await identify(guard, exchange);
  await allow(guard, user, { t: "path", verb: method === "PUT" ? "update" : "get", path });
  if (method === "PUT") {
    if (logLevels.set === undefined) throw new Refusal(409, "the log level of this agent stays as it is");
    const level = await asRefusals(async () => levelOf(query.get("level") ?? ""));
    logLevels.set(level, user.name);
  }
  exchange.answer(200, "application/json", JSON.stringify({ level: logLevels.level() }));
}

/** A trace changes flows, also where it is only asked for what it has seen: that is of packets of all pods. */
async function answerTrace(exchange: Exchange, { guard, documents }: Told, ended: AbortSignal): Promise<void> {
  const { method, path, query } = exchange;
  if (method !== "PUT") throw new Refusal(405, "a trace is asked for with PUT");
  if (guard === undefined) throw new Refusal(403, "nobody is known over plain HTTP");
  const user = await identify(guard, exchange);
  await allow(guard, user, { t: "path", verb: "update", path });
  if (documents === undefined) throw new Refusal(503, "the agent is still starting", 1);
  const request = new TextEncoder().encode(query.get("request") ?? "");
  const gone = AbortSignal.any([exchange.gone, ended]);
  const json = await asRefusals(() => documents.trace(request, user.name, gone));
  exchange.answer(200, "application/json", new TextDecoder().decode(json));
}

const statuses = new Map<number, number>([
  [GrpcCode.invalidArgument, 400],
  [GrpcCode.notFound, 404],
  [GrpcCode.failedPrecondition, 409],
  [GrpcCode.resourceExhausted, 413],
]);

/** What keeps a document from being made, as an HTTP answer; other failures are logged, and told as such. */
async function asRefusals<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (caught) {
    if (caught instanceof RpcError) throw new Refusal(statuses.get(caught.grpcCode) ?? 503, caught.message);
    if (caught instanceof CniError && caught.code === CniCode.invalidConfig) throw new Refusal(400, caught.message);
    if (caught instanceof CniError && caught.code === CniCode.unknownContainer) throw new Refusal(404, caught.message);
    if (caught instanceof CniError && caught.code === CniCode.tryAgainLater) throw new Refusal(503, caught.message, 1);
    throw caught;
  }
}
