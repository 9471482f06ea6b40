import { execFileSync } from "node:child_process";
import { closeSync, constants, mkdtempSync, openSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { boundedWriter } from "./bounded-writer.ts";

/** A stream that takes a text when the test says so. */
class SlowStream {
  readonly texts: string[] = [];
  readonly #waiting: (() => void)[] = [];

  write(text: string, written: () => void): void {
    this.texts.push(text);
    this.#waiting.push(written);
  }

  read(count: number): void {
    for (const written of this.#waiting.splice(0, count)) written();
  }
}

describe("a writer to a slow stream", () => {
  test("leaves out what comes while too much waits, and says how much that was when half of it has been read", () => {
    const stream = new SlowStream();
    const write = boundedWriter(stream, 40);
    for (let i = 0; i < 7; i++) write(`line ${i} ..\n`);
    expect(stream.texts.map((text) => text.slice(0, 6))).toEqual(["line 0", "line 1", "line 2", "line 3"]);
    stream.read(1);
    expect(stream.texts).toHaveLength(4);
    stream.read(1);
    expect(JSON.parse(stream.texts[4] ?? "")).toMatchObject({
      level: "warn",
      message: expect.stringContaining("left out"),
      lines: 3,
    });
    stream.read(3);
    write("after\n");
    expect(stream.texts.slice(5)).toEqual(["after\n"]);
  });

  test("writes everything, and nothing of its own, where it is read", () => {
    const stream = new SlowStream();
    const write = boundedWriter(stream, 40);
    for (let i = 0; i < 100; i++) {
      write(`line ${i}\n`);
      stream.read(1);
    }
    expect(stream.texts).toEqual(Array.from({ length: 100 }, (_, i) => `line ${i}\n`));
  });
});

const module = fileURLToPath(new URL("bounded-writer.ts", import.meta.url));

/** Writes 48 MB, tells on stdout by how many its memory has grown, and waits for the end of stdin. */
const script = `
  import { boundedWriter } from ${JSON.stringify(module)};
  const write = boundedWriter(process.stderr);
  const before = process.memoryUsage().rss;
  for (let i = 0; i < 300; i++) {
    for (let k = 0; k < 500; k++) write("line " + "x".repeat(315) + "\\n");
    await Bun.sleep(0);
  }
  console.log(Math.round((process.memoryUsage().rss - before) / 1e6));
  await Bun.stdin.text();
`;

test("a process whose stderr nobody reads goes on with little memory, and tells of it once somebody does", async () => {
  const directory = mkdtempSync(join(tmpdir(), "bounded-writer-"));
  const fifo = join(directory, "stderr");
  execFileSync("mkfifo", [fifo]);
  // Open for reading, and not read.
  const unread = openSync(fifo, constants.O_RDONLY | constants.O_NONBLOCK);
  const stderr = openSync(fifo, constants.O_WRONLY);
  try {
    await using child = Bun.spawn([process.execPath, "-e", script], { stdin: "pipe", stdout: "pipe", stderr });
    closeSync(stderr);
    const { value } = await child.stdout.getReader().read();
    // Without a bound it is some 200.
    expect(Number(new TextDecoder().decode(value))).toBeLessThan(80);
    await using reader = Bun.spawn(["cat", fifo], { stdout: "pipe" });
    const text = new Response(reader.stdout).text();
    child.stdin.end();
    expect(await child.exited).toBe(0);
    const lines = (await text).trimEnd().split("\n");
    const told = lines.filter((line) => line.includes("left out")).map((line) => JSON.parse(line).lines as number);
    expect(told).toHaveLength(1);
    expect((told[0] ?? 0) + lines.length - 1).toBe(150_000);
    // A megabyte, and what the pipe holds.
    expect(lines.length).toBeLessThan(5_000);
  } finally {
    closeSync(unread);
    rmSync(directory, { recursive: true });
  }
}, 30_000);
