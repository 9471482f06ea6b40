import { readFileSync } from "node:fs";
import { join } from "node:path";
import { sources } from "../tidy/sources.ts";

/** Tests that are run for a mutant before the others: those of its unit, and what imports it. */
export interface NarrowTests {
  readonly first: readonly string[];
  readonly others: readonly string[];
}

/** More files than these nobody runs for a change of one. */
const maxTests = 12;
/** So many of them before the rest. */
const firstTests = 6;

/** Folders with tests under test/ that run the product in their own process; those with executables see no mutant. */
const elsewhere: Readonly<Record<string, readonly string[]>> = {
  "agent/datapath/hns/node-side.ts": ["test/windows-host/node-side.test.ts"],
  "agent/datapath/hns/windows-host/": ["adapter", "clean-up", "gateway", "pod-adapters", "script", "set-up"].map(
    (name) => `test/windows-host/${name}.test.ts`,
  ),
  "agent/policies/": ["test/policies/controller-access.test.ts", "test/policies/rule-store.test.ts"],
  "controller/api/": ["test/policies/control-plane-api.test.ts"],
  "controller/watches/": ["test/policies/encodings.test.ts", "test/policies/control-plane-api.test.ts"],
  "controller/policy/": ["test/policies/compare.test.ts", "test/policies/random-events.test.ts"],
  "shared/policy/": ["test/policies/compare.test.ts", "test/policies/encodings.test.ts"],
  "shared/proto/": ["test/fuzz/corpus.test.ts"],
  "shared/rpc/": ["test/fuzz/corpus.test.ts"],
};

/** Where the product begins. What cannot be reached from here is a double of tests. */
const entries = [
  ...["main.ts", "ipam/main.ts", "ipam/service/ipam-client.ts", "agent/protocols/hcn/hcn-worker.windows.ts"],
  ...["controller/policy/mod.ts"],
];

/** Who imports whom in the repository, as it is in the work tree. */
export class ImportGraph {
  readonly #texts = new Map(sources("*.ts").map(({ path, text }) => [path, text]));
  readonly #importers = new Map<string, string[]>();
  readonly #product = new Set<string>();

  constructor() {
    for (const [path, text] of this.#texts)
      for (const target of importsOf(path, text)) this.#importers.set(target, [...this.#importersOf(target), path]);
    const open = [...entries];
    for (const path of open) {
      if (this.#product.has(path) || !this.#texts.has(path)) continue;
      this.#product.add(path);
      open.push(...importsOf(path, this.#texts.get(path) ?? ""));
    }
  }

  /** Product files whose path begins so. What only Windows runs is left out where no test on Linux imports it. */
  filesOf(start: string): readonly { readonly path: string; readonly text: string }[] {
    const isRun = (path: string): boolean =>
      !path.endsWith(".windows.ts") || this.#importersOf(path).some((importer) => importer.endsWith(".test.ts"));
    return [...this.#product]
      .filter((path) => path.startsWith(start) && isRun(path))
      .sort()
      .map((path) => ({ path, text: this.#texts.get(path) ?? "" }));
  }

  /** Whether the file is in the work tree as it was read here: a mutant's place is of that text. */
  isAsRead(path: string): boolean {
    return readFileSync(join(import.meta.dirname, "../..", path), "utf8") === this.#texts.get(path);
  }

  /** What a developer runs for a change of this file, nearest first. */
  testsOf(path: string): NarrowTests {
    const distances = this.#distances(path);
    const stem = path.replace(/(\.linux|\.windows)?\.ts$/, "");
    const isOwn = (test: string): boolean => new RegExp(`^${stem}(-[a-z-]+)?\\.test\\.ts$`).test(test);
    const folder = path.slice(0, path.lastIndexOf("/") + 1);
    const isBeside = (test: string): boolean => test.slice(0, test.lastIndexOf("/") + 1) === folder;
    const rank = (test: string): number => (isOwn(test) ? 0 : isBeside(test) ? 1 : (distances.get(test) ?? 1) + 1);
    const own = [...this.#texts.keys()].filter(isOwn);
    const units = [...distances.keys()].filter((one) => one.endsWith(".test.ts") && !one.startsWith("test/"));
    const nearest = [...new Set([...own, ...units])].sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
    const asked = Object.entries(elsewhere).flatMap(([start, tests]) => (path.startsWith(start) ? tests : []));
    const close = nearest.filter((test) => rank(test) <= 1);
    const first = (close.length > 0 ? close : nearest).slice(0, firstTests);
    return { first, others: [...nearest.slice(first.length, maxTests), ...asked] };
  }

  #importersOf(path: string): readonly string[] {
    return this.#importers.get(path) ?? [];
  }

  /** How many imports lie between the file and those that load it. */
  #distances(path: string): ReadonlyMap<string, number> {
    const distances = new Map([[path, 0]]);
    for (const [one, distance] of distances)
      for (const importer of this.#importersOf(one))
        if (!distances.has(importer)) distances.set(importer, distance + 1);
    return distances;
  }
}

/** What the file loads, now or later; types alone load nothing. */
export function importsOf(path: string, text: string): readonly string[] {
  const loaded = text.replace(/^(?:import|export) type [^;]*;/gm, "");
  return [...loaded.matchAll(/(?:from|import)\s*\(?\s*"(\.[^"]+\.ts)"/g)].map(([, target = ""]) =>
    new URL(target, `file:///${path}`).pathname.slice(1),
  );
}
