import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { execa } from "execa";
import { describe, expect, test } from "vitest";
import { imagesOf } from "../../build/release/images.ts";
import { version } from "../../shared/version.ts";
import { describeWith } from "../support/requires.ts";
import { scratchDir } from "../support/scratch-dir.ts";
import { describeWine } from "./wine/describe-wine.ts";
import { executables } from "./wine/prefix.ts";

interface Manifest {
  readonly layers: readonly { readonly digest: string }[];
}

/** Makes the image's archive; unpacks its layers as skopeo reads them, which compares every digest. */
async function unpacked(directory: string, executable: Uint8Array) {
  const archive = join(directory, "image.tar");
  const made = imagesOf({
    executables: { "windows-x64": executable },
    version: { full: version, tag: version, time: 0, commit: undefined },
    texts: new Map(),
    cache: directory,
    repository: "pipette",
    skip: () => undefined,
  });
  writeFileSync(archive, made.archives[0]?.bytes ?? "");
  const copied = join(directory, "copied");
  const skopeo = (...args: readonly string[]) => execa("skopeo", ["--override-os", "windows", ...args]);
  await skopeo("copy", "--quiet", `oci-archive:${archive}`, `dir:${copied}`);
  const { stdout } = await skopeo("inspect", "--config", `oci-archive:${archive}`);
  const { layers }: Manifest = JSON.parse(readFileSync(join(copied, "manifest.json"), "utf8"));
  const files = layers.map(({ digest }) => join(copied, digest.replace("sha256:", "")));
  return { config: JSON.parse(stdout), layers: files };
}

/** Names in the order of the archive, and the records of each that say what Windows makes of it. */
async function entriesOf(layer: string): Promise<readonly (readonly [string, Readonly<Record<string, string>>])[]> {
  const bytes = Bun.gunzipSync(readFileSync(layer));
  const entries: (readonly [string, Readonly<Record<string, string>>])[] = [];
  let records: Record<string, string> = {};
  for (let at = 0; bytes[at] !== 0; ) {
    const text = (from: number, length: number): string =>
      Buffer.from(bytes.subarray(at + from, at + from + length))
        .toString()
        .replace(/\0.*/s, "");
    const size = Number.parseInt(text(124, 12), 8);
    const content = Buffer.from(bytes.subarray(at + 512, at + 512 + size)).toString("latin1");
    if (text(156, 1) === "x")
      records = Object.fromEntries([...content.matchAll(/\d+ ([^=]+)=(.*)\n/g)].map(([, key, value]) => [key, value]));
    else {
      entries.push([text(0, 100), records]);
      records = {};
    }
    at += 512 * (1 + Math.ceil(size / 512));
  }
  return entries;
}

describeWith("the image for Windows' HostProcess containers", ["linux", "skopeo", "hivex"], () => {
  test("has each directory before what is in it, with the attributes and rights that Windows wants", async () => {
    using scratch = scratchDir();
    const { config, layers } = await unpacked(scratch.path, Buffer.from("MZ"));
    expect(config).toMatchObject({ os: "windows", architecture: "amd64" });
    expect(config).not.toHaveProperty(["os.version"]);
    const [base = [], program = []] = await Promise.all(layers.map(entriesOf));
    const hives = ["DEFAULT", "SAM", "SECURITY", "SOFTWARE", "SYSTEM"];
    expect(base.map(([name]) => name)).toEqual([
      ...["Files/", "Files/Windows/", "Files/Windows/System32/", "Files/Windows/System32/config/"],
      ...hives.map((name) => `Files/Windows/System32/config/${name}`),
    ]);
    expect(program.map(([name]) => name)).toEqual(["Files/", "Hives/", "Files/pipette.exe"]);
    for (const [name, records] of [...base, ...program]) {
      expect(records["MSWINDOWS.fileattr"], name).toBe(name.endsWith("/") ? "16" : "32");
      const descriptor = Buffer.from(records["MSWINDOWS.rawsd"] ?? "", "base64");
      // Revision 1; self-relative, with a list of rights; an owner, a group and that list where they are said to be.
      expect([descriptor[0], descriptor.readUInt16LE(2)], name).toEqual([1, 0x8004]);
      const [owner, group, , rights] = [4, 8, 12, 16].map((at) => descriptor.readUInt32LE(at));
      expect([descriptor[owner!], descriptor[group!], descriptor[rights!]], name).toEqual([1, 1, 2]);
      expect(rights! + descriptor.readUInt16LE(rights! + 2), name).toBe(descriptor.length);
    }
  });

  test("has registry hives that another reader of them takes for whole", async () => {
    using scratch = scratchDir();
    const { layers } = await unpacked(scratch.path, Buffer.from("MZ"));
    await execa("tar", ["-xzf", layers[0] ?? "", "-C", scratch.path]);
    // It opens its output by name, which a socket has none of.
    const read = (hive: string) =>
      execa("bash", ["-o", "pipefail", "-c", 'hivexml "$0" | cat', hive], { reject: false });
    for (const name of ["DEFAULT", "SAM", "SECURITY", "SOFTWARE", "SYSTEM"]) {
      const hive = join(scratch.path, "Files/Windows/System32/config", name);
      expect((await read(hive)).stdout).toMatch(/<node name="ROOT" root="1">/);
      // The checker is one: a hive that is cut short is refused.
      writeFileSync(hive, readFileSync(hive).subarray(0, 4096));
      expect((await read(hive)).exitCode).not.toBe(0);
    }
  });
});

describe("its executable", () => {
  describeWine("where Windows would have it", (wine) => {
    test("runs from the directory that the layers make", async () => {
      using scratch = scratchDir();
      const { layers } = await unpacked(scratch.path, readFileSync(join(executables, "pipette.exe")));
      const mount = wine.prefix.unixPath("C:\\hpc");
      mkdirSync(mount, { recursive: true });
      for (const layer of layers) await execa("tar", ["-xzf", layer, "-C", mount, "--strip-components=1", "Files"]);
      const ended = await wine.prefix.run("C:\\hpc\\pipette.exe", { args: ["version"] });
      expect(ended).toMatchObject({ status: 0, stdout: expect.stringContaining(`pipette ${version}: `) });
    });
  });
});
