import { join } from "node:path";
import { defineConfig } from "vitest/config";
import type { VitestPluginContext } from "vitest/node";
import main from "../../vitest.config.mts";
import { type Mutant, mutated } from "./mutations.ts";

/** The mutant of this run, put in where the file is read: nothing in the work tree changes. */
const mutant = JSON.parse(process.env["PIPETTE_MUTANT"] ?? "null") as Mutant | null;
const file = mutant === null ? "" : join(import.meta.dirname, "../..", mutant.path);

export default defineConfig({
  ...main,
  // What no mutant changes is made for the tests once, not for each mutant anew: that takes longer than most tests.
  test: { ...main.test, experimental: { fsModuleCache: true } },
  plugins: [
    {
      name: "mutant",
      enforce: "pre",
      configureVitest: ({ experimental_defineCacheKeyGenerator: keyedBy }: VitestPluginContext) =>
        keyedBy(({ id }) => (id === file ? false : undefined)),
      transform: (text, id) => (mutant === null || id.split("?")[0] !== file ? undefined : mutated(text, mutant)),
    },
  ],
});
