import { createHash } from "node:crypto";
import {
  copyFileSync,
  existsSync,
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
import { carriedMark } from "../../agent/commands/install/executable-marks.ts";
import { stampOf } from "../../build/program.ts";
import { chartPackage } from "../../build/release/chart.ts";
import { releaseExecutables } from "../../build/release/executables.ts";
import { releaseFiles } from "../../build/release/release.ts";
import { type Version, versionOf } from "../../build/release/version.ts";
import { ServiceHome } from "../ipam/service-process.ts";
import { describeWith } from "../support/requires.ts";
import { deadLinks } from "./dead-links.ts";
import { commitTime, SourceCopy } from "./source-copy.ts";

const root = join(import.meta.dirname, "../..");
const hashOf = (path: string): string => createHash("sha256").update(readFileSync(path)).digest("hex");

/** Of two executables, on a machine that does other things. */
const compilingMs = 180_000;

/** As they are named in a release; packing hundreds of megabytes again and again would show nothing more. */
const standIns = {
  "linux-x64": Buffer.from("#!/bin/sh\necho runs\n"),
  "windows-x64": Buffer.from("MZ, or so it seems"),
};

describeWith("a release, as npm run package makes it", ["linux", "busybox", "nft", "openvswitch", "musl"], () => {
  // On the disk that npm's packages lie on, which are linked and not copied.
  const parent = mkdtempSync(join(root, "dist/.test-release-"));
  const at = (...names: readonly string[]): string => join(parent, ...names);
  const release = at("release");
  let copy: SourceCopy;
  let version: Version;

  const madeFrom = async (sources: string): Promise<ReadonlyMap<string, Uint8Array>> => {
    const skip = (sentence: string): void => expect.fail(sentence);
    const inputs = { version, executables: standIns, cache: at("cache"), scratch: at("scratch"), skip };
    const files = await releaseFiles({ ...inputs, root: sources });
    return new Map(files.map(({ name, bytes }) => [name, bytes]));
  };

  beforeAll(async () => {
    for (const name of ["release", "scratch"]) mkdirSync(at(name));
    copy = await SourceCopy.make(at("a/place/deeper"));
    version = versionOf(copy.directory);
    for (const [name, bytes] of await madeFrom(root)) writeFileSync(join(release, name), bytes);
  });
  afterAll(() => rmSync(parent, { recursive: true, force: true }));

  test("is the same byte for byte from another directory at another time", async () => {
    const other = await madeFrom(copy.directory);
    expect([...other.keys()].sort()).toEqual(readdirSync(release).sort());
    for (const [name, bytes] of other) expect(Buffer.compare(bytes, readFileSync(join(release, name))), name).toBe(0);
  });

  test(
    "has executables that are the same from another directory at another time",
    async () => {
      await execa(process.execPath, ["run", join(root, "build/compile.ts"), "all"]);
      await copy.build("compile.ts", "all");
      for (const path of ["dist/linux-x64/pipette", "dist/windows-x64/pipette.exe"])
        expect(hashOf(join(copy.directory, path)), path).toBe(hashOf(join(root, path)));
    },
    compilingMs,
  );

  test("is named by its tag, by the way from it, or by its commit, as its executables are", async () => {
    const declared = JSON.parse(readFileSync(join(root, "package.json"), "utf8")).version;
    const commit = (await copy.git("rev-parse", "HEAD")).slice(0, 7);
    expect(versionOf(copy.directory)).toMatchObject({ full: `${declared}+g${commit}`, time: commitTime });
    await copy.git("tag", `v${declared}`);
    expect(versionOf(copy.directory).full).toBe(declared);
    writeFileSync(join(copy.directory, "LICENSE"), "none");
    expect(versionOf(copy.directory).full).toBe(`${declared}+dirty`);
    await copy.git("commit", "--quiet", "--all", "--message", "More");
    const later = versionOf(copy.directory);
    expect(later.full).toMatch(/^\d+\.\d+\.\d+\+1\.g[0-9a-f]{7}$/);
    expect(later.tag).not.toContain("+");
    await copy.git("tag", "v99.0.0");
    expect(() => versionOf(copy.directory)).toThrow(/the tag is "v99\.0\.0" and package\.json says/);
    await releaseExecutables(later.full, ["linux-x64"], at("scratch"), () => undefined);
    const { stdout } = await execa(at("scratch/linux-x64/pipette"), ["version"]);
    expect(stdout).toContain(`pipette ${later.full}: `);
    const [whole, small] = ["pipette", "forward"].map((name) => readFileSync(at("scratch/linux-x64", name)));
    const buildId = stampOf({ platform: "linux-x64", version: later.full }).slice(0, 32);
    expect(whole?.includes(buildId)).toBe(true);
    // Compilers put it into instructions, eight bytes at a time.
    expect(small?.includes(Buffer.from(buildId.slice(0, 16), "hex"))).toBe(true);
    expect(whole?.includes(carriedMark(small ?? Buffer.alloc(0)))).toBe(true);
  });

  test("has everything, with checksums", async () => {
    const { full, tag } = version;
    const chart = existsSync(join(root, "conf/chart/pipette")) ? [`pipette-chart-${tag}.tgz`] : [];
    const machines = ["linux-amd64.image.tar", "linux-x64.tar.gz", "windows-amd64.image.tar", "windows-x64.zip"];
    const vswitch = `pipette-openvswitch-${tag}-linux-amd64.image.tar`;
    const named = [...machines.map((name) => `pipette-${tag}-${name}`), vswitch, `pipette_${full}_amd64.deb`];
    const others = ["SHA256SUMS", "sbom.cdx.json", `pipette-ipam-client-${tag}.tgz`];
    expect(readdirSync(release).sort()).toEqual([...named, ...others, ...chart].sort());
    const checked = await execa("sha256sum", ["--check", "--strict", "SHA256SUMS"], { cwd: release });
    expect(checked.stdout.split("\n")).toHaveLength(readdirSync(release).length - 1);
  });

  test("has archives with the executable, documents, samples and licences", async () => {
    await execa("tar", ["-xzf", join(release, `pipette-${version.tag}-linux-x64.tar.gz`), "-C", parent]);
    await execa("busybox", ["unzip", "-q", join(release, `pipette-${version.tag}-windows-x64.zip`), "-d", parent]);
    const of = (platform: string): string => at(`pipette-${version.tag}-${platform}`);
    const texts = [
      "CONTRIBUTING.md",
      "LICENSE",
      "README.md",
      "SECURITY.md",
      "THIRD-PARTY.txt",
      "conf",
      "docs",
      "shared",
    ];
    expect(readdirSync(of("linux-x64")).sort()).toEqual([...texts, "pipette", "pipette-ipam"].sort());
    expect(readdirSync(of("windows-x64")).sort()).toEqual([...texts, "pipette.exe"].sort());
    for (const name of ["pipette", "pipette-ipam"])
      expect((await execa(join(of("linux-x64"), name))).stdout).toBe("runs");
    expect(readFileSync(join(of("windows-x64"), "pipette.exe"))).toEqual(standIns["windows-x64"]);
    expect(statSync(join(of("linux-x64"), "pipette")).mtimeMs).toBe(commitTime * 1000);
    for (const platform of ["linux-x64", "windows-x64"])
      expect(readFileSync(join(of(platform), "conf/agent.yaml"))).toEqual(readFileSync(join(root, "conf/agent.yaml")));
  });

  test("has documents whose links lead somewhere, in archive and package", async () => {
    mkdirSync(at("archive"));
    await execa("tar", ["-xzf", join(release, `pipette-${version.tag}-linux-x64.tar.gz`), "-C", at("archive")]);
    await execa("dpkg-deb", ["--extract", join(release, `pipette_${version.full}_amd64.deb`), at("deb")]);
    expect([deadLinks(at("archive")), deadLinks(at("deb/usr/share/doc/pipette"))]).toEqual([[], []]);
    const unit = readFileSync(at("deb/usr/lib/systemd/system/pipette-agent.service"), "utf8");
    const [, page = ""] = /^Documentation=file:(.*)$/m.exec(unit) ?? [];
    expect(existsSync(at(`deb${page}`)), page).toBe(true);
  });

  test("has the chart, with the release's version and the tag of its images", async () => {
    const chart = at("charted/conf/chart/pipette");
    mkdirSync(join(chart, "templates"), { recursive: true });
    const lines = ["apiVersion: v2", "name: pipette", "version: 0.0.1", "appVersion: 0.0.1", ""];
    writeFileSync(join(chart, "Chart.yaml"), lines.join("\n"));
    writeFileSync(join(chart, "templates/all.yaml"), "{{ .Values }}");
    const packed = { full: "0.1.0+1.gabcdef0", tag: "0.1.0-1.gabcdef0", time: commitTime, commit: undefined };
    writeFileSync(at("chart.tgz"), chartPackage(at("charted"), packed) ?? "");
    const read = async (path: string): Promise<string> =>
      (await execa("tar", ["-xzOf", at("chart.tgz"), `pipette/${path}`])).stdout;
    expect(await read("templates/all.yaml")).toBe("{{ .Values }}");
    const released = ['version: "0.1.0+1.gabcdef0"', 'appVersion: "0.1.0-1.gabcdef0"'];
    expect((await read("Chart.yaml")).split("\n")).toEqual([...lines.slice(0, 2), ...released]);
    writeFileSync(join(chart, "Chart.yaml"), "name: pipette\n");
    expect(() => chartPackage(at("charted"), packed)).toThrow(/has no "version"/);
  });

  test("tells in CycloneDX what is in it", () => {
    const text = readFileSync(join(release, "sbom.cdx.json"), "utf8");
    const library = createRequire(import.meta.url).resolve("@cyclonedx/cyclonedx-library/package.json");
    const schema = (file: string): object => JSON.parse(readFileSync(join(library, "../res/schema", file), "utf8"));
    const ajv = new Ajv({ strict: false, validateFormats: false });
    for (const name of ["spdx", "jsf-0.82", "cryptography-defs"])
      ajv.addSchema(schema(`${name}.SNAPSHOT.schema.json`), `http://cyclonedx.org/schema/${name}.SNAPSHOT.schema.json`);
    const valid = ajv.compile(schema("bom-1.6.SNAPSHOT.schema.json"));
    const sbom = JSON.parse(text);
    expect(valid(sbom), JSON.stringify(valid.errors)).toBe(true);
    expect(valid({ ...sbom, components: [{ type: "library" }] })).toBe(false);
    const names = [...text.matchAll(/"name": "([^"]+)"/g)].map(([, name]) => name);
    expect(names).toEqual(
      expect.arrayContaining(["@grpc/grpc-js", "yaml", "Bun", "nftables", "libc6", "openvswitch-switch"]),
    );
  });

  test("names what its npm packages are, and no more of them than are in the program", () => {
    const { components }: { components: { purl?: string }[] } = JSON.parse(
      readFileSync(join(release, "sbom.cdx.json"), "utf8"),
    );
    const named = components.flatMap(
      ({ purl = "" }) => /^pkg:npm\/(?!bun@)(.*)@/.exec(purl)?.[1]?.replace("%40", "@") ?? [],
    );
    const { packages }: { packages: Record<string, { dev?: boolean }> } = JSON.parse(
      readFileSync(join(root, "package-lock.json"), "utf8"),
    );
    for (const name of named) expect(packages[`node_modules/${name}`]?.dev, name).toBeUndefined();
    const { dependencies }: { dependencies: object } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
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
      const archive = join(release, `pipette-ipam-client-${version.tag}.tgz`);
      await execa("npm", ["install", "--offline", "--no-audit", "--no-fund", archive], { cwd: consumer });
      copyFileSync(join(consumer, "node_modules/pipette/sample.ts"), join(consumer, "sample.ts"));
    });

    test("is small, and brings nothing else", () => {
      expect(readdirSync(join(consumer, "node_modules")).filter((name) => !name.startsWith("."))).toEqual(["pipette"]);
      expect(readdirSync(join(consumer, "node_modules/pipette"), { recursive: true }).length).toBeLessThan(25);
      expect(statSync(join(release, `pipette-ipam-client-${version.tag}.tgz`)).size).toBeLessThan(400_000);
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
