import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { Ajv } from "ajv";
import { execa } from "execa";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ServiceHome } from "../ipam/service-process.ts";
import { describeWith } from "../support/requires.ts";
import { commitTime, SourceCopy } from "./source-copy.ts";

const root = join(import.meta.dirname, "../..");

describeWith("a release, as npm run package makes it", ["linux", "root"], () => {
  // On the disk that npm's packages lie on, which are linked and not copied.
  const parent = mkdtempSync(join(root, "dist/.test-release-"));
  const at = (...names: readonly string[]): string => join(parent, ...names);
  const releaseIn = (place: string): string => at(place, "dist/release");
  const release = releaseIn("here");
  const wanted = ["--platform", "linux-x64"];
  let version = "";

  beforeAll(async () => {
    const [here, there] = [await SourceCopy.make(at("here")), await SourceCopy.make(at("a/place/deeper"))];
    ({ version } = JSON.parse(readFileSync(at("here/package.json"), "utf8")));
    for (const copy of [here, there]) await copy.git("tag", `v${version}`);
    await Promise.all(
      [here, there].map(async (copy) => {
        await copy.build("package.ts", ...wanted);
        await copy.build("compile.ts", "windows");
      }),
    );
  });
  afterAll(() => rmSync(parent, { recursive: true, force: true }));

  const bytesOf = (directory: string): Readonly<Record<string, string>> =>
    Object.fromEntries(
      readdirSync(directory)
        .filter((name) => !name.startsWith("."))
        .map((name) => [
          name,
          new Bun.CryptoHasher("sha256").update(readFileSync(join(directory, name))).digest("hex"),
        ]),
    );

  test("is the same byte for byte from two directories and at two times", () => {
    expect(bytesOf(releaseIn("a/place/deeper"))).toEqual(bytesOf(release));
    expect(bytesOf(at("a/place/deeper/dist/windows-x64"))).toEqual(bytesOf(at("here/dist/windows-x64")));
  });

  test("has everything, with checksums", async () => {
    expect(readdirSync(release).sort()).toEqual(
      [
        "SHA256SUMS",
        ...(readdirSync(at("here/conf")).includes("chart") ? [`pipette-chart-${version}.tgz`] : []),
        `pipette-${version}-linux-amd64.image.tar`,
        `pipette-${version}-linux-x64.tar.gz`,
        `pipette-ipam-client-${version}.tgz`,
        `pipette_${version}_amd64.deb`,
        "sbom.cdx.json",
      ].sort(),
    );
    const checked = await execa("sha256sum", ["--check", "--strict", "SHA256SUMS"], { cwd: release });
    expect(checked.stdout.split("\n")).toHaveLength(readdirSync(release).length - 1);
  });

  test("has an archive whose executable runs where it is unpacked, and says the tag", async () => {
    await execa("tar", ["-xzf", join(release, `pipette-${version}-linux-x64.tar.gz`), "-C", parent]);
    const top = at(`pipette-${version}-linux-x64`);
    expect(readdirSync(top).sort()).toEqual(
      ["LICENSE", "README.md", "SECURITY.md", "THIRD-PARTY.txt", "conf", "docs", "pipette", "pipette-ipam"].sort(),
    );
    for (const name of ["pipette", "pipette-ipam"])
      expect((await execa(join(top, name), ["version"])).stdout).toContain(`pipette ${version}: `);
    const { stdout } = await execa("find", [top, "-newermt", `@${commitTime + 1}`]);
    expect(
      stdout.split("\n").filter((path) => !/\/(conf|docs|kubernetes|chart.*)$/.test(path) && path !== top),
    ).toEqual([]);
  });

  test("tells in CycloneDX what is in it", () => {
    const text = readFileSync(join(release, "sbom.cdx.json"), "utf8");
    const schemas = join(
      createRequire(import.meta.url).resolve("@cyclonedx/cyclonedx-library/package.json"),
      "../res/schema",
    );
    const schema = (name: string): object =>
      JSON.parse(readFileSync(join(schemas, `${name}.SNAPSHOT.schema.json`), "utf8"));
    const ajv = new Ajv({
      strict: false,
      validateFormats: false,
      schemas: [schema("spdx"), schema("jsf-0.82"), schema("cryptography-defs")],
    });
    const valid = ajv.compile(schema("bom-1.6"));
    const sbom = JSON.parse(text);
    expect(valid(sbom), JSON.stringify(valid.errors)).toBe(true);
    expect(valid({ ...sbom, components: [{ type: "library" }] })).toBe(false);
    const names = [...text.matchAll(/"name": "([^"]+)"/g)].map(([, name]) => name);
    expect(names).toEqual(expect.arrayContaining(["@grpc/grpc-js", "yaml", "Bun", "nftables", "libc6"]));
  });

  test("names what its npm packages are, and no more of them than are in the program", () => {
    const { components }: { components: { purl?: string }[] } = JSON.parse(
      readFileSync(join(release, "sbom.cdx.json"), "utf8"),
    );
    const named = components.flatMap(
      ({ purl = "" }) => /^pkg:npm\/(?!bun@)(.*)@/.exec(purl)?.[1]?.replace("%40", "@") ?? [],
    );
    const { packages }: { packages: Record<string, { dev?: boolean }> } = JSON.parse(
      readFileSync(at("here/package-lock.json"), "utf8"),
    );
    for (const name of named) expect(packages[`node_modules/${name}`]?.dev, name).toBeUndefined();
    const { dependencies }: { dependencies: object } = JSON.parse(readFileSync(at("here/package.json"), "utf8"));
    expect(named).toEqual(expect.arrayContaining(Object.keys(dependencies)));
  });

  describe("the allocator's client, installed in an empty directory", () => {
    const consumer = at("consumer");
    const run = (file: string, ...args: readonly string[]) => execa(file, args, { cwd: consumer, reject: false });
    const module = { module: "nodenext", target: "es2022" };
    const strict = { strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true };

    beforeAll(async () => {
      mkdirSync(consumer);
      writeFileSync(join(consumer, "package.json"), JSON.stringify({ private: true, type: "module" }));
      // What the README says, without asking anybody.
      const archive = join(release, `pipette-ipam-client-${version}.tgz`);
      await execa("npm", ["install", "--offline", "--no-audit", "--no-fund", archive], { cwd: consumer });
      copyFileSync(join(consumer, "node_modules/pipette/sample.ts"), join(consumer, "sample.ts"));
    });

    test("is small, and brings nothing else", () => {
      expect(readdirSync(join(consumer, "node_modules")).filter((name) => !name.startsWith("."))).toEqual(["pipette"]);
      expect(readdirSync(join(consumer, "node_modules/pipette"), { recursive: true }).length).toBeLessThan(25);
      expect(statSync(join(release, `pipette-ipam-client-${version}.tgz`)).size).toBeLessThan(400_000);
    });

    test("satisfies a strict compiler that looks into its types too, and refuses what is wrong", async () => {
      const typeRoots = [join(root, "node_modules/@types")];
      const compilerOptions = { ...module, ...strict, skipLibCheck: false, types: ["node"], typeRoots, outDir: "out" };
      writeFileSync(join(consumer, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["sample.ts"] }));
      const tsc = join(root, "node_modules/.bin/tsc");
      expect(await run(tsc, "-p", ".")).toMatchObject({ exitCode: 0, stdout: "" });
      const wrong = 'import { IpamClient } from "pipette/ipam-client";\nvoid new IpamClient().get({ network: 1 });\n';
      writeFileSync(join(consumer, "wrong.ts"), wrong);
      writeFileSync(
        join(consumer, "tsconfig.wrong.json"),
        JSON.stringify({ extends: "./tsconfig.json", files: ["wrong.ts"] }),
      );
      expect((await run(tsc, "-p", "tsconfig.wrong.json", "--noEmit")).stdout).toMatch(/error TS2322: Type 'number'/);
    });

    test.each([
      ["node", "out/sample.js"],
      [process.execPath, "sample.ts"],
    ])("speaks with the service under %s", async (runtime, program) => {
      await using home = new ServiceHome();
      await home.start();
      const ended = await execa(runtime, [program], {
        cwd: consumer,
        env: { IPAM_SOCKET: home.socket },
        reject: false,
      });
      expect(ended).toMatchObject({
        exitCode: 0,
        stderr: "",
        stdout: "10.1.0.2/16\n10.1.0.2/16 allocated 0123abcd\ncooling",
      });
    });
  });
});
