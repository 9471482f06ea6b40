import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { loadPackageDefinition, type Metadata, Server, ServerCredentials, type ServiceDefinition } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { LeaseKeeper } from "./lease-keeper.ts";

/**
 * An agent that does what a test says, for what a real one will not do on request. It is made from
 * the text of the proto files, so nothing of Pipette's own codec is in it; leases it keeps with the real allocator.
 */

export interface Asked {
  readonly method: string;
  /** `cni_args` of a Cni method, else the whole request; bytes as text. */
  readonly request: Readonly<Record<string, unknown>>;
  readonly metadata: Metadata;
}

export interface GrpcFailure {
  readonly grpcCode: number;
  readonly message: string;
}

/** `"silence"`: none at all. */
export type Answer = Record<string, unknown> | GrpcFailure | "silence";
export type Script = (asked: Asked) => Answer | Promise<Answer>;

export interface ScriptedAgent extends AsyncDisposable {
  readonly socket: string;
  readonly asked: Asked[];
  /** What follows is answered by this script. */
  follow(script: Script): void;
  stop(): void;
}

const protoDirectory = join(dirname(dirname(dirname(fileURLToPath(import.meta.url)))), "shared", "proto");

/** Does with leases what a real agent does. */
export const obliging = (): Script => {
  const keeper = new LeaseKeeper();
  return (asked) => keeper.answer(asked);
};

/** Does its work, and then answers something else. */
export const obligingButAnswering = (script: Script): Script => {
  const oblige = obliging();
  return async (asked) => {
    await oblige(asked);
    return script(asked);
  };
};

export const refusing =
  (code: number, message: string): Script =>
  () => ({ error: { code, message } });

/** @param at where it listens; absent: at a place of its own */
export async function startScriptedAgent(
  script: Script = obliging(),
  services = "both",
  at?: string,
): Promise<ScriptedAgent> {
  const directory = mkdtempSync(join(tmpdir(), "pt-cf-agent-"));
  const socket = at ?? join(directory, "cni.sock");
  const asked: Asked[] = [];
  let current = script;
  const server = new Server();
  const answer = async (method: string, call: ServerCall, done: Done): Promise<void> => {
    const whole = (call.request["cni_args"] as Record<string, unknown> | undefined) ?? call.request;
    const request = Object.fromEntries(
      Object.entries(whole).map(([k, v]) => [k, Buffer.isBuffer(v) ? v.toString() : v]),
    );
    const now: Asked = { method, request, metadata: call.metadata };
    asked.push(now);
    const said = await current(now);
    if (said === "silence") return;
    if ("grpcCode" in said) {
      done({ code: Number(said["grpcCode"]), details: String(said["message"]) });
    } else {
      const bytes = typeof said["cni_result"] === "string" ? { cni_result: Buffer.from(said["cni_result"]) } : {};
      done(null, { ...said, ...bytes });
    }
  };
  for (const [service, methods] of definitions(services)) {
    const handlers = methods.map((method) => [method, (call: never, done: Done) => answer(method, call, done)]);
    server.addService(service, Object.fromEntries(handlers));
  }
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.bindAsync(`unix:${socket}`, ServerCredentials.createInsecure(), (error) =>
    error ? reject(error) : resolve(),
  );
  await promise;
  const stop = (): void => server.forceShutdown();
  return {
    socket,
    asked,
    follow: (next) => {
      current = next;
    },
    stop,
    [Symbol.asyncDispose]: async () => {
      stop();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

interface ServerCall {
  readonly request: Record<string, unknown>;
  readonly metadata: Metadata;
}

type Done = (error: { code: number; details: string } | null, response?: unknown) => void;

/** The `Cni` service, and `Node` unless only the reference system's is asked for. */
function definitions(services: string): [ServiceDefinition, string[]][] {
  const options = { keepCase: true, longs: Number, defaults: true };
  const wanted: [string, string[]][] = [
    ["cni.proto", ["antrea_io", "antrea", "pkg", "apis", "cni", "v1beta1", "Cni"]],
    ["pipette.proto", ["pipette", "v1", "Node"]],
  ];
  return wanted.slice(0, services === "cni" ? 1 : 2).map(([file, path]) => {
    let found: unknown = loadPackageDefinition(loadSync(join(protoDirectory, file), options));
    for (const name of path) found = (found as Record<string, unknown>)[name];
    const { service } = found as { service: ServiceDefinition };
    return [service, Object.keys(service)];
  });
}
