import { afterEach, beforeAll, expect, test } from "vitest";
import { compileSmallProgram } from "../../../build/forward.ts";
import { supportedVersions } from "../../../shared/cni/versions.ts";
import { answer, buildId } from "../../fakes/forward/forward-lab.ts";
import { compileForWindows } from "../wine/c-program.ts";
import { describeWine } from "../wine/describe-wine.ts";
import type { Ended } from "../wine/program.ts";
import { PipeLab, pipe } from "./pipe-lab.ts";

const small = "C:\\forward\\pipette.exe";
const standIn = "C:\\forward\\whole.exe";

describeWine("the small program at a pipe", (wine) => {
  const lab = new PipeLab(wine);
  beforeAll(async () => {
    await lab.compileTool();
    await compileForWindows("../fakes/forward/stand-in.c", wine.prefix.unixPath(standIn));
    const places = { agentSocket: pipe, ipamSocket: `${pipe}-ipam`, wholeProgram: standIn };
    wine.prefix.write(small, "");
    await compileSmallProgram({ system: "windows", outfile: wine.prefix.unixPath(small), buildId, places });
  });
  afterEach(() => lab.clear());

  const call = (verb = "ADD", stdin = "{}", env: Readonly<Record<string, string>> = {}): Promise<Ended> =>
    wine.prefix.run(wine.prefix.unixPath(small), { env: { CNI_COMMAND: verb, CNI_IFNAME: "eth0", ...env }, stdin });
  const forwarded = (why: string) =>
    new RegExp(`^argument .*pipette\\.exe\r?\nargument --forwarded\r?\nargument ${why}\r?\n`);

  test("answers VERSION by itself", async () => {
    const stdout = `${JSON.stringify({ cniVersion: "1.0.0", supportedVersions })}\n`;
    expect(await call("VERSION", '{"cniVersion":"1.0.0"}')).toMatchObject({ status: 0, stdout, stderr: "" });
  });

  test("ends as the server says", async () => {
    await lab.fakeServer(answer("done", { status: 1, stdout: '{"code":7}\n', stderr: "log\n" }), 10_000);
    expect(await call()).toMatchObject({ status: 1, stdout: '{"code":7}\n', stderr: "log\n" });
  });

  test("waits for what was taken", async () => {
    const bytes = Buffer.concat([answer("taken", { moreMs: 20_000 }), answer("done", { stdout: "{}\n" })]);
    await lab.fakeServer(bytes, 10_000);
    expect(await call()).toMatchObject({ status: 0, stdout: "{}\n" });
  });

  test.each([
    ["that nobody serves", undefined, "unasked"],
    ["whose server passes", answer("pass"), "unasked"],
    ["whose server is silent", Buffer.alloc(0), "lost"],
    ["of an older server", Buffer.from("HTTP"), "unasked"],
    ["whose server stops in mid-answer", answer("done", { stdout: "{}" }).subarray(0, 25), "lost"],
  ])("starts the whole program for a pipe %s", async (_, bytes, why) => {
    if (bytes !== undefined) await lab.fakeServer(bytes, 10_000);
    const { status, stdout } = await call("DEL", '{"a":1}');
    expect(stdout).toMatch(forwarded(why));
    expect(stdout).toMatch(/^stdin 7 /m);
    expect(status).toBe(7);
  });

  test("sends nothing to a server without an administrator's rights", async () => {
    const server = await lab.restrictedServer();
    expect((await call()).stdout).toMatch(forwarded("unasked"));
    expect(server.stdout).not.toContain("heard");
  });

  test.each([
    ["a long configuration", "x".repeat(300_000), {}, /^stdin 300000 /m],
    ["a very long one", "x".repeat(5_000_000), {}, /^stdin 10\d{5} /m],
  ])("hands %s over", async (_, stdin, env, wanted) => {
    const { status, stdout } = await call("ADD", stdin, env);
    expect(stdout).toMatch(forwarded("unasked"));
    expect(stdout).toMatch(wanted);
    expect(status).toBe(7);
  });

  test("leaves what it cannot forward as it came", async () => {
    const { stdout } = await call("ADD", "text", {
      CNI_ARGS: "a".repeat(30_000),
      CNI_PATH: "b".repeat(30_000),
      CNI_X: "c".repeat(6_000),
    });
    expect(stdout).toMatch(/^argument .*pipette\.exe\r?\nstdin 4 /);
  });
});
