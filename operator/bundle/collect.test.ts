import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { bundleIndexSchema } from "../../shared/documents/mod.ts";
import { validate } from "../../shared/schema/mod.ts";
import { scratchDir } from "../../test/support/scratch-dir.ts";
import { archiveOf, indexOf, readableIndex } from "./archive.ts";
import { BundleFile } from "./bundle-file.ts";
import { collect, type Item } from "./collect.ts";
import { limits } from "./limits.ts";
import { Redactor } from "./redact.ts";

const item = (path: string, work: Item["work"], more: Partial<Item> = {}): Item => ({ path, work, ...more });
const textOf = (bytes: Uint8Array | undefined): string => new TextDecoder().decode(bytes);

describe("collecting", () => {
  test("one that fails, throws at once, hangs or is too large is named, and the rest is there", async () => {
    const items = [
      item("a.txt", async () => "all well"),
      item("b.txt", async () => Promise.reject(new Error("no such program"))),
      item("c.txt", () => new Promise(() => undefined), { withinMs: 30 }),
      item("d.json", async () => ({ kind: "node", token: "abcdef" })),
      item("e.json", async () => ({ large: "x".repeat(limits.itemBytes) })),
    ];
    const told: number[] = [];
    const { files, failures } = await collect(items, new Redactor(), (done) => told.push(done));
    expect(files.map(({ path }) => path)).toEqual(["a.txt", "d.json"]);
    expect(JSON.parse(textOf(files[1]?.bytes))).toEqual({ kind: "node", token: "[left out]" });
    expect(failures).toEqual([
      { item: "b.txt", reason: "no such program" },
      { item: "c.txt", reason: "it was not there after 30 ms" },
      { item: "e.json", reason: expect.stringMatching(/^it has \d+ bytes, wanted at most/) },
    ]);
    expect(told).toEqual([1, 2, 3, 4, 5]);
  });

  test("a document that an agent may just send has its place", async () => {
    const rows = Array.from({ length: 140_000 }, () => ({ a: "x".repeat(20) }));
    const { files, failures } = await collect([item("a.json", async () => ({ rows }))], new Redactor());
    expect([files.length, failures]).toEqual([1, []]);
  });

  test("of a long log the end is kept, of a long dump the beginning, and it says so", async () => {
    const long = `first ${"x".repeat(limits.itemBytes)} last`;
    const { files } = await collect(
      [item("dump.txt", async () => long), item("log.txt", async () => long, { keepsEnd: true })],
      new Redactor(),
    );
    const [dump = "", log = ""] = files.map(({ bytes }) => textOf(bytes));
    expect([dump.startsWith("first"), dump.endsWith("left out here]\n")]).toEqual([true, true]);
    expect([log.endsWith(" last"), log.startsWith("[11 characters")]).toEqual([true, true]);
  });

  test("a secret that the cut goes through is left out on both sides of it", async () => {
    // From either end the bound lies in the middle of it.
    const filler = "x".repeat(limits.itemBytes - 4_000);
    const long = `${filler}\ntoken: "${"cut-".repeat(2_000)}"\n${filler}`;
    const { files } = await collect(
      [item("dump.txt", async () => long), item("log.txt", async () => long, { keepsEnd: true })],
      new Redactor(),
    );
    for (const text of files.map(({ bytes }) => textOf(bytes))) expect(text).not.toContain("cut-cut");
  });

  test("what is not there and need not be is no failure", async () => {
    expect(await collect([item("a", async () => undefined)], new Redactor())).toEqual({ files: [], failures: [] });
  });

  test("a node that sends too much takes no room from the others", async () => {
    const large = { text: "x".repeat(limits.itemBytes - 100) };
    const count = limits.bundleBytes / limits.itemBytes;
    const items = Array.from({ length: count * 3 - 2 }, (_, i) =>
      item(`a/${i}`, async () => large, { node: i < count * 2 ? "greedy" : `n${i}` }),
    );
    const { failures } = await collect(items, new Redactor());
    const ofOthers = failures.filter(({ reason }) => !reason.includes("of one node there is room for"));
    expect([failures.length > count, ofOthers]).toEqual([true, []]);
  }, 60_000);

  test("a reason is cleaned too", async () => {
    const { failures } = await collect(
      [item("a", async () => Promise.reject(new Error("Bearer abcdefgh12345")))],
      new Redactor(),
    );
    expect(failures[0]?.reason).toBe("Bearer [left out]");
  });
});

describe("the file of a bundle", () => {
  test("is not there when what writes it is interrupted, nor half of it beside it", async () => {
    using scratch = scratchDir();
    const file = join(scratch.path, "b.tar.gz");
    const source = new URL("./bundle-file.ts", import.meta.url).pathname;
    const script = `const { BundleFile } = await import(${JSON.stringify(source)});
      await using file = await BundleFile.open(${JSON.stringify(file)}); console.log("open"); await Bun.sleep(60_000);`;
    for (const signal of ["SIGINT", "SIGTERM"] as const) {
      const child = Bun.spawn([process.execPath, "-e", script], { stdout: "pipe", stderr: "inherit" });
      for await (const _ of child.stdout) break;
      expect(readdirSync(scratch.path)).toEqual([`b.tar.gz.${child.pid}.part`]);
      child.kill(signal);
      await child.exited;
      expect([child.signalCode, readdirSync(scratch.path)]).toEqual([signal, []]);
    }
  }, 30_000);

  test("takes the place of nothing that came meanwhile, and is refused at once where there is no directory", async () => {
    using scratch = scratchDir();
    const file = join(scratch.path, "b.tar.gz");
    await using target = await BundleFile.open(file);
    writeFileSync(file, "mine");
    await expect(target.write(new Uint8Array(3))).rejects.toThrow("it is there already");
    expect(readFileSync(file, "utf8")).toBe("mine");
    await expect(BundleFile.open(join(scratch.path, "none", "b"))).rejects.toThrow(
      /^Cannot write the bundle ".*: there is no directory "/,
    );
  });
});

describe("the archive", () => {
  let directory = "";
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), "pt-bundle-"));
  });
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  const collected = {
    files: [{ path: "nodes/a/pods.json", bytes: new TextEncoder().encode("{}\n") }],
    failures: [{ item: "nodes/a/flows.json", reason: "a | b\nc" }],
  };
  const about = { madeAtMs: 1_700_000_000_000, nodes: ["a"], leftOut: 3 };

  test("has checksums that its own tools confirm, and an index in the shape of the documents", async () => {
    const file = join(directory, "bundle.tar.gz");
    {
      await using target = await BundleFile.open(file);
      await target.write(archiveOf(collected, about));
    }
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const run = Bun.spawnSync(["sh", "-c", `tar -xzf bundle.tar.gz && sha256sum -c SHA256SUMS`], { cwd: directory });
    expect([run.exitCode, textOf(run.stdout)]).toEqual([0, "nodes/a/pods.json: OK\n"]);
    const index: unknown = JSON.parse(readFileSync(join(directory, "index.json"), "utf8"));
    expect(validate(bundleIndexSchema, index, { unknownKeys: "refused", maxIssues: 5 }).t).toBe("ok");
    await expect(BundleFile.open(file)).rejects.toThrow("it is there already");
  });

  test("is told to people in a table that nobody's words break", () => {
    const text = readableIndex(indexOf(collected, about), about.leftOut);
    expect(text).toContain("| nodes/a/pods.json | 3 |");
    expect(text).toContain("| nodes/a/flows.json | a \\| b c |");
  });
});
