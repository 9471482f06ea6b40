import { existsSync, lstatSync, mkdtempSync, rmSync, statSync, unlinkSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, expect, test } from "vitest";
import { describeWith } from "../../test/support/requires.ts";
import { limits } from "../limits.ts";
import { UnixListener } from "./unix-listener.ts";

// A pipe has no permission bits, no file to be left behind, and no queue to lengthen.
describeWith("a listener on a unix socket", ["linux"], () => {
  const folder = mkdtempSync(join(tmpdir(), "pt-listener-"));
  const path = join(folder, "s.sock");
  const open: UnixListener[] = [];

  async function listen(backlog?: number): Promise<UnixListener> {
    const options = backlog === undefined ? {} : { backlog };
    const listener = await UnixListener.listen<undefined>(path, options, { data: () => undefined });
    open.push(listener);
    return listener;
  }

  afterEach(() => {
    for (const listener of open.splice(0)) listener.close();
    rmSync(path, { force: true });
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  test("is its owner's alone, whatever the process's mask, which stays", async () => {
    const before = process.umask(0);
    try {
      await listen();
      expect(statSync(path).mode & 0o777).toBe(0o700);
      expect(process.umask()).toBe(0);
    } finally {
      process.umask(before);
    }
  });

  test("has a queue as long as it was asked for", async () => {
    await listen(7);
    const { stdout } = Bun.spawnSync(["ss", "-xlH", "src", path]);
    expect(Number(stdout.toString().trim().split(/\s+/)[3])).toBe(7);
  });

  test("takes a crowd that connects before it has accepted anybody", async () => {
    await listen();
    // No turn of the event loop between them, so all of them wait in the queue.
    const sockets = await Promise.all(
      Array.from({ length: Math.min(1000, limits.listenBacklog) }, () =>
        Bun.connect({ unix: path, socket: { data: () => undefined } }),
      ),
    );
    expect(sockets).toHaveLength(1000);
    for (const socket of sockets) socket.terminate();
  });

  test("refuses a path that is taken, be it by a file that a dead process left", async () => {
    await listen();
    await expect(listen()).rejects.toMatchObject({ code: "EADDRINUSE" });
    // What is refused leaves the other's socket as it is.
    expect(lstatSync(path).isSocket()).toBe(true);
    const child = Bun.spawnSync([
      process.execPath,
      "-e",
      `Bun.listen({unix:"${path}2",socket:{data(){}}});process.kill(process.pid,9)`,
    ]);
    expect(child.signalCode).toBe("SIGKILL");
    await expect(UnixListener.listen(`${path}2`, {}, { data: () => undefined })).rejects.toMatchObject({
      code: "EADDRINUSE",
    });
  });

  test("closes twice and takes its socket away", async () => {
    const listener = await listen();
    listener.close();
    expect(existsSync(path)).toBe(false);
    listener.close();
  });

  test("leaves another program's socket, and a missing one, alone when it closes", async () => {
    const listener = await listen();
    unlinkSync(path);
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(path, resolve));
    const { ino } = lstatSync(path);
    listener.close();
    expect(lstatSync(path).ino).toBe(ino);
    await new Promise((resolve) => other.close(resolve));
    const second = await listen();
    unlinkSync(path);
    second.close();
    expect(existsSync(path)).toBe(false);
  });
});
