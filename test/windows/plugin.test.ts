import { closeSync, copyFileSync, mkdirSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { compileForWindows } from "./wine/c-program.ts";
import { describeWine } from "./wine/describe-wine.ts";
import { executables } from "./wine/prefix.ts";
import type { Ended, ProgramOptions } from "./wine/program.ts";

// The plugin as Windows runs it, without an agent.

const conf = { cniVersion: "1.0.0", name: "pods", type: "pipette" };
const variables = (verb: string, more: Readonly<Record<string, string>> = {}) => ({
  CNI_COMMAND: verb,
  CNI_CONTAINERID: "c1",
  CNI_NETNS: "none",
  CNI_IFNAME: "eth0",
  CNI_PATH: "C:\\cni\\bin",
  ...more,
});

describeWine("the plugin on Windows", (wine) => {
  describe("pipette.exe as a plugin", () => {
    const pipette = (verb: string, options: ProgramOptions = {}): Promise<Ended> =>
      wine.prefix.run(`${executables}/pipette.exe`, { ...options, env: variables(verb, options.env) });
    const version = (options: ProgramOptions): Promise<Ended> => pipette("VERSION", options);

    /** A configuration of this many bytes, in one object. */
    const padded = (bytes: number): string => {
      const text = JSON.stringify({ ...conf, padding: "" });
      return text.replace('"padding":""', `"padding":"${"x".repeat(bytes - text.length)}"`);
    };
    const supported = { cniVersion: "1.0.0", supportedVersions: expect.arrayContaining(["0.1.0", "1.1.0"]) };

    test.each([200, 4_096, 65_536, 400_000])(
      "reads a configuration of %i bytes from a pipe, a socket and a file",
      async (bytes) => {
        const text = padded(bytes);
        const file = wine.prefix.unixPath("C:\\conf.json");
        writeFileSync(file, text);
        const fd = openSync(file, "r");
        const slowly = `{ head -c 100 '${file}'; sleep 0.2; tail -c +101 '${file}'; } | "$@"`;
        const all = await Promise.all([
          version({ stdin: text }),
          version({ stdin: fd }),
          version({ shell: `cat '${file}' | "$@"` }),
          version({ shell: slowly }),
        ]);
        closeSync(fd);
        for (const ended of all) {
          expect(ended).toMatchObject({ status: 0, stderr: "" });
          expect(JSON.parse(ended.stdout)).toEqual(supported);
        }
      },
    );

    test.each([
      ["nothing", '"$@" </dev/null'],
      ["a closed input", '"$@" <&-'],
      ["an empty pipe", ': | "$@"'],
    ])("takes %s for no configuration", async (_, shell) => {
      // VERSION is answered without one.
      expect(await version({ shell })).toMatchObject({ status: 0 });
      const ended = await pipette("ADD", { shell });
      expect(ended.status).toBe(1);
      expect(JSON.parse(ended.stdout)).toMatchObject({ code: 6, msg: expect.stringContaining("it is empty") });
    });

    test("refuses a configuration above 1 MiB and does not wait for the rest of it", async () => {
      const ended = await pipette("ADD", { stdin: padded(3_000_000) });
      expect(ended.status).toBe(1);
      expect(JSON.parse(ended.stdout).code).toBe(6);
    });

    test.each([
      ["a file", '"$@" > "$OUT"; s=$?; cat "$OUT"; exit $s'],
      ["a pipe that is read late", '{ "$@"; echo "status $?" >&2; } | { sleep 0.3; cat; }'],
    ])("writes its whole result to %s", async (_, shell) => {
      const out = wine.prefix.unixPath("C:\\out.json");
      const ended = await version({ shell, stdin: JSON.stringify(conf), env: { OUT: out } });
      expect(JSON.parse(ended.stdout)).toEqual(supported);
      expect(ended.stderr).toMatch(/^(status 0\n)?$/);
    });

    test("fails where nobody takes its result", async () => {
      const shell = '{ "$@"; echo "status $?" >&2; } | :';
      const ended = await version({ shell, stdin: JSON.stringify(conf) });
      expect(ended.stderr).toMatch(/status [1-9]/);
    });

    test("answers bad input with one error object and status 1", async () => {
      const good = JSON.stringify(conf);
      const table: readonly [stdin: string, env: Record<string, string>, code: number][] = [
        ["{", {}, 6],
        ["[]", {}, 6],
        [JSON.stringify({ cniVersion: "1.0.0", type: "pipette" }), {}, 7],
        [JSON.stringify({ ...conf, cniVersion: "9.9.9" }), {}, 1],
        [good, { CNI_CONTAINERID: "" }, 4],
        [good, { CNI_IFNAME: "../x" }, 4],
        [good, { CNI_NETNS: "container:" }, 4],
        [good, { CNI_NETNS: "/run/netns/x:y" }, 4],
      ];
      const all = await Promise.all(table.map(([stdin, env]) => pipette("ADD", { stdin, env })));
      expect(all.map(({ status, stdout }) => [status, JSON.parse(stdout).code])).toEqual(
        table.map(([, , code]) => [1, code]),
      );
      for (const { stdout } of all) expect(JSON.parse(stdout).msg).toMatch(/^Cannot .*wanted/);
    });

    test("says that no agent came in time, and a DEL does not need one", async () => {
      const stdin = JSON.stringify({ ...conf, addTimeoutMs: 500 });
      const add = await pipette("ADD", { stdin });
      expect(add.status).toBe(1);
      expect(JSON.parse(add.stdout)).toMatchObject({
        code: 11,
        msg: expect.stringContaining("\\\\.\\pipe\\pipette-cni"),
      });
      // Far from the half minute that an ADD may take.
      expect(add.ms).toBeLessThan(15_000);
      expect(await pipette("DEL", { stdin })).toMatchObject({ status: 0, stdout: "" });
    });

    test("is the same program under another name in capitals, and with a path that has blanks", async () => {
      const directory = wine.prefix.unixPath("C:\\Program Files\\cni bin");
      mkdirSync(directory, { recursive: true });
      copyFileSync(`${executables}/pipette-ipam.exe`, join(directory, "PIPETTE-IPAM.EXE"));
      const ipam = { type: "pipette-ipam", dataDir: "C:\\named", ranges: [[{ subnet: "10.3.0.0/24" }]] };
      const stdin = JSON.stringify({ ...conf, ipam });
      const ended = await wine.prefix.run(join(directory, "PIPETTE-IPAM.EXE"), { env: variables("ADD"), stdin });
      expect(JSON.parse(ended.stdout)).toMatchObject({ ips: [{ address: "10.3.0.2/24" }] });
    });
  });

  describe("an IPAM plugin of somebody else on Windows", () => {
    const directory = "C:\\Program Files\\their bin";
    const log = "C:\\foreign.log";
    beforeAll(() => compileForWindows("stubs/foreign-ipam.c", wine.prefix.unixPath(`${directory}\\their-ipam.exe`)));

    const add = (path: string, stdin: string): Promise<Ended> => {
      const env = variables("ADD", { CNI_PATH: path, FOREIGN_LOG: log });
      return wine.prefix.run(`${executables}/pipette.exe`, { env, stdin });
    };

    test("is found in any directory of CNI_PATH, which semicolons separate, and taken back without an agent", async () => {
      const stdin = JSON.stringify({ ...conf, padding: "x".repeat(100_000), ipam: { type: "their-ipam" } });
      const ended = await add(`relative;C:\\nothing;${directory};C:\\`, stdin);
      expect(JSON.parse(ended.stdout).code).toBe(11);
      const lines = readFileSync(wine.prefix.unixPath(log), "utf8").trim().split(/\r?\n/);
      expect(lines).toEqual([`ADD c1 ${stdin.length}`, `DEL c1 ${stdin.length}`]);
    });

    test("is not looked for in what colons or the working directory would make of CNI_PATH", async () => {
      const stdin = JSON.stringify({ ...conf, ipam: { type: "their-ipam" } });
      for (const path of [`C:\\nothing:${directory}`, ".", "Program Files\\their bin", "\\Program Files\\their bin"]) {
        expect(JSON.parse((await add(path, stdin)).stdout)).toMatchObject({
          code: 4,
          msg: expect.stringContaining(JSON.stringify(path)),
        });
      }
    });
  });
});
