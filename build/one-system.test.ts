import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, test } from "vitest";
import { bundling } from "./bundle.ts";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** What of the sources belongs to Windows alone; `shared/` has a few constants in files of that name. */
const ofWindows = /^agent\/(?:datapath\/hns|protocols\/hcn|platform\/windows-service)\/|^agent\/.*\.windows\.ts$/;

interface Piece {
  readonly inputs: Readonly<Record<string, unknown>>;
  readonly imports: readonly { readonly path: string; readonly kind: string }[];
}

/** What a command loads on Linux: its own file, and what that loads later for one configuration or another. */
const commands: Readonly<Record<string, readonly string[]>> = {
  "agent --cleanup": [
    ...["agent/agent-command.ts", "cleanup/clean-up.ts", "cleanup/clean-up.linux.ts"],
    ...["../datapath/bridge/mod.ts", "../datapath/ovs/mod.ts"],
  ],
  agent: ["agent/agent-command.ts", "../data-path-choice.ts", "../datapath/bridge/mod.ts", "../datapath/ovs/mod.ts"],
  status: ["status/status-command.ts"],
  doctor: ["doctor/doctor-command.ts", "../datapath/ovs/mod.ts"],
  trace: ["trace/trace-command.ts"],
  "install and uninstall": ["install/mod.ts"],
};

describe("the executable for Linux", () => {
  let pieces: Readonly<Record<string, Piece>>;

  beforeAll(async () => {
    const { metafile } = await Bun.build({ ...(await bundling(join(root, "main.ts"))), metafile: true });
    pieces = metafile?.outputs ?? {};
  });

  /** The sources of all pieces that come with the one which has this source. */
  function loadedWith(source: string): ReadonlySet<string> {
    const first = Object.keys(pieces).find((path) => source in (pieces[path]?.inputs ?? {}));
    const seen = new Set<string>();
    const load = (path: string): void => {
      if (seen.has(path)) return;
      seen.add(path);
      for (const one of pieces[path]?.imports ?? []) if (one.kind === "import-statement") load(one.path);
    };
    load(first ?? "");
    return new Set([...seen].flatMap((path) => Object.keys(pieces[path]?.inputs ?? {})));
  }

  test.each(Object.entries(commands))("loads nothing of Windows for %s", (_command, files) => {
    const sources = files.map((file) => relative(root, join(root, "agent/commands", file)));
    const loaded = new Set(sources.flatMap((source) => [...loadedWith(source)]));
    expect(sources.filter((source) => !loaded.has(source))).toEqual([]);
    expect([...loaded].filter((source) => ofWindows.test(source))).toEqual([]);
  });

  test("has what the others load on Windows, which this would see", () => {
    const loaded = loadedWith("agent/commands/cleanup/clean-up.windows.ts");
    expect([...loaded].filter((source) => ofWindows.test(source)).length).toBeGreaterThan(30);
  });
});
