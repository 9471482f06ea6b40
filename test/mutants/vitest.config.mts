import { join } from "node:path";
import { defineConfig } from "vitest/config";
import type { VitestPluginContext } from "vitest/node";
import { type Mutant, mutated } from "./mutations.ts";

/** The mutant of this run, put in where the file is read: nothing in the work tree changes. */
const mutant = JSON.parse(process.env["PIPETTE_MUTANT"] ?? "null") as Mutant | null;
const file = mutant === null ? "" : join(import.meta.dirname, "../..", mutant.path);

/** Without the groups of the whole run, and with modules that are made once for all mutants: both take longer than most tests. */
export default defineConfig({
  test: {
    pool: "forks",
    include: ["**/*.test.ts"],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 20_000 } },
    restoreMocks: true,
    experimental: { fsModuleCache: true },
  },
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
