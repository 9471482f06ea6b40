import { readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { bundlePiece, common, pieces, windowsThreads } from "./bundle.ts";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const textOf = (file: string): string => readFileSync(file, "utf8");

/** What a file loads at once, itself and all the way down. */
function loadedWith(file: string, seen: Set<string> = new Set()): Set<string> {
  if (seen.has(file)) return seen;
  seen.add(file);
  for (const [, path] of textOf(file).matchAll(/^(?:import|export) (?!type\b)(?:[^;"]*? from )?"(\.[^"]+)"/gm))
    loadedWith(join(dirname(file), path ?? ""), seen);
  return seen;
}

const named = pieces.map((first) => relative(root, first));

/** What a piece loads later, as its text names it. */
const laterOf = (text: string): string[] => [...text.matchAll(/import\("([^"]+)"\)/g)].map(([, file]) => file ?? "");

test.each(named)(
  "%s and what it loads later have every class in common that one asks of the other's objects",
  async (first) => {
    const { text, files } = await bundlePiece(join(root, first));
    const inLater = new Set(
      laterOf(text)
        .filter((file) => file.endsWith(".ts"))
        .flatMap((file) => [...loadedWith(file)]),
    );
    const all = [...files, ...inLater].map(textOf).join("\n");
    const asked = new Set([...all.matchAll(/instanceof (\w+)/g)].map(([, name]) => name));
    const twice = files.filter((file) => inLater.has(file));
    const ofBoth = twice.filter((file) =>
      [...textOf(file).matchAll(/\bclass (\w+)/g)].some(([, name]) => asked.has(name)),
    );
    expect(ofBoth).toEqual([]);
    // There is something that both load, and something that is kept in common.
    expect(twice.length).toBeGreaterThan(0);
    expect(common.filter((file) => inLater.has(file))).not.toEqual([]);
  },
);

test.each(named)(
  "%s is one piece: up front it imports only what is common, and modules of the runtime",
  async (first) => {
    const { text } = await bundlePiece(join(root, first));
    const imported = [...text.matchAll(/^import (?:[^"]*? from )?"([^"]+)"/gm)].map(([, file]) => file ?? "");
    expect(imported.filter((file) => !file.includes(":") && !common.includes(file))).toEqual([]);
    expect(imported.some((file) => common.includes(file))).toBe(true);
  },
);

// In the executable it has no other name, and only Windows would say that there is none.
test.each(windowsThreads)("%s is started under the path that it has in the executable", (file) => {
  const starter = textOf(join(dirname(file), "open-hcn.ts"));
  expect(starter).toContain(`"./${relative(root, file)}"`);
});
