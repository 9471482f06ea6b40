import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";

export interface Source {
  /** Path from the repository's root. */
  readonly path: string;
  readonly text: string;
  readonly lines: readonly string[];
}

/** Every file that git knows or would take, so that a new file is judged before it is committed. */
export function sources(...patterns: readonly string[]): Source[] {
  const listed = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard", "--", ...patterns]);
  return [...new Set(listed.toString().trim().split("\n"))]
    .filter((path) => path !== "" && existsSync(path))
    .map((path) => {
      const text = readFileSync(path, "utf8");
      return { path, text, lines: text.split("\n") };
    });
}

/** The first folder of a path; the top-level files are the room "". */
export const roomOf = (path: string): string => (path.includes("/") ? (path.split("/")[0] ?? "") : "");

export const isTest = (path: string): boolean => path.endsWith(".test.ts") || path.startsWith("test/");

/** Paths that a TypeScript file imports from within the repository, from the root. */
export function importsOf(source: Source): string[] {
  return targetsOf(source, /(?:from|import)\s*\(?\s*"(\.[^"]+)"/g);
}

/** The same, but only what is loaded together with the file: neither `import type` nor `await import()`. */
export function staticImportsOf(source: Source): string[] {
  const clause = /^(?:import|export) (?!type\b)(?:[^;"]*? from )?"(\.[^"]+)"/gm;
  return targetsOf(source, clause);
}

function targetsOf(source: Source, pattern: RegExp): string[] {
  const found: string[] = [];
  for (const match of source.text.matchAll(pattern)) {
    const parts = source.path.split("/").slice(0, -1);
    for (const step of (match[1] ?? "").split("/")) {
      if (step === "..") parts.pop();
      else if (step !== ".") parts.push(step);
    }
    found.push(parts.join("/"));
  }
  return found;
}

/** Functions with their lengths in lines. The formatter guarantees that one ends at a `}` of its own indentation. */
export function functionsOf(source: Source): { name: string; line: number; length: number }[] {
  const starts =
    /^(\s*)(?:export )?(?:(?:static |override )*(?:async )?(?:function\*? )?#?(\w+)\(.*|(?:const )(\w+) = .*=> )\{$/;
  const found: { name: string; line: number; length: number }[] = [];
  for (const [i, line] of source.lines.entries()) {
    const match = starts.exec(line);
    const name = match?.[2] ?? match?.[3];
    if (match === null || name === undefined || ["if", "for", "while", "switch", "catch"].includes(name)) continue;
    // A call with a callback looks alike: `describe("…", () => {`.
    if (/=> \{$/.test(line) && match[3] === undefined) continue;
    const end = source.lines.findIndex((later, j) => j > i && new RegExp(`^${match[1]}\\}`).test(later));
    if (end > 0) found.push({ name, line: i + 1, length: end - i + 1 });
  }
  return found;
}
