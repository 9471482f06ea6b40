import { execFileSync, spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import { setTimeout } from "node:timers/promises";
import { expect, test } from "vitest";
import { scratchDir } from "../../test/support/scratch-dir.ts";

const script = `import { readStdin } from "${import.meta.dirname}/stdin.linux.ts";
const bytes = await readStdin(1000_000);
console.log(bytes.length, Bun.hash(bytes) === Bun.hash(new Uint8Array(bytes.length).fill(120)));`;

/** What a process makes of its standard input: "<length> <whether all of it is x>". */
async function answerTo(...parts: readonly string[]): Promise<string> {
  const child = spawn(process.execPath, ["-e", script], { stdio: ["pipe", "pipe", "inherit"] });
  for (const part of parts) {
    child.stdin.write(part);
    await setTimeout(20);
  }
  child.stdin.end();
  return (await text(child.stdout)).trim();
}

const xs = (length: number): string => "x".repeat(length);

test("standard input is read to its end, in however many pieces it comes", async () => {
  expect(await answerTo()).toBe("0 true");
  expect(await answerTo(xs(10))).toBe("10 true");
  expect(await answerTo(xs(10), xs(1), xs(70_000), xs(3))).toBe("70014 true");
});

test("reading ends soon after the bound, though the writer goes on", () => {
  using scratch = scratchDir();
  const answer = `${scratch.path}/answer`;
  execFileSync("sh", ["-c", 'yes xxxx | tr -d "\\n" | "$0" -e "$1" > "$2"', process.execPath, script, answer]);
  const [length, same] = execFileSync("cat", [answer], { encoding: "utf8" }).trim().split(" ");
  expect(Number(length)).toBeGreaterThan(1000_000);
  expect(Number(length)).toBeLessThan(1100_000);
  expect(same).toBe("true");
});

test("a pipe that does not wait is waited for", async () => {
  // dd leaves the flag on what it was given, which the next program has too.
  const notWaiting = 'dd iflag=nonblock count=0 status=none; exec "$0" -e "$1"';
  const child = spawn("sh", ["-c", notWaiting, process.execPath, script], { stdio: ["pipe", "pipe", "inherit"] });
  await setTimeout(300);
  child.stdin.write(xs(50));
  await setTimeout(50);
  child.stdin.end(xs(7));
  expect((await text(child.stdout)).trim()).toBe("57 true");
});

test("where there is nothing to read it is empty", () => {
  for (const stdin of ["<&-", "< /dev/null"]) {
    const answer = execFileSync("sh", ["-c", `"$0" -e "$1" ${stdin}`, process.execPath, script], { encoding: "utf8" });
    expect(answer.trim(), stdin).toBe("0 true");
  }
});
