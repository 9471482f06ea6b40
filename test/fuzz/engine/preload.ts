import { readFileSync } from "node:fs";
import { join } from "node:path";
import { plugin } from "bun";
import { countedCode } from "./counted-code.ts";
import { takeCounters } from "./hits.ts";

// `bun --preload` of a fuzzing process: the product's sources count from here on, as they are imported.

const root = join(import.meta.dirname, "../../..");
const rooms = ["agent", "cni", "ipam", "shared", "test/fuzz/samples"].join("|");
const product = new RegExp(`^${root}/(?:(?:${rooms})/.*|terminal|main)(?<!\\.test|\\.d)\\.ts$`);

plugin({
  name: "counters",
  setup(build) {
    build.onLoad({ filter: product }, ({ path }) => ({
      contents: takeCounters((array, first) => countedCode(readFileSync(path, "utf8"), path, array, first)),
      loader: "ts",
    }));
  },
});
