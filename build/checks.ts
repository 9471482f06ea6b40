/** One static check of the repository: a command that prints nothing on success. */
export interface Check {
  readonly name: string;
  readonly command: readonly string[];
}

const bin = (tool: string): string => `${import.meta.dir}/../node_modules/.bin/${tool}`;

export const checks: readonly Check[] = [
  { name: "types (tsc)", command: [bin("tsc"), "-p", "."] },
  { name: "types of the page (tsc)", command: [bin("tsc"), "-p", "ui"] },
  { name: "format and lint (biome)", command: [bin("biome"), "check", "--error-on-warnings", "."] },
  { name: "unused files, exports and dependencies (knip)", command: [process.execPath, bin("knip"), "--no-progress"] },
  {
    name: "what only tests use (knip without them)",
    command: [process.execPath, bin("knip"), "--no-progress", "--config", "build/knip-product.json"],
  },
  { name: "the page's size", command: [process.execPath, "run", "build/page-size.ts"] },
];

/** Runs one check from the repository's root; `output` is what it said, both streams. */
export async function runCheck(check: Check): Promise<{ ok: boolean; output: string; seconds: number }> {
  const started = performance.now();
  const child = Bun.spawn([...check.command], {
    cwd: `${import.meta.dir}/..`,
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, err, status] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { ok: status === 0, output: `${out}${err}`.trim(), seconds: (performance.now() - started) / 1000 };
}
