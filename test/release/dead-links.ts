import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** What the documents below a directory link to, and is not there: `docs/ipam.md leads to docs/none.md`. */
export function deadLinks(directory: string): readonly string[] {
  const pages = readdirSync(directory, { recursive: true, encoding: "utf8" }).filter((path) => path.endsWith(".md"));
  if (pages.length === 0) throw new Error(`"${directory}" has no documents`);
  return pages.flatMap((page) =>
    [...readFileSync(join(directory, page), "utf8").matchAll(/\]\((?!https?:|#)([^)#]+)/g)]
      .map((match) => join(dirname(page), match[1] ?? ""))
      .filter((target) => !existsSync(join(directory, target)))
      .map((target) => `${page} leads to ${target}`),
  );
}
