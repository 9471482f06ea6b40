import { readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { bundlePlugin, common } from "./bundle.ts";

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

test("the plugin's piece and what it loads later have every class in common that one asks of the other's objects", async () => {
  const { text, files } = await bundlePlugin();
  const later = [...text.matchAll(/import\("([^"]+)"\)/g)].map(([, file]) => file ?? "");
  expect(later.map((file) => relative(root, file)).sort()).toContain("ipam/mod.ts");
  const inLater = new Set(later.flatMap((file) => [...loadedWith(file)]));
  const all = [...files, ...inLater].map(textOf).join("\n");
  const asked = new Set([...all.matchAll(/instanceof (\w+)/g)].map(([, name]) => name));
  const twice = [...files].filter((file) => inLater.has(file));
  const ofBoth = [...twice, ...common].filter((file) =>
    [...textOf(file).matchAll(/\bclass (\w+)/g)].some(([, name]) => asked.has(name)),
  );
  expect(ofBoth.sort()).toEqual([...common].sort());
  expect(twice.length).toBeGreaterThan(0);
});

test("the plugin is one piece: only what is loaded later, or common, is imported", async () => {
  const { text } = await bundlePlugin();
  const imported = [...text.matchAll(/^import (?:[^"]*? from )?"([^"]+)"/gm)].map(([, file]) => file);
  expect(new Set(imported)).toEqual(new Set(common));
});
