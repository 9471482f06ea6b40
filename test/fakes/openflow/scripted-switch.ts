import { type ConnectionEvent, OpenFlowConnection } from "../../../agent/protocols/openflow/connection.ts";
import { MessageType, wireVersion } from "../../../agent/protocols/openflow/constants.ts";
import { type Frame, FrameReader } from "../../../agent/protocols/openflow/message.ts";
import { WireWriter } from "../../../agent/protocols/openflow/wire-writer.ts";

/** For tests: one message as a switch sends it. */
export function message(
  type: number,
  xid: number,
  body: string | Uint8Array = "",
  version: number = wireVersion,
): Uint8Array {
  const bytes = typeof body === "string" ? Buffer.from(body.replaceAll(" ", ""), "hex") : body;
  return new WireWriter()
    .u8(version)
    .u8(type)
    .u16(8 + bytes.length)
    .u32(xid)
    .bytes(bytes)
    .done();
}

/** HELLO with a bitmap of versions. */
export const hello = (versions = (1 << 4) | (1 << wireVersion)): Uint8Array =>
  message(MessageType.HELLO, 0, new WireWriter().u16(1).u16(8).u32(versions).done());

export const features = (xid: number, version?: number): Uint8Array =>
  message(MessageType.FEATURES_REPLY, xid, "000026e00d5a764f 00000000 fe 00 0000 0000024f 00000000", version);

/** An error about the message that `data` begins. */
export const refusal = (xid: number, type: number, code: number, data: Uint8Array = new Uint8Array(8)): Uint8Array =>
  message(MessageType.ERROR, xid, new WireWriter().u16(type).u16(code).bytes(data).done());

/** A connection without input or output, and the switch at its other end, which says what a test has it say. */
export class ScriptedSwitch {
  readonly events: ConnectionEvent[] = [];
  readonly connection: OpenFlowConnection;
  readonly #reader = new FrameReader();
  /** How many bytes of what it says come at a time. */
  readonly #cut: number;

  constructor(cut = Number.POSITIVE_INFINITY, firstXid = 1) {
    this.#cut = cut;
    this.connection = new OpenFlowConnection({
      firstXid,
      onEvent: (event) => this.events.push(event),
      wake: () => undefined,
      unsentBytes: 1024 * 1024,
    });
  }

  /** One that has said what it is. */
  static opened(cut?: number, firstXid?: number): ScriptedSwitch {
    const made = new ScriptedSwitch(cut, firstXid);
    made.say(hello());
    const asked = made.heard().at(-1);
    made.say(features(asked?.xid ?? 0));
    return made;
  }

  say(...messages: readonly Uint8Array[]): void {
    const all = Buffer.concat(messages);
    for (let at = 0; at < all.length; at += this.#cut) {
      // A piece of its own, overwritten afterwards, as a socket may reuse its buffer.
      const piece = Uint8Array.from(all.subarray(at, at + this.#cut));
      this.connection.receive(piece);
      piece.fill(0xee);
    }
  }

  /** What the connection has sent since it was last asked. */
  heard(): readonly Frame[] {
    return [...this.#reader.push(this.connection.take())];
  }
}

/** How a request ends: with its value or its error. */
export interface Ending<T> {
  value?: T;
  error?: Error;
}

export function ending<T>(): Ending<T> & { resolve(value: T): void; reject(error: Error): void } {
  return {
    resolve(value) {
      this.value = value;
    },
    reject(error) {
      this.error = error;
    },
  };
}
