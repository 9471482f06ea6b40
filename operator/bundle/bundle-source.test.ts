import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { execa } from "execa";
import { describe, expect, test } from "vitest";
import { runAt } from "../../test/fakes/terminal-run.ts";
import { scratchDir } from "../../test/support/scratch-dir.ts";
import { getCommand } from "../commands/get-command.ts";
import { BundleSource } from "./bundle-source.ts";

const pod = (podName: string, containerId: string) => ({
  ...{ podNamespace: "shop", podName, network: "pods", containerId, ifname: "eth0", hostIfname: `v-${containerId}` },
  ...{ ownLease: true, addresses: ["10.0.0.2/24"] },
});
const podsOf = (node: string) => ({
  ...{ kind: "pods", version: 1, node, omitted: 3 },
  pods: [pod("web", "s1"), pod("db", "s2")],
});

/** A bundle of two nodes as a directory. */
function write(directory: string, change: (index: Record<string, unknown>) => void = () => undefined): string {
  const at = join(directory, "bundle");
  const files: { path: string; bytes: number; sha256: string }[] = [];
  for (const node of ["a", "b"]) {
    const path = `nodes/${node}/pods.json`;
    mkdirSync(join(at, "nodes", node), { recursive: true });
    const text = JSON.stringify(podsOf(node));
    writeFileSync(join(at, path), text);
    files.push({ path, bytes: text.length, sha256: new Bun.CryptoHasher("sha256").update(text).digest("hex") });
  }
  writeFileSync(join(at, "nodes/a/agent.log"), "not a document");
  const failures = [{ item: "nodes/b/leases.json", reason: "Cannot show the leases: nobody listens" }];
  const index = {
    kind: "bundle",
    version: 1,
    madeAtMs: 1_000,
    pipetteVersion: "1.2.3",
    nodes: ["a", "b"],
    files,
    failures,
  };
  change(index);
  writeFileSync(join(at, "index.json"), JSON.stringify(index));
  return at;
}

const get = (bundle: string, ...args: string[]) => runAt("pipette get", getCommand, [...args, "--bundle", bundle]);

describe("from a bundle", () => {
  test.each(["directory", "archive", "archive without its folder", "archive that is not compressed"])(
    "a %s has the documents of its nodes",
    async (form) => {
      using scratch = scratchDir();
      const at = write(scratch.path);
      const file = join(scratch.path, "b.tar.gz");
      if (form === "archive") await execa("tar", ["-C", scratch.path, "-czf", file, "bundle"]);
      if (form === "archive without its folder") await execa("tar", ["-C", at, "-czf", file, "."]);
      if (form === "archive that is not compressed") await execa("tar", ["-C", scratch.path, "-cf", file, "bundle"]);
      const bundle = form === "directory" ? at : file;
      const one = await get(bundle, "pods", "--node", "a", "-o", "json");
      expect([one.status, one.stderr, JSON.parse(one.stdout)]).toEqual([0, "", podsOf("a")]);
      const { stdout } = await get(bundle, "pods", "shop/web");
      const lines = stdout
        .trimEnd()
        .split("\n")
        .map((line) => line.split(/ +/).slice(0, 2).join(" "));
      expect(lines).toEqual(["NODE POD", "a shop/web", "b shop/web", "6 more"]);
      expect((await get(bundle, "nodes")).stdout).toMatch(/^NAME .*\na .*\nb /);
    },
  );

  test("a watch shows it once, since nothing changes any more", async () => {
    using scratch = scratchDir();
    const { status, stdout } = await get(write(scratch.path), "pods", "--watch");
    expect([status, stdout.match(/NODE/g)?.length]).toEqual([0, 1]);
  });

  test("what is not in it is said with the reason", async () => {
    using scratch = scratchDir();
    const at = write(scratch.path);
    const { status, stderr } = await get(at, "leases");
    expect(status).toBe(2);
    const [a, b] = stderr.trimEnd().split("\n");
    expect(a).toContain('has no "nodes/a/leases.json"');
    expect(b).toContain('has no "nodes/b/leases.json": Cannot show the leases: nobody listens');
    expect((await get(at, "pods", "--node", "c")).stderr).toContain("has nothing of it, wanted one of a, b");
  });

  test("a file that was changed since is not taken", async () => {
    using scratch = scratchDir();
    const at = write(scratch.path);
    writeFileSync(join(at, "nodes/a/pods.json"), JSON.stringify({ ...podsOf("a"), pods: [] }));
    expect((await get(at, "pods", "--node", "a")).stderr).toContain("which is another than its index says");
    const other = write(join(scratch.path, "2"), (index) => (index["files"] = []));
    expect((await get(other, "pods", "--node", "a")).stderr).toContain("which its index does not list");
  });

  test("of many nodes reads back", async () => {
    using scratch = scratchDir();
    const at = write(scratch.path, (index) => {
      const row = { bytes: 1, sha256: "0".repeat(64) };
      const files = Array.from({ length: 30_000 }, (_, i) => ({ path: `nodes/node-${i}/pods.json`, ...row }));
      index["files"] = [...(index["files"] as object[]), ...files];
      index["failures"] = Array.from({ length: 30_000 }, (_, i) => ({ item: `nodes/n${i}`, reason: "x".repeat(60) }));
    });
    const file = join(scratch.path, "b.tar.gz");
    await execa("tar", ["-C", scratch.path, "-czf", file, "bundle"]);
    for (const bundle of [at, file]) expect(await (await BundleSource.open(bundle)).nodes()).toEqual(["a", "b"]);
  });

  test.each(["a link", "a device", "a pipe"])("%s in the place of its index is refused", async (what) => {
    using scratch = scratchDir();
    const at = write(scratch.path);
    const index = join(at, "index.json");
    renameSync(index, join(scratch.path, "index.json"));
    if (what === "a link") symlinkSync(join(scratch.path, "index.json"), index);
    if (what === "a device") symlinkSync("/dev/zero", index);
    if (what === "a pipe") await execa("mkfifo", [index]);
    await expect(BundleSource.open(at)).rejects.toThrow('index.json": it is no regular file');
  });

  test("a link in the place of a node's folder is not followed", async () => {
    using scratch = scratchDir();
    const at = write(scratch.path);
    renameSync(join(at, "nodes/a"), join(scratch.path, "a"));
    symlinkSync(join(scratch.path, "a"), join(at, "nodes/a"));
    expect((await get(at, "pods", "--node", "a")).stderr).toContain("it is not in folders of the bundle");
    rmSync(join(at, "nodes/a"));
    expect((await get(at, "pods", "--node", "a")).stderr).toContain('has no "nodes/a/pods.json"');
  });

  test("a node whose name would lead out of it is refused", async () => {
    using scratch = scratchDir();
    const at = write(scratch.path, (index) => (index["nodes"] = ["../../etc"]));
    await expect(BundleSource.open(at)).rejects.toThrow('"nodes[0]" is "../../etc", wanted the name of a node');
  });
});

describe("what is no bundle is refused in a sentence", () => {
  const zeros = gzipSync(new Uint8Array(1024 * 1024));
  const header = (name: string, size: string): Uint8Array => {
    const bytes = new Uint8Array(512);
    const put = (text: string, at: number): void => bytes.set(new TextEncoder().encode(text), at);
    put(name, 0);
    put(size, 124);
    put("0", 156);
    put("        ", 148);
    const sum = bytes.reduce((total, byte) => total + byte, 0);
    put(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
    return bytes;
  };
  test.each<[string, Uint8Array, string]>([
    ["text", new TextEncoder().encode("hello".repeat(200)), "it is no tar archive, or is damaged"],
    ["nothing", new Uint8Array(), "it is no tar archive with documents"],
    ["zeros", zeros, "it is no tar archive with documents"],
    ["half of a gzip", zeros.subarray(0, 200), "Cannot read the bundle"],
    ["a file that is cut off", header("index.json", "00000001000"), "it is cut off"],
    ["a length that is none", header("index.json", "99999999999"), "a length that cannot be read"],
    [
      "an archive without an index",
      Buffer.concat([header("a.json", "00000000000"), new Uint8Array(1024)]),
      "index.json",
    ],
  ])("%s", async (_, bytes, wanted) => {
    using scratch = scratchDir();
    const file = join(scratch.path, "b");
    writeFileSync(file, bytes);
    await expect(BundleSource.open(file)).rejects.toThrow(wanted);
  });

  test("a file that is not there", async () => {
    const { status, stdout, stderr } = await get("/none/at/all", "pods");
    expect([status, stdout]).toEqual([2, ""]);
    expect(stderr).toContain('Cannot read the bundle "/none/at/all"');
  });

  test("two ways at once", async () => {
    const { status, stderr } = await get("/b", "pods", "--socket", "/s");
    expect([status, stderr]).toEqual([2, expect.stringContaining("several are named")]);
  });
});
