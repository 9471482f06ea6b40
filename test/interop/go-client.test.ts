import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Header, HpackDecoder } from "../../shared/rpc/hpack.ts";
import { describeWith } from "../support/requires.ts";
import { compileGoPrograms, type GoPrograms, goNeeds } from "./go-programs.ts";
import { type Peer, startPeer } from "./peer.ts";

/** Go programs, compiled here, as clients of our server side and as a second opinion on HPACK. */

const run = promisify(execFile);

describeWith("Go programs", goNeeds, () => {
  const folder = mkdtempSync(join(tmpdir(), "pt-rpc-go-"));
  const socket = join(folder, "cni.sock");
  const server = new URL("own-server.ts", import.meta.url).pathname;
  let programs: GoPrograms;
  let peer: Peer;

  beforeAll(async () => {
    programs = await compileGoPrograms();
    peer = await startPeer(process.execPath, [server, socket], socket);
  }, 240_000);

  afterAll(async () => {
    await peer.kill();
    rmSync(folder, { recursive: true });
  });

  interface Line {
    readonly code: number;
    readonly message: string;
    readonly result: string;
    readonly error: string;
  }

  async function client(
    form: string,
    address: string,
    calls: number,
    what: string,
    configuration = "",
  ): Promise<Line[]> {
    const args = [form, address, String(calls), what, configuration];
    const { stdout } = await run(programs.client, args, { maxBuffer: 2 ** 24 });
    return stdout
      .trim()
      .split("\n")
      .map((line): Line => JSON.parse(line));
  }

  describe.each(["url", "path", "encoded"])("a client that names the socket in the form %j", (form) => {
    test("is served, again and again on one connection", async () => {
      const lines = await client(form, socket, 20, "arguments");
      const result = "arguments|/var/run/netns/x|eth0|K8S_POD_NAME=web;K8S_POD_NAMESPACE=default|/opt/cni/bin";
      expect(lines).toEqual(new Array(20).fill({ code: 0, message: "", result, error: "" }));
    });

    test("gets errors, statuses and long answers", async () => {
      expect(await client(form, socket, 1, "error")).toMatchObject([{ code: 0, error: "102 no bridge 2" }]);
      expect(await client(form, socket, 1, "status-9", "100% 網")).toMatchObject([{ code: 9, message: "100% 網" }]);
      const [line] = await client(form, socket, 1, "bytes-3000000");
      expect(line?.result).toHaveLength(3_000_000);
    });
  });

  test("50 of them at once are served", async () => {
    const lines = await Promise.all(
      Array.from({ length: 50 }, (_, i) => client("path", socket, 2, "echo", `pod ${i}`)),
    );
    expect(lines.flat().map((line) => line.result)).toEqual(lines.flatMap((_, i) => [`pod ${i}`, `pod ${i}`]));
  });

  test("4000 header blocks by Go's encoder read as it wrote them", async () => {
    const { stdout } = await run(programs.headers, ["20260101", "4000"], { maxBuffer: 2 ** 28 });
    const decoder = new HpackDecoder(4096, 1_000_000);
    const lines = stdout.trim().split("\n");
    expect(lines).toHaveLength(4000);
    const bytesOf = (digits: string): string => Buffer.from(digits, "hex").toString("latin1");
    for (const line of lines) {
      const [block = "", list = ""] = line.split(" ");
      const headers = (JSON.parse(list) as [string, string][]).map(
        ([name, value]): Header => [bytesOf(name), bytesOf(value)],
      );
      expect(decoder.decode(new Uint8Array(Buffer.from(block, "hex")))).toEqual(headers);
    }
  });
});
