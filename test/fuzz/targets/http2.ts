import { H2Call } from "../../../shared/rpc/h2-client.ts";
import { RpcError } from "../../../shared/rpc/rpc-error.ts";
import { requestHeaders, ScriptedClient } from "../../fakes/http2/scripted-client.ts";
import { random } from "../../support/random.ts";
import type { Target } from "../engine/target.ts";
import { frameMutator, http2Frames } from "../mutate/frames.ts";
import { requireSentence } from "./words.ts";

const dictionary = [
  "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
  ":path",
  ":method",
  "POST",
  "application/grpc",
  "grpc-status",
  "te",
];

/** Any sizes of pieces, the same for the same input. */
export function* pieces(input: Uint8Array): Generator<Uint8Array> {
  const chance = random(input.length * 31 + (input[input.length >> 1] ?? 0));
  const most = 1 + chance(chance(2) === 0 ? 8 : 4096);
  for (let at = 0; at < input.length; ) {
    const next = at + 1 + chance(most);
    yield input.slice(at, next);
    at = next;
  }
}

/** The server's side: never throws, holds nothing when its calls are over, and says the same however the bytes are cut. */
async function serve(input: Uint8Array): Promise<void> {
  const [whole, cut] = [new ScriptedClient(), new ScriptedClient()];
  await whole.send(input);
  for (const piece of pieces(input)) cut.connection.receive(piece);
  await cut.read();
  const events = ({ events }: ScriptedClient): string =>
    events
      .filter((event) => !event.startsWith("room"))
      .toSorted()
      .join();
  if (events(whole) !== events(cut))
    throw new Error(`Calls are ${events(whole)}, and ${events(cut)} where the bytes come in pieces`);
  if (whole.connection.isOver !== cut.connection.isOver)
    throw new Error("A connection ends only where the bytes come in one piece, or only where they do not");
  for (const { connection, memory } of [whole, cut]) {
    connection.ended();
    if (memory.heldBytes !== 0)
      throw new Error(`${memory.heldBytes} bytes of requests are held when all is over, wanted none`);
    if (connection.isHandling) throw new Error("A handler is at work when all is over");
  }
}

export const serverHttp2: Target = {
  name: "server-http2",
  what: "frames towards the agent's server",
  mutators: [frameMutator(http2Frames)],
  dictionary,
  maxBytes: 8 * 1024,
  open: () => ({ run: serve }),
};

function outcomeOf(chunks: Iterable<Uint8Array>): string {
  const call = new H2Call(requestHeaders(), new TextEncoder().encode("a request"), 'Cannot call "/a.B/C"');
  call.take();
  for (const chunk of chunks) {
    call.receive(chunk);
    call.take();
  }
  const { outcome } = call;
  if (outcome.t === "pending") return "pending";
  if (outcome.t === "answered") return Buffer.from(outcome.message).toString("hex");
  const { error } = outcome;
  if (!(error instanceof RpcError)) throw error;
  if (!Number.isInteger(error.grpcCode)) throw new Error(`A call fails with the code ${error.grpcCode}`);
  requireSentence(
    error.message.startsWith("Cannot ") ? error.message : `Cannot ${error.message}`,
    "the error of a call",
  );
  return `${error.grpcCode}`;
}

export const clientHttp2: Target = {
  name: "client-http2",
  what: "frames towards the plugin's call",
  mutators: [frameMutator(http2Frames)],
  dictionary: [...dictionary, "grpc-message", "%0A%1b[2J", "200"],
  maxBytes: 8 * 1024,
  open: () => ({
    run: (input) => {
      const whole = outcomeOf([input.slice()]);
      const cut = outcomeOf(pieces(input));
      if (whole !== cut) throw new Error(`A call ends with ${whole}, and with ${cut} where the bytes come in pieces`);
    },
  }),
};
