/** Prometheus' own tool; what it says of `args`, or of a text on its standard input. */
export async function promtool(args: readonly string[], input = ""): Promise<{ status: number; said: string }> {
  const child = Bun.spawn(["promtool", ...args], {
    stdin: new TextEncoder().encode(input),
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, err, status] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { status, said: `${out}${err}` };
}

/** The sum of all series of a metric whose labels have this text. */
export function sumOf(text: string, name: string, labels = ""): number {
  return text
    .split("\n")
    .filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `))
    .filter((line) => line.includes(labels))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" ") + 1)), 0);
}
