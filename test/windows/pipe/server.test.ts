import { readFileSync } from "node:fs";
import { afterEach, beforeAll, describe, expect, test } from "vitest";
import { parseCidr } from "../../../shared/net/ip.ts";
import { concat, encodeSettings, encodeWindowUpdate, flags, preface } from "../../../shared/rpc/h2-frames.ts";
import { prefixed } from "../../../shared/rpc/message-frame.ts";
import { data, headers, requestHeaders } from "../../fakes/http2/scripted-client.ts";
import { fillStore } from "../../support/filled-store.ts";
import { random } from "../../support/random.ts";
import { describeWine } from "../wine/describe-wine.ts";
import type { Program } from "../wine/program.ts";
import { PipeLab, pipe } from "./pipe-lab.ts";

const administratorsOnly = "D:P(A;;GA;;;SY)(A;;GA;;;BA)";

describeWine("a daemon's pipe", (wine) => {
  const lab = new PipeLab(wine);
  beforeAll(() => lab.compileTool());
  afterEach(() => lab.clear());

  /** Of the process that serves the pipe, as Windows counts. */
  const serverOf = async (): Promise<string> => (await lab.toolSays("access", pipe)).split(" ")[1] ?? "";

  test("peers 5.15: lets in SYSTEM and the administrators, as another process reads it", async () => {
    await lab.serve();
    expect(await lab.toolSays("access", pipe)).toMatch(/^process \d+ /);
    expect(await lab.toolSays("access", pipe)).toContain(` ${administratorsOnly}`);
  });

  test("has one server, however its name is written, and a new one once that was killed", async () => {
    const first = await lab.serve();
    const holder = await serverOf();
    for (const socket of [pipe, pipe.toUpperCase()]) {
      const second = await lab.begin({ socket }).ended;
      expect(second.status).toBe(1);
      expect(JSON.parse(second.stderr)).toMatchObject({
        code: 5,
        message: `Cannot start the allocator's service: socket "${socket}" is held by process ${holder}`,
      });
    }
    first.kill("SIGKILL");
    await first.ended;
    await lab.serve();
    expect(await lab.plugin("STATUS")).toMatchObject({ status: 0 });
  });

  test("peers 5.15: is not taken from another program", async () => {
    const other = await lab.fakeServer(new Uint8Array(0), 10_000);
    const pid = /process (\d+)/.exec(other.stdout)?.[1];
    // Its one instance is its own for a moment still.
    await expect.poll(serverOf).toBe(pid);
    const ours = await lab.begin().ended;
    expect(ours.status).toBe(1);
    expect(JSON.parse(ours.stderr)).toMatchObject({
      code: 5,
      message: `Cannot listen on "${pipe}": process ${pid} has it already, wanted a name of its own`,
    });
  });

  test.each([
    ["that lets everybody in", []],
    ["that has our rights", [administratorsOnly]],
    ["that shuts everybody out", ["D:P"]],
  ])("is served although a user has a mutex of its lock's name %s, and by one process only", async (_, rights) => {
    const user = lab.tool("restricted", "C:\\pipe-tool.exe", "mutex", "Global\\pipette:pipette-test.lock", ...rights);
    await user.saying("has the mutex");
    await lab.serve();
    const second = await lab.begin().ended;
    expect(second.status).toBe(1);
    expect(JSON.parse(second.stderr)).toMatchObject({ code: 5, message: expect.stringContaining(await serverOf()) });
    expect(await lab.plugin("STATUS")).toMatchObject({ status: 0 });
    expect(user.hasEnded).toBe(false);
  });

  test("has a name of a pipe", async () => {
    const { status, stderr } = await lab.begin({ socket: "C:\\data\\socket" }).ended;
    expect(status).toBe(1);
    expect(stderr).toContain("it is no name of a pipe, wanted one such as ");
  });

  test("ends its server once it is open to others", async () => {
    const service = await lab.serve();
    expect(await lab.toolSays("open", pipe)).toBe("open to all");
    // It looks every 10 seconds.
    expect(await service.ended).toMatchObject({ status: 1 });
    expect(service.stderr).toContain("Cannot be reached any more: the socket ");
    expect(service.stderr).toMatch(/ has the descriptor .+WD\)/);
  });

  test("goes with its server at Ctrl+C, in order", async () => {
    const service = await lab.serve();
    expect(await service.stop()).toMatchObject({ status: 0 });
    const messages = service.stderr
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line).message);
    expect(messages).toEqual(["ready", "signal", "stopping", "stopped"]);
    expect(await lab.toolSays("access", pipe)).toBe("CreateFile answers error 2");
  });

  describe("goes on serving", () => {
    const answers = async (): Promise<void> => {
      const ended = await lab.plugin("STATUS");
      expect(ended).toMatchObject({ status: 0, stdout: "" });
    };

    test("beside 1000 connections that say nothing", async () => {
      await lab.serve();
      const crowd = lab.tool("crowd", pipe, "1000", "3000");
      await crowd.saying("open: 1000");
      await answers();
      expect(crowd.hasEnded).toBe(false);
      await crowd.ended;
      await answers();
    });

    test("beside 200 that say garbage, and ends those", async () => {
      const service = await lab.serve();
      const next = random(7);
      const garbage = lab.file(
        "garbage",
        Uint8Array.from({ length: 3_000 }, () => next(256)),
      );
      const crowd = await lab.tool("crowd", pipe, "200", "1000", garbage).ended;
      expect(crowd.stdout).toContain("closed by the server: 200,");
      await answers();
      // Nothing of it is a fault of our own.
      expect(service.stderr).not.toContain('"error"');
    });

    test("beside 200 that stop in mid-request", async () => {
      await lab.serve();
      const half = lab.file("half", concat([opening, headers(1), data(1, new Uint8Array(3))]));
      const crowd = lab.tool("crowd", pipe, "200", "20000", half);
      await crowd.saying("open: 200");
      await answers();
      expect(crowd.hasEnded).toBe(false);
    });

    test("beside 10 that ask for much and never read, in little memory", async () => {
      const filling = { network: "pods", subnet: parseCidr("10.9.0.0/16")!, leases: 20_000, shape: "packed" } as const;
      await fillStore(wine.prefix.unixPath("C:\\many"), filling);
      const service = await lab.serve({ dataDir: "C:\\many" });
      const before = residentMb(service);
      const deaf = lab.tool("crowd", pipe, "10", "30000", lab.file("deaf", tenLists()));
      await deaf.saying("open: 10");
      await answers();
      await Bun.sleep(3_000);
      expect(deaf.hasEnded).toBe(false);
      // A hundred lists of 3 MB were asked for. Each may have read its leases, and has some frames on their way.
      expect(residentMb(service) - before).toBeLessThan(500);
      await answers();
    });
  });
});

const opening = concat([new TextEncoder().encode(preface), encodeSettings([[4, 0x7fff_ffff]])]);

/** Ten calls of `List` on one connection, whose client has room for all that comes. */
function tenLists(): Uint8Array {
  const head = requestHeaders({ ":path": "/pipette.v1.Ipam/List" });
  const calls = Array.from({ length: 10 }, (_, i) => [
    headers(1 + 2 * i, head),
    data(1 + 2 * i, prefixed(new Uint8Array(0)), flags.endStream),
  ]);
  return concat([opening, encodeWindowUpdate(0, 0x7fff_0000), ...calls.flat()]);
}

const residentMb = ({ pid }: Program): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024;
