import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { isWindows } from "../os/platform.ts";
import { isListening, listeningPaths } from "./listening.ts";

test("reads the kernel's table: listening sockets with a path, blanks in it included", () => {
  const table = [
    "Num       RefCount Protocol Flags    Type St Inode Path",
    "ffff88810a3c1100: 00000002 00000000 00010000 0001 01 39255 /run/a b/cni.sock",
    "0000000000000000: 00000002 00000000 00010000 0005 01  1234 /run/other.sock",
    "0000000000000000: 00000003 00000000 00000000 0001 03 39257 /run/connected.sock",
    "0000000000000000: 00000002 00000000 00010000 0001 01 39258",
    "0000000000000000: 00000002 00000000 00010000 0001 01 39259 @abstract",
    "",
  ].join("\n");
  expect(listeningPaths(table)).toEqual(["/run/a b/cni.sock", "/run/other.sock", "@abstract"]);
});

test("tells a listener from a socket file without one, also through a symbolic link", async ({ skip }) => {
  skip(isWindows, "Windows has no such table: a pipe that exists is served");
  const folder = mkdtempSync(join(tmpdir(), "pt-rpc-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, "real", "cni.sock");
  writeFileSync(join(folder, "cni.sock"), "");
  mkdirSync(join(folder, "real"));
  symlinkSync(join(folder, "real"), join(folder, "link"));
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(path, resolve));
  expect(await isListening(path)).toBe(true);
  expect(await isListening(join(folder, "link", "cni.sock"))).toBe(true);
  // The same name in another folder is another socket.
  expect(await isListening(join(folder, "cni.sock"))).toBe(false);
  await new Promise((resolve) => server.close(resolve));
  expect(await isListening(path)).toBe(false);
});
