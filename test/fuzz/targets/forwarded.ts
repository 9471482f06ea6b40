import { runHostedPlugin } from "../../../cni/hosted.ts";
import { verbsIn } from "../../../cni/verbs.ts";
import type { Allocator } from "../../../ipam/mod.ts";
import { ipamRunner } from "../../../ipam/service/forwarded.ts";
import { type PluginIo, runPlugin } from "../../../shared/cni/dispatch.ts";
import { createLogger } from "../../../shared/log.ts";
import { concat } from "../../../shared/rpc/h2-frames.ts";
import { GrpcCode, RpcError } from "../../../shared/rpc/rpc-error.ts";
import { CallTracker } from "../../../shared/server/call-tracker.ts";
import { type Face, readHead, readVariables, requestHeadBytes } from "../../../shared/server/forward/forward-wire.ts";
import { ForwardedCalls } from "../../../shared/server/forward/forwarded-calls.ts";
import { ForwardedConnection } from "../../../shared/server/forward/forwarded-connection.ts";
import type { CniRunner } from "../../../shared/server/forward/run-forwarded.ts";
import { allocatorInMemory } from "../../fakes/allocator-in-memory.ts";
import { decodeAnswers, encodeRequest } from "../../fakes/forward-request.ts";
import { atOnce } from "../../fakes/http2/scripted-client.ts";
import type { Target } from "../engine/target.ts";
import { pieces } from "./http2.ts";
import { requireSentence } from "./words.ts";

const dataDir = "/d";

function storeInMemory(): Allocator {
  const { allocator } = allocatorInMemory();
  allocator.transaction((store): void => store.setMark("host-local n", "none"));
  return allocator;
}

/** An agent that answers nobody. */
const ask = async (): Promise<never> => {
  throw new RpcError(GrpcCode.deadlineExceeded, "Cannot ask the agent: nobody answers, wanted an answer");
};

/** Both plugins with a store in memory. */
function served() {
  const allocator = storeInMemory();
  const pipette: CniRunner = (io, { pass }) =>
    runHostedPlugin(io, {
      socket: "/s",
      dataDir,
      agedMs: () => 0,
      borrowStore: () => allocator.lend(),
      pass,
      take: () => undefined,
      ask,
    });
  const runners = { pipette, "pipette-ipam": ipamRunner({ allocator, dataDir }) };
  const logger = createLogger("error", (line) => {
    throw new Error(`A fault is logged: ${line}`);
  });
  return new ForwardedCalls({ buildId: new Uint8Array(16), runners }, new CallTracker(), logger);
}

/** What the plugin says in a process of its own: its exit status, and what is on standard output. */
async function executed(input: Uint8Array): Promise<readonly [number, string]> {
  const read = readHead(input.slice(0, requestHeadBytes));
  if (read.t !== "call") throw new Error("A call that is no call was carried out");
  const texts = input.subarray(requestHeadBytes);
  const env = readVariables(texts.subarray(0, read.head.envBytes)) ?? {};
  const allocator = storeInMemory();
  let stdout = "";
  const io: PluginIo = {
    env,
    readStdin: async () => texts.subarray(read.head.envBytes),
    writeResult: async (text) => {
      stdout += `${text}\n`;
    },
    log: () => undefined,
  };
  return [await runPlugin(verbsIn({ ask, openStore: async () => allocator.lend() }), io), stdout];
}

/** What the caller is told, with the clock of the machine taken out: any call is one that is waited for. */
async function told(chunks: Iterable<Uint8Array>): Promise<string> {
  const memory = { heldBytes: 0 };
  const parts: Uint8Array[] = [];
  const connection: ForwardedConnection = new ForwardedConnection({
    calls: served(),
    memory,
    turns: atOnce,
    isTrusted: () => true,
    flush: () => {
      for (let part = connection.take(); part !== undefined; part = connection.take()) parts.push(part);
    },
  });
  try {
    for (const chunk of chunks) connection.receive(chunk);
    while (connection.isHandling) await new Promise((resolve) => setImmediate(resolve));
  } finally {
    connection.ended();
  }
  if (memory.heldBytes !== 0) throw new Error(`${memory.heldBytes} bytes of requests are held when all is over`);
  const answers = decodeAnswers(concat(parts));
  const last = answers.at(-1);
  if (last?.kind === "done" && last.status !== 0) {
    const { code, msg } = JSON.parse(last.stdout);
    if (!Number.isInteger(code)) throw new Error(`A call fails with the code ${code}`);
    requireSentence(msg, "the error of a call");
  }
  return JSON.stringify(answers.map(({ kind, status, stdout }) => [kind, status, stdout]));
}

function faceOf(input: Uint8Array): Face | undefined {
  const read = readHead(input.slice(0, requestHeadBytes));
  return read.t === "call" ? read.head.face : undefined;
}

/** Neither time of a request lies where it would decide: an input is the same call whenever it is tried. */
function atAnyTime(input: Uint8Array): Uint8Array {
  const bytes = input.slice();
  if (bytes.length >= 32) bytes.set(encodeRequest({ untilUs: Number.MAX_SAFE_INTEGER }).subarray(16, 32), 16);
  return bytes;
}

export const forwarded: Target = {
  name: "forwarded-call",
  what: "calls that are handed to the agent as they came",
  mutators: [],
  dictionary: ["CNI_COMMAND=ADD\0", "CNI_COMMAND=DEL\0", "CNI_COMMAND=GC\0", "CNI_IFNAME=", '"socket":"/s"', '"ipam":'],
  maxBytes: 4 * 1024,
  open: () => ({
    run: async (input) => {
      const bytes = atAnyTime(input);
      const [whole, cut] = [await told([bytes.slice()]), await told(pieces(bytes))];
      if (whole !== cut) throw new Error(`A call ends with ${whole}, and with ${cut} where the bytes come in pieces`);
      const [kind, ...said] = JSON.parse(whole).at(-1) ?? [];
      // The other plugin's store is a file where it runs alone; host-local is what it is compared with.
      if (kind !== "done" || faceOf(bytes) !== "pipette") return;
      const alone = JSON.stringify(await executed(bytes));
      if (alone !== JSON.stringify(said)) throw new Error(`A call ends with ${whole}, and with ${alone} by itself`);
    },
  }),
};
