import { describe, expect, test } from "vitest";
import { ascii, data, headers, opening, ScriptedClient, wholeCall } from "../../../test/fakes/http2/scripted-client.ts";
import { empty } from "../../../test/fakes/http2/scripted-server.ts";
import { concat, encodeFrame, encodeReset, encodeSettings, encodeWindowUpdate, flags } from "../../rpc/h2-frames.ts";
import { encodeHeaders, type Header } from "../../rpc/hpack.ts";
import { H2Code } from "./fault.ts";

describe("what ends the connection", () => {
  const afterOpening = (bytes: Uint8Array): Uint8Array => concat([opening, wholeCall(1), bytes]);
  const longBlock = encodeHeaders(Array.from({ length: 400 }, (_, i): Header => [`k${i}`, "v".repeat(30)]));
  test.each([
    ["HTTP/1", ascii("GET / HTTP/1.1\r\n\r\n"), H2Code.protocolError],
    ["a preface with an error at its end", ascii("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\r"), H2Code.protocolError],
    ["no SETTINGS in front", concat([opening.subarray(0, 24), wholeCall(1)]), H2Code.protocolError],
    [
      "an acknowledgement in front",
      concat([opening.subarray(0, 24), encodeFrame(4, 1, 0, empty)]),
      H2Code.protocolError,
    ],
    ["a frame of 16385 bytes", afterOpening(data(1, new Uint8Array(16_385))), H2Code.frameSizeError],
    ["SETTINGS of 5 bytes", afterOpening(encodeFrame(4, 0, 0, new Uint8Array(5))), H2Code.frameSizeError],
    ["SETTINGS acknowledged with more", afterOpening(encodeFrame(4, 1, 0, new Uint8Array(6))), H2Code.frameSizeError],
    ["SETTINGS on a stream", afterOpening(encodeFrame(4, 0, 1, empty)), H2Code.protocolError],
    ["a push setting of 2", afterOpening(encodeSettings([[2, 2]])), H2Code.protocolError],
    ["an initial window of 2^31", afterOpening(encodeSettings([[4, 2 ** 31]])), H2Code.flowControlError],
    ["a frame size of 16383", afterOpening(encodeSettings([[5, 16_383]])), H2Code.protocolError],
    ["a frame size of 2^24", afterOpening(encodeSettings([[5, 2 ** 24]])), H2Code.protocolError],
    ["PING of 7 bytes", afterOpening(encodeFrame(6, 0, 0, new Uint8Array(7))), H2Code.frameSizeError],
    ["PING on a stream", afterOpening(encodeFrame(6, 0, 1, new Uint8Array(8))), H2Code.protocolError],
    ["RST_STREAM of 3 bytes", afterOpening(encodeFrame(3, 0, 1, new Uint8Array(3))), H2Code.frameSizeError],
    ["RST_STREAM of a stream to come", afterOpening(encodeReset(3, 8)), H2Code.protocolError],
    ["WINDOW_UPDATE of 5 bytes", afterOpening(encodeFrame(8, 0, 0, new Uint8Array(5))), H2Code.frameSizeError],
    ["WINDOW_UPDATE of 0", afterOpening(encodeWindowUpdate(0, 0)), H2Code.protocolError],
    ["WINDOW_UPDATE of a stream to come", afterOpening(encodeWindowUpdate(3, 1)), H2Code.protocolError],
    ["a window beyond 2^31", afterOpening(encodeWindowUpdate(0, 2 ** 31 - 1)), H2Code.flowControlError],
    ["DATA of a stream to come", afterOpening(data(3, ascii("x"))), H2Code.protocolError],
    ["DATA of no stream", afterOpening(data(0, ascii("x"))), H2Code.protocolError],
    ["more padding than DATA", afterOpening(data(1, new Uint8Array([9, 1, 2]), flags.padded)), H2Code.protocolError],
    ["more padding than HEADERS", afterOpening(encodeFrame(1, 12, 3, new Uint8Array([9, 1]))), H2Code.protocolError],
    ["a stream of a server", afterOpening(headers(2)), H2Code.protocolError],
    ["headers of no stream", afterOpening(headers(0)), H2Code.protocolError],
    ["a push", afterOpening(encodeFrame(5, 4, 1, new Uint8Array(4))), H2Code.protocolError],
    ["GOAWAY on a stream", afterOpening(encodeFrame(7, 0, 1, new Uint8Array(8))), H2Code.protocolError],
    ["CONTINUATION of nothing", afterOpening(encodeFrame(9, 4, 3, empty)), H2Code.protocolError],
    [
      "headers that are interrupted",
      afterOpening(concat([encodeFrame(1, 0, 3, empty), encodeFrame(6, 0, 0, new Uint8Array(8))])),
      H2Code.protocolError,
    ],
    [
      "headers that go on elsewhere",
      afterOpening(concat([encodeFrame(1, 0, 3, empty), encodeFrame(9, 4, 5, empty)])),
      H2Code.protocolError,
    ],
    [
      "an empty CONTINUATION",
      afterOpening(concat([encodeFrame(1, 0, 3, empty), encodeFrame(9, 0, 3, empty)])),
      H2Code.enhanceYourCalm,
    ],
    [
      "headers that name what is not there",
      afterOpening(encodeFrame(1, 4, 3, new Uint8Array([0xff, 0x00]))),
      H2Code.compressionError,
    ],
    [
      "headers without end",
      afterOpening(
        concat([encodeFrame(1, 0, 3, longBlock), ...Array.from({ length: 4 }, () => encodeFrame(9, 0, 3, longBlock))]),
      ),
      H2Code.enhanceYourCalm,
    ],
  ])("%s", async (_, bytes, code) => {
    for (const pieceBytes of [bytes.length, 11]) {
      const client = new ScriptedClient();
      await client.send(bytes, pieceBytes);
      expect(client.goaway()?.[1]).toBe(code);
      expect(client.connection.isOver).toBe(true);
      // Nothing that follows is read or answered.
      expect(await client.send(wholeCall(7))).toEqual([]);
    }
  });

  test("names the last call that was begun", async () => {
    const client = new ScriptedClient();
    await client.send(concat([opening, wholeCall(1), wholeCall(5), data(0, empty)]));
    expect(client.goaway()).toEqual([5, H2Code.protocolError]);
  });
});
