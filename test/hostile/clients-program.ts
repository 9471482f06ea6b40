import { concat, encodeFrame, encodeSettings, FrameType, flags, preface } from "../../shared/rpc/h2-frames.ts";
import { encodeHeaders } from "../../shared/rpc/hpack.ts";
import { prefixed } from "../../shared/rpc/message-frame.ts";

/**
 * A crowd of clients that want nothing: `bun clients-program.ts SOCKET COUNT MANNER`. Says "ready" once all of them have
 * connected, and how many of them were sent away since for each line that it reads.
 */

const opening = concat([new TextEncoder().encode(preface), encodeSettings([])]);
const call = (path: string, stream = 1): Uint8Array =>
  encodeFrame(
    FrameType.headers,
    flags.endHeaders,
    stream,
    encodeHeaders([
      [":method", "POST"],
      [":scheme", "http"],
      [":path", path],
      ["te", "trailers"],
      ["content-type", "application/grpc"],
    ]),
  );
const add = "/antrea_io.antrea.pkg.apis.cni.v1beta1.Cni/CmdAdd";
/** So many times what is going on, one behind the other. */
const questions = (count: number) =>
  Array.from({ length: count }, (_, i) => [
    call("/pipette.v1.Node/Status", 1 + 2 * i),
    encodeFrame(FrameType.data, flags.endStream, 1 + 2 * i, prefixed(new Uint8Array(0))),
  ]).flat();
/** What it takes of an answer before it says more. */
const nothing = encodeSettings([[4, 0]]);
const kilobytes = new Uint8Array(16_000);

/** What each says when it has connected. */
const manners: Readonly<Record<string, Uint8Array>> = {
  silent: new Uint8Array(0),
  /** A request that does not come. */
  half: concat([opening, call(add)]),
  /** The same, and most of a message. */
  heavy: concat([
    opening,
    call(add),
    encodeFrame(FrameType.data, 0, 1, prefixed(new Uint8Array(1_000_000)).subarray(0, 16_000)),
    ...Array.from({ length: 60 }, () => encodeFrame(FrameType.data, 0, 1, kilobytes)),
  ]),
  /** Headers without an end. */
  headers: concat([
    opening,
    encodeFrame(FrameType.headers, 0, 1, kilobytes),
    ...Array.from({ length: 3 }, () => encodeFrame(FrameType.continuation, 0, 1, kilobytes)),
  ]),
  /** A byte of a message each second. */
  drip: concat([opening, call(add), encodeFrame(FrameType.data, 0, 1, prefixed(new Uint8Array(1000))).subarray(0, 20)]),
  /** Asks and asks, and takes all answers. */
  eager: concat([opening, ...questions(1000)]),
  /** The same, and takes not a byte of an answer. */
  windowless: concat([new TextEncoder().encode(preface), nothing, ...questions(1000)]),
  /** One of many who do so. */
  few: concat([new TextEncoder().encode(preface), nothing, ...questions(10)]),
  /** Asks, and does not read the answers. */
  deaf: concat([
    opening,
    call("/pipette.v1.Node/ListInterfaces"),
    call("/pipette.v1.Policies/List"),
    encodeFrame(FrameType.data, flags.endStream, 1, prefixed(new Uint8Array(0))),
  ]),
};

const [, , socket = "", count = "0", manner = "silent"] = process.argv;
const says = manners[manner] ?? new Uint8Array(0);
let gone = 0;
const open = new Set<Bun.Socket>();
const unsent = new WeakMap<Bun.Socket, Uint8Array>();
const sendOn = (client: Bun.Socket): void => {
  const rest = unsent.get(client) ?? says;
  unsent.set(client, rest.subarray(Math.max(0, client.write(rest))));
};
for (let i = 0; i < Number(count); i++) {
  try {
    await Bun.connect({
      unix: socket,
      socket: {
        open(client) {
          open.add(client);
          sendOn(client);
          if (manner === "deaf") client.pause();
        },
        drain: sendOn,
        data: () => undefined,
        end: (client) => void client.end(),
        close(client) {
          if (open.delete(client)) gone++;
        },
        error: () => undefined,
      },
    });
  } catch {
    gone++;
  }
}
if (manner === "drip") setInterval(() => open.forEach((client) => void client.write(new Uint8Array(1))), 1000);
console.log("ready");
for await (const _ of console) console.log(gone);
process.exit(0);
