import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { compileForWindows } from "./wine/c-program.ts";
import { describeWine } from "./wine/describe-wine.ts";
import type { Program } from "./wine/program.ts";

// That the checks can fail is shown with a program in C, which shares nothing with Pipette.

describeWine("what stands in for Windows' own", (wine) => {
  describe("our stub of HNS", () => {
    let driver: string;
    beforeAll(async () => {
      driver = wine.prefix.unixPath("C:\\driver.exe");
      await compileForWindows("stubs/hns-driver.c", driver, ["-lcomputenetwork", "-lole32"]);
    });
    beforeEach(() => wine.stubs.hns.reset());

    /** Runs until it waits for the end of its input. */
    async function atItsEnd(how: string): Promise<Program> {
      const program = wine.prefix.start(driver, { args: [how], inputStaysOpen: true });
      await program.saying(/^delete .*/m);
      return program;
    }

    test("keeps documents, refuses a second endpoint at an address, and answers in UTF-16 with an error record", async () => {
      await using program = await atItsEnd("clean");
      const { networks, endpoints } = wine.stubs.hns.store;
      expect([...networks.values()]).toMatchObject([{ ID: "11111111-2222-3333-4444-555555555555", Name: "nü" }]);
      expect([...endpoints.values()]).toMatchObject([
        { IpConfigurations: [{ IpAddress: "10.9.0.7", PrefixLength: 24 }] },
      ]);
      const [first, created, refused, list, deleted] = program.stdout.split(/\r?\n/);
      expect([first, created]).toEqual(["network 00000000 -", "endpoint 00000000 -"]);
      expect(refused).toMatch(/^endpoint 803b0013 \{"Success":false,"Error":"10.9.0.7 is in use."/);
      expect(list).toBe(`list 00000000 ["${[...endpoints.keys()][0]}"]`);
      expect(deleted).toMatch(/not found/);
    });

    test("counts handles and strings that are not given back, as long as the process lives", async () => {
      const { hns } = wine.stubs;
      await using clean = await atItsEnd("clean");
      expect(hns.handles.list()).toEqual([]);
      expect(hns.calls.at(-1)?.strings).toBe(0);
      clean.endInput();
      await clean.ended;
      hns.reset();
      await using leaking = await atItsEnd("leak");
      expect(hns.handles.list().map((line) => line.replace(/".*/, ""))).toEqual(["network ", "endpoint "]);
      expect(hns.calls.at(-1)?.strings).toBe(1);
      leaking.endInput();
      await leaking.ended;
      await expect.poll(() => hns.handles.list()).toEqual([]);
    });

    test("holds and fails calls as it is told", async () => {
      const { hns } = wine.stubs;
      const hang = hns.fault({ call: "HcnCreateNetwork", holdMs: "until released", hresult: 0x80070005 });
      await using program = wine.prefix.start(driver, { args: ["clean"] });
      await hang.hit();
      expect(hns.calls).toEqual([]);
      hang[Symbol.dispose]();
      await program.saying("network 80070005");
      expect(hns.store.networks.size).toBe(0);
    });

    test("answers that the service is away", async () => {
      wine.stubs.hns.isAway = true;
      const ended = await wine.prefix.run(driver);
      expect(ended.stdout).toMatch(/^network 800706ba/);
    });
  });

  describe("our stubs of commands", () => {
    const script = "Get-NetAdapter 'Größe'";
    const encoded = Buffer.from(script, "utf16le").toString("base64");

    test("say who was called with what, and what the test answers", async () => {
      const { commands } = wine.stubs;
      commands.answerWith = ({ program }) => ({ status: 3, stdout: `from ${program} ü`, stderr: "and errors" });
      const powershell = "C:\\windows\\System32\\WindowsPowerShell\\v1.0\\powershell.exe";
      const ended = await wine.prefix.run(powershell, { args: ["-NoProfile", "-EncodedCommand", encoded] });
      expect(ended).toMatchObject({ status: 3, stdout: "from powershell ü", stderr: "and errors" });
      for (const name of ["netsh", "route"]) {
        const { stdout } = await wine.prefix.run(`C:\\windows\\System32\\${name}.exe`, { args: ["a b", "c"] });
        expect(stdout).toBe(`from ${name} ü`);
      }
      expect(commands.log).toMatchObject([
        { program: "powershell", script },
        { args: ["a b", "c"] },
        { program: "route" },
      ]);
    });

    test("fail without an answer", async () => {
      wine.stubs.commands.answerWith = () => undefined;
      const ended = await wine.prefix.run("netsh", { args: ["interface"] });
      expect(ended).toMatchObject({ status: 97, stdout: "" });
    });
  });
});
