import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { execa } from "execa";
import { beforeAll, describe, expect, test } from "vitest";
import { compileExecutables, executables } from "../conformance/plugin.ts";
import { describeWith } from "../support/requires.ts";

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** Packages of which plain bundles of the program and its page have code: told by the bundler, without any part of the build's own. */
async function packagesInProgram(): Promise<readonly string[]> {
  const [program, page] = [join(root, "main.ts"), join(root, "ui", "main.tsx")];
  const bundles = [
    await Bun.build({ entrypoints: [program], target: "bun", metafile: true }),
    await Bun.build({ entrypoints: [page], target: "browser", metafile: true }),
  ];
  const paths = bundles
    .flatMap(({ metafile }) => Object.values(metafile?.outputs ?? {}))
    .flatMap(({ inputs }) =>
      Object.entries(inputs).flatMap(([path, { bytesInOutput }]) => (bytesInOutput > 0 ? [path] : [])),
    );
  const names = paths.flatMap((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1] ?? []);
  return [...new Set(names)].sort();
}

/** The packages that a text of licences names, of which it has the text, and of which not. */
function named(text: string): { readonly listed: readonly string[]; readonly texts: readonly string[] } {
  const [, listed = ""] = /npm packages in the program:\n\n(.*?)\n\n/s.exec(text) ?? [];
  return {
    listed: listed.split("\n").map((line) => line.split(" ")[0] ?? ""),
    texts: [...text.matchAll(/^---- (\S+)$/gm)].map(([, name = ""]) => name),
  };
}

describeWith("the licences in an executable", ["linux"], () => {
  let printed = "";

  beforeAll(async () => {
    await compileExecutables();
    printed = (await execa(join(executables, "pipette"), ["version", "--licenses"])).stdout;
  });

  test("are those of exactly the packages that are in it", async () => {
    const packages = await packagesInProgram();
    expect(packages).toEqual(expect.arrayContaining(["@grpc/grpc-js", "yaml"]));
    expect(named(printed).listed).toEqual(packages);
  });

  test("have the text that each of these packages brings", () => {
    const { listed, texts } = named(printed);
    const bringing = listed.filter((name) => licenceFile(name) !== undefined);
    expect(texts).toEqual(bringing);
    for (const name of bringing) expect(printed, name).toContain(readFileSync(licenceFile(name) ?? "", "utf8").trim());
  });

  test("begin with Pipette's own, and name the runtime", () => {
    expect(printed.startsWith(readFileSync(join(root, "LICENSE"), "utf8").trim())).toBe(true);
    expect(printed).toMatch(new RegExp(`^Bun ${Bun.version} +MIT `, "m"));
    expect(printed).toContain("JavaScriptCore is under the LGPL");
  });

  describe("at a terminal", () => {
    test("help names the option, and without it nothing of them is said", async () => {
      const help = await execa(join(executables, "pipette"), ["version", "--help"]);
      expect(help.stdout).toMatch(/^ {2}--licenses {2}\S/m);
      const version = await execa(join(executables, "pipette"), ["version"]);
      expect(version.stdout.split("\n")).toHaveLength(2);
    });
  });
});

describeWith("the licences of the small program in an executable", ["linux", "musl", "mingw"], () => {
  test("are those of both systems' C libraries, with the texts that name their authors", async () => {
    compileExecutables();
    const { stdout } = await execa(join(executables, "pipette"), ["version", "--licenses"]);
    for (const name of ["musl", "mingw-w64 runtime", "libgcc"])
      expect(stdout, name).toMatch(new RegExp(`^${name} \\d\\S+ +\\S+`, "m"));
    expect(stdout).toMatch(/^==== musl$[\s\S]*Rich Felker[\s\S]*^==== mingw-w64 runtime$[\s\S]*the mingw-w64 project/m);
  });
});

function licenceFile(name: string): string | undefined {
  const directory = join(root, "node_modules", name);
  const file = readdirSync(directory).find((entry) => /^licen[cs]e/i.test(entry));
  return file === undefined ? undefined : join(directory, file);
}
