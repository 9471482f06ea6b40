import { expect, test } from "vitest";
import { scratchDir } from "../../test/support/scratch-dir.ts";
import { firstBytes } from "./first-bytes.linux.ts";

/** A client of its own that has written before this process can accept it. */
function clientThatWrites(unix: string, text: string): void {
  const program = `const socket = await Bun.connect({ unix: process.argv[1], socket: { data() {} } });
    socket.write(process.argv[2]);
    await Bun.sleep(1);
    process.exit(0);`;
  const { exitCode } = Bun.spawnSync([process.execPath, "-e", program, unix, text]);
  expect(exitCode).toBe(0);
}

test.each(["a call", ""])("what a client has sent before it is accepted is read then, and once: %j", async (text) => {
  using scratch = scratchDir();
  const unix = `${scratch.path}/s`;
  const accepted = Promise.withResolvers<string | undefined>();
  const closed = Promise.withResolvers<void>();
  let later = "";
  const listener = Bun.listen({
    unix,
    socket: {
      open: (socket) => {
        const bytes = firstBytes(socket);
        accepted.resolve(bytes === undefined ? undefined : new TextDecoder().decode(bytes));
        expect(firstBytes(socket)).toBeUndefined();
      },
      data: (_, bytes) => {
        later += new TextDecoder().decode(bytes);
      },
      close: () => closed.resolve(),
    },
  });
  try {
    clientThatWrites(unix, text);
    expect(await accepted.promise).toBe(text === "" ? undefined : text);
    await closed.promise;
    expect(later).toBe("");
  } finally {
    listener.stop(true);
  }
});

test("a socket without a descriptor has sent nothing", () => {
  expect([firstBytes({}), firstBytes({ fd: -1 })]).toEqual([undefined, undefined]);
});
