import { afterEach, beforeAll, expect, test } from "vitest";
import { concat, encodeFrame, encodeSettings, FrameType, flags } from "../../../shared/rpc/h2-frames.ts";
import { encodeHeaders } from "../../../shared/rpc/hpack.ts";
import { prefixed } from "../../../shared/rpc/message-frame.ts";
import { describeWine } from "../wine/describe-wine.ts";
import type { Ended } from "../wine/program.ts";
import { PipeLab, pipe } from "./pipe-lab.ts";

/** What an agent without problems answers to a STATUS: SETTINGS, headers, an empty message, trailers. */
const whole = concat([
  encodeSettings([]),
  encodeFrame(
    FrameType.headers,
    flags.endHeaders,
    1,
    encodeHeaders([
      [":status", "200"],
      ["content-type", "application/grpc"],
    ]),
  ),
  encodeFrame(FrameType.data, 0, 1, prefixed(new Uint8Array(0))),
  encodeFrame(FrameType.headers, flags.endHeaders | flags.endStream, 1, encodeHeaders([["grpc-status", "0"]])),
]);
const text = (words: string): Uint8Array => new TextEncoder().encode(words);

const errorOf = ({ status, stdout }: Ended): { code: number; msg: string } => {
  expect(status).toBe(1);
  return JSON.parse(stdout);
};

describeWine("the plugin at a pipe", (wine) => {
  const lab = new PipeLab(wine);
  beforeAll(() => lab.compileTool());
  afterEach(() => lab.clear());

  test("that nobody serves is waited for until the deadline", async () => {
    const ended = await lab.plugin("ADD", { addTimeoutMs: 2_000 });
    expect(errorOf(ended)).toEqual({
      cniVersion: "1.1.0",
      code: 11,
      msg: `Cannot ask the agent at "${pipe}": nobody listens (ENOENT), wanted an agent`,
      details: expect.stringMatching(/^it was waited for 1\d{3} ms; "sc.exe query pipette-agent", or the log/),
    });
    expect(ended.ms).toBeGreaterThan(1_500);
  });

  test("that is served a moment later gets its answer", async () => {
    const plugin = lab.plugin("ADD", { addTimeoutMs: 60_000 });
    await Bun.sleep(2_000);
    await lab.fakeServer(whole, 10_000);
    // Which is no result: but it has come.
    expect(errorOf(await plugin)).toMatchObject({ code: 201, msg: expect.stringContaining("the agent's result") });
  });

  test("of an administrator takes the answer", async () => {
    await lab.fakeServer(whole, 10_000);
    expect(await lab.plugin("STATUS")).toMatchObject({ status: 0, stdout: "" });
  });

  test("of a process without an administrator's rights sends nothing, and names process and account", async () => {
    const server = await lab.restrictedServer();
    const pid = /process (\d+)/.exec(server.stdout)?.[1];
    const { code, msg } = errorOf(await lab.plugin("ADD"));
    expect(code).toBe(11);
    expect(msg).toContain(`process ${pid}, which serves the pipe, runs as "`);
    expect(msg).toMatch(/ \(S-1-5-21-[\d-]+\) without the rights of an administrator, wanted one that runs as SYSTEM/);
    expect(server.stdout).not.toContain("heard");
  });

  test.each([
    ["that is silent", new Uint8Array(0), /there is no answer after 2000 ms$/],
    ["that stops in mid-answer", whole.subarray(0, 40), /there is no answer after 2000 ms$/],
  ])("ends at its deadline with a server %s", async (_, answer, wanted) => {
    await lab.fakeServer(answer, 10_000);
    const ended = await lab.plugin("ADD", { addTimeoutMs: 2_000 });
    expect(errorOf(ended)).toMatchObject({ code: 11, msg: expect.stringMatching(wanted) });
    expect(ended.ms).toBeGreaterThan(2_000);
  });

  test.each([
    ["closes in mid-answer", whole.subarray(0, 40), /the server closed the connection before it answered/],
    ["closes without a word", new Uint8Array(0), /the server closed the connection before it answered/],
    ["speaks another protocol", text("HTTP/1.1 400 Bad Request\r\n\r\n"), /begins with "HTTP\/1.1 400 Bad/],
  ])("fails with a server that %s", async (_, answer, wanted) => {
    await lab.fakeServer(answer, 1_000);
    expect(errorOf(await lab.plugin("ADD"))).toMatchObject({ msg: expect.stringMatching(wanted) });
  });

  test("whose instances are all taken waits for one", async () => {
    await lab.fakeServer(whole, 10_000, 3_000);
    const ended = await lab.plugin("STATUS");
    expect(ended).toMatchObject({ status: 0, stdout: "" });
    expect(ended.ms).toBeGreaterThan(1_000);
  });

  test("whose instances stay taken gives up at its deadline", async () => {
    await lab.fakeServer(whole, 10_000, 30_000);
    const { code, msg } = errorOf(await lab.plugin("ADD", { addTimeoutMs: 2_000 }));
    expect(code).toBe(11);
    expect(msg).toMatch(/all of its instances were taken for 2000 ms, wanted an agent$/);
  });
});
