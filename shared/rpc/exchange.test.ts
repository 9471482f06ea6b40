import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { describeWith } from "../../test/support/requires.ts";
import { scratchDir } from "../../test/support/scratch-dir.ts";
import { exchange } from "./exchange.ts";
import { exchangeAlone } from "./exchange-alone.linux.ts";
import type { H2Call, Outcome } from "./h2-client.ts";
import { GrpcCode, RpcError } from "./rpc-error.ts";

/**
 * A server in a process of its own, as this one may block. The first byte says what it does: answer with the number of bytes
 * that came as soon as there is a "." at the end, the same in two parts, say nothing, close, or break the connection.
 */
const server = `
  const [path] = process.argv.slice(-1);
  Bun.listen({ unix: path, socket: {
    open(socket) { socket.data = { kind: "", bytes: 0 }; },
    data(socket, chunk) {
      const text = chunk.toString("latin1");
      socket.data.kind ||= text[0];
      socket.data.bytes += chunk.length;
      if (socket.data.kind === "c") socket.end();
      if (socket.data.kind === "b") socket.terminate();
      if (!text.endsWith(".")) return;
      const answer = String(socket.data.bytes);
      if (socket.data.kind === "a") socket.write(answer + ".");
      if (socket.data.kind !== "p") return;
      socket.write(answer);
      setTimeout(() => socket.write("."), 20);
    },
  } });
  console.log("ready");`;

/** A call whose request is these parts, and that is answered by what ends with a "." */
class ScriptedCall {
  outcome: Outcome = { t: "pending" };
  readonly ends: (string | undefined)[] = [];
  #parts: Uint8Array[];
  #heard = "";

  constructor(...parts: readonly string[]) {
    this.#parts = parts.map((part) => new TextEncoder().encode(part));
  }

  take(): Uint8Array {
    return this.#parts.shift() ?? new Uint8Array(0);
  }

  receive(bytes: Uint8Array): void {
    this.#heard += new TextDecoder().decode(bytes);
    if (!this.#heard.endsWith(".")) return;
    this.outcome = { t: "answered", message: new TextEncoder().encode(this.#heard) };
  }

  ended(why?: string): void {
    this.ends.push(why);
    this.outcome = { t: "failed", error: new RpcError(GrpcCode.unavailable, `it ended: ${why}`) };
  }
}

type Exchange = (
  address: string,
  call: H2Call,
  timeoutMs: number,
  what: string,
) => ReturnType<typeof exchangeAlone> | ReturnType<typeof exchange>;

const ways: readonly (readonly [string, Exchange])[] = [
  ["of a process that does nothing else", exchangeAlone],
  ["of one that does more", exchange],
];

describeWith("a call", ["linux", "root"], () => {
  let scratch: ReturnType<typeof scratchDir>;
  let path: string;
  const children: ReturnType<typeof spawn>[] = [];
  /** Answers once it listens. */
  async function start(file: string, ...args: readonly string[]): Promise<void> {
    const child = spawn(file, args, { stdio: ["ignore", "pipe", "inherit"] });
    children.push(child);
    await once(child.stdout, "data");
  }
  const listener = (at: string, uid: number, kind: string): Promise<void> =>
    start("perl", join(import.meta.dirname, "../../test/fakes/forward/listener.pl"), at, String(uid), kind);

  let home: ReturnType<typeof scratchDir>;
  beforeAll(async () => {
    home = scratchDir();
    path = join(home.path, "s");
    await start(process.execPath, "-e", server, path);
  });
  afterAll(() => {
    for (const child of children) child.kill("SIGKILL");
    home[Symbol.dispose]();
  });
  beforeEach(() => {
    scratch = scratchDir();
  });
  afterEach(() => scratch[Symbol.dispose]());

  const ask = async (by: Exchange, call: ScriptedCall, timeoutMs = 20_000, at = path): Promise<string | undefined> => {
    const answer = await by(at, call as unknown as H2Call, timeoutMs, "Cannot ask");
    return answer instanceof Uint8Array ? new TextDecoder().decode(answer) : answer;
  };
  type Refusal = Pick<RpcError, "grpcCode" | "message" | "absent" | "unreachable">;
  const refusal = async (by: Exchange, at: string, timeoutMs = 20_000): Promise<Refusal> => {
    try {
      await ask(by, new ScriptedCall("a."), timeoutMs, at);
    } catch (caught) {
      const { grpcCode, message, absent, unreachable } = caught as RpcError;
      return { grpcCode, message, absent, unreachable };
    }
    throw new Error("Broken invariant: this must fail");
  };

  describe.each(ways)("%s", (_who, by) => {
    test.each([
      ["at once", ["a."], "2."],
      ["in parts", ["p."], "2."],
      ["to several parts of a request", ["a", "bc", "."], "4."],
      // More than the kernel takes at a time.
      ["to a long request", ["a".repeat(3_000_000), "."], "3000001."],
    ])("is answered %s", async (_name, parts, answer) => {
      expect(await ask(by, new ScriptedCall(...parts))).toBe(answer);
    });

    test("has no answer where none comes in time", async () => {
      expect(await ask(by, new ScriptedCall("s."), 30)).toBeUndefined();
    });

    test("ends with what the call says of a server that closes, or breaks off", async () => {
      const [closed, broken] = [new ScriptedCall("c."), new ScriptedCall("b.")];
      await expect(ask(by, closed)).rejects.toThrow("it ended: undefined");
      await expect(ask(by, broken)).rejects.toThrow(/it ended/);
      expect([closed.ends[0], broken.ends.length > 0]).toEqual([undefined, true]);
    });

    test("ends at once where the call has failed before", async () => {
      const call = new ScriptedCall("s.");
      call.outcome = { t: "failed", error: new RpcError(GrpcCode.internal, "no such call") };
      await expect(ask(by, call)).rejects.toThrow("no such call");
    });

    test("reaches nobody where nobody listens", async () => {
      writeFileSync(join(scratch.path, "file"), "");
      for (const [name, why] of [
        ["none", "ENOENT"],
        ["file", "ECONNREFUSED"],
      ] as const)
        expect(await refusal(by, join(scratch.path, name))).toEqual({
          grpcCode: GrpcCode.unavailable,
          message: `Cannot ask: nobody listens (${why}), wanted an agent`,
          absent: true,
          unreachable: true,
        });
    });

    test("waits for a listener whose queue is full, as long as it may", async () => {
      const at = join(scratch.path, "s");
      await listener(at, 0, "full");
      expect(await refusal(by, at, 50)).toEqual({
        grpcCode: GrpcCode.deadlineExceeded,
        message: "Cannot ask: its listener took no connection within 50 ms",
        absent: false,
        unreachable: true,
      });
    });
  });

  test("names what else keeps it from connecting", async () => {
    writeFileSync(join(scratch.path, "file"), "");
    expect(await refusal(exchangeAlone, join(scratch.path, "file", "s"))).toEqual({
      grpcCode: GrpcCode.unavailable,
      message: "Cannot ask: connecting fails with ENOTDIR, wanted an agent",
      absent: false,
      unreachable: true,
    });
  });

  test("names a path that is too long, in bytes", async () => {
    const long = `/${"x".repeat(106)}`;
    expect(await refusal(exchangeAlone, long)).toMatchObject({ absent: true });
    for (const path of [`${long}x`, `/${"x".repeat(105)}ü`])
      expect(await refusal(exchangeAlone, path)).toMatchObject({
        grpcCode: GrpcCode.unavailable,
        message: expect.stringMatching(/^Cannot ask: the path is longer than 10[67] bytes$/),
        unreachable: true,
      });
  });

  test("tells nothing to another user's server", async () => {
    const at = join(scratch.path, "s");
    Bun.spawnSync(["chmod", "777", scratch.path]);
    await listener(at, 65_534, "open");
    expect(await refusal(exchangeAlone, at)).toEqual({
      grpcCode: GrpcCode.unavailable,
      message: "Cannot ask: user 65534 listens there, wanted root",
      absent: false,
      unreachable: true,
    });
  });
});
