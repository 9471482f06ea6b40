import { join } from "node:path";
import { expect, test } from "vitest";
import { eventually } from "../../../test/support/eventually.ts";
import { describeWith } from "../../../test/support/requires.ts";
import { scratchDir } from "../../../test/support/scratch-dir.ts";
import { type CharonError, CharonErrors } from "./charon-errors.ts";
import { ErrorType, messageBytes, readError } from "./error-message.ts";

function message({ type, text, connection, peer }: CharonError): Uint8Array {
  const bytes = new Uint8Array(new ArrayBuffer(messageBytes));
  new DataView(bytes.buffer).setUint32(0, type);
  const put = (at: number, words: string): void => bytes.set(new TextEncoder().encode(words), at);
  put(4, text);
  put(4 + 384, connection);
  put(4 + 384 + 64 + 256, peer);
  return bytes;
}

const refused: CharonError = {
  type: ErrorType.localAuthFailed,
  text: "creating local authentication data failed",
  connection: "p-n2-fa5b4f-in-1",
  peer: "172.30.0.2[4500]",
};

test("a message has texts that end at their first zero, or fill their place", () => {
  expect(readError(message(refused))).toEqual(refused);
  const full = { ...refused, peer: "x".repeat(60) };
  expect(readError(message(full))).toEqual(full);
  expect(readError(new Uint8Array(new ArrayBuffer(messageBytes)).fill(0xff)).text).toHaveLength(384);
});

describeWith("errors of an IKE daemon", ["linux"], () => {
  test("come whole, however they are cut; a daemon that comes later, or goes and comes, is heard", async () => {
    using scratch = scratchDir();
    const path = join(scratch.path, "charon.enfy");
    const heard: CharonError[] = [];
    await using errors = new CharonErrors(path, (error) => heard.push(error));
    await eventually(() => errors.absence?.includes("ENOENT") === true, "that there is none");
    const serve = () =>
      Bun.listen({
        unix: path,
        socket: {
          data: () => undefined,
          open: (socket) => {
            const all = Buffer.concat([message(refused), message({ ...refused, type: 6 })]);
            for (let at = 0; at < all.length; at += 100) socket.write(all.subarray(at, at + 100));
          },
        },
      });
    const first = serve();
    await eventually(() => heard.length === 2, "both messages");
    expect(errors.absence).toBeUndefined();
    expect(heard.map(({ type }) => type)).toEqual([ErrorType.localAuthFailed, ErrorType.retransmitTimeout]);
    first.stop(true);
    await eventually(() => errors.absence !== undefined, "that it is gone");
    const second = serve();
    await eventually(() => heard.length === 4, "those of the next");
    second.stop(true);
  });
});
