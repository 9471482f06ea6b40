import { join } from "node:path";
import { defineConfig } from "vitest/config";
import main from "../../vitest.config.mts";
import { type Mutant, mutated } from "./mutations.ts";

/** The mutant of this run, put in where the file is read: nothing in the work tree changes. */
const mutant = JSON.parse(process.env["PIPETTE_MUTANT"] ?? "null") as Mutant | null;
const file = mutant === null ? "" : join(import.meta.dirname, "../..", mutant.path);

export default defineConfig({
  ...main,
  plugins: [
    {
      name: "mutant",
      enforce: "pre",
      transform: (text, id) => (mutant === null || id.split("?")[0] !== file ? undefined : mutated(text, mutant)),
    },
  ],
});
