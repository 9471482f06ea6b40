import { readNode, readOwner, writeNode } from "../../../agent/cluster/etcd/records.ts";
import { listNodes } from "../../../agent/cluster/kubernetes/list-watch.ts";
import { nodeOf, nodes } from "../../../agent/cluster/kubernetes/node-resource.ts";
import { textOfNode } from "../../../agent/cluster/node-text.ts";
import { watchMethod } from "../../../agent/protocols/etcd/messages.ts";
import { EtcdError, etcdMethods, keyOf, textOf } from "../../../agent/protocols/etcd/mod.ts";
import { ApiClient, ApiError, serviceAccountAccess } from "../../../shared/kubernetes/mod.ts";
import { WatchFrames } from "../../../shared/kubernetes/watch-frames.ts";
import { WireError } from "../../../shared/proto/wire.ts";
import type { Opened, Target } from "../engine/target.ts";
import { nestedMutator, protobufFields } from "../mutate/frames.ts";
import { jsonLinesMutator } from "../mutate/json.ts";
import { pieces } from "./http2.ts";
import { refusable, requireHarmless } from "./words.ts";

function decoded<T>(decode: (bytes: Uint8Array) => T, input: Uint8Array): T | undefined {
  try {
    return decode(input);
  } catch (caught) {
    if (caught instanceof WireError || caught instanceof EtcdError) return undefined;
    throw caught;
  }
}

/** A record of another node: taken or refused, and what was taken says the same when it is written. */
function record(name: string, text: string): void {
  readOwner(text);
  const node = refusable(() => readNode(name, text));
  if (node === undefined) return;
  const again = readNode(name, writeNode(node));
  if (!Bun.deepEquals(textOfNode(again), textOfNode(node), true))
    throw new Error("A record is read as another after it was written");
}

export const etcd: Target = {
  name: "etcd",
  what: "answers, watch events and records of etcd",
  mutators: [nestedMutator(protobufFields)],
  dictionary: ["/pipette/v1/nodes/a", '{"uid":"', '"addresses":["10.0.0.1"]', '"subnets":["10.1.0.0/24"]', '"mac":"'],
  maxBytes: 16 * 1024,
  open: () => ({
    run: (input) => {
      const range = decoded(etcdMethods.range.response.decode, input);
      const watch = decoded(watchMethod.response.decode, input);
      decoded(etcdMethods.txn.response.decode, input);
      decoded(etcdMethods.leaseGrant.response.decode, input);
      for (const kv of [...(range?.kvs ?? []), ...(watch?.events.map((event) => event.kv) ?? [])])
        if (kv !== undefined) record(keyOf(kv), textOf(kv));
      record("node-a", new TextDecoder().decode(input));
    },
  }),
};

const words = [
  ...[
    "type",
    "object",
    "ADDED",
    "MODIFIED",
    "DELETED",
    "BOOKMARK",
    "ERROR",
    "metadata",
    "resourceVersion",
    "name",
    "spec",
  ],
  ...["podCIDR", "podCIDRs", "status", "addresses", "InternalIP", "address", "conditions", "Ready", "annotations"],
  ...["node.pipette.io/mac-address", "items", "continue", "code", "message", "__proto__", "node.kubernetes.io"],
];

/** A server that sends these bytes, in pieces, whatever it is asked. */
function openApi(): Opened {
  let body: Uint8Array = new Uint8Array(0);
  /** Pages of an endless list are all the same. */
  let pages = 0;
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 10,
    fetch: () => {
      const start = (out: ReadableStreamDefaultController): void => {
        for (const piece of pieces(body)) out.enqueue(piece);
        out.close();
      };
      return ++pages > 3 ? new Response("", { status: 404 }) : new Response(new ReadableStream({ start }));
    },
  });
  const access = serviceAccountAccess({ server: `http://127.0.0.1:${server.port}` }, {}, "server");
  const api = new ApiClient(access);
  const attempt = async (run: () => void | Promise<void>): Promise<void> => {
    try {
      await run();
    } catch (caught) {
      // What it says goes into the log of the agent, which follows on after a pause.
      if (!(caught instanceof Error) || (caught.constructor !== Error && !(caught instanceof ApiError))) throw caught;
      requireHarmless(caught.message, "the error of a request");
    }
  };
  return {
    run: async (input) => {
      body = input.slice();
      pages = 0;
      await attempt(async () => {
        for (const node of await listNodes(api)) textOfNode(node);
      });
      for (const table of [undefined, nodes.fields])
        await attempt(() => {
          const frames = new WatchFrames(table);
          for (const piece of pieces(body)) for (const { object } of frames.push(piece)) nodeOf(object);
        });
    },
    close: () => server.stop(true),
  };
}

export const kubernetes: Target = {
  name: "kubernetes",
  what: "lists and watch streams of the API server",
  mutators: [jsonLinesMutator(words)],
  dictionary: words,
  maxBytes: 16 * 1024,
  open: openApi,
};
