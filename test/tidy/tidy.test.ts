import { describe, expect, test } from "vitest";
import { functionsOf, importsOf, isTest, roomOf, type Source, sources, staticImportsOf } from "./sources.ts";

const typescript = sources("*.ts", "*.mts", "*.tsx");
const product = typescript.filter(({ path }) => !isTest(path) && !path.startsWith("build/"));

/** Which rooms a room may import from, itself aside. */
const below: Readonly<Record<string, readonly string[]>> = {
  "": ["cni", "ipam", "agent", "controller", "operator", "shared"],
  cni: ["ipam", "shared"],
  // The agent's commands at a terminal also look at other nodes.
  agent: ["cni", "ipam", "operator", "shared"],
  ipam: ["shared"],
  // The page for a team is the operator's tool with its users' rights.
  controller: ["operator", "shared"],
  // What both ends of the page's stream are made of.
  operator: ["ui", "shared"],
  ui: ["shared"],
  shared: [],
};

/** The rooms of the agent, each of which may import from those before it. Files beside them are the agent itself. */
const agentRooms = [
  ...[
    "metrics",
    "platform",
    "protocols",
    "config",
    "conflist",
    "cluster",
    "certificates",
    "datapath",
    "reachability",
    "policies",
    "services",
    "reconcile",
    "attach",
    "server",
    "views",
    "presence",
  ],
  ...["", "commands"],
];

/** The same inside the data path: what all share first, then what connects pods by itself, then what takes of it. */
const dataPathRooms = ["", "linux", "bridge", "ovs", "hns"];

/** Of the controller: what is computed, who hears of it, what nodes report, how they ask, and with what it is encrypted. */
const controllerRooms = ["policy", "watches", "reports", "api", "certificates", "signing", "nodes", ""];

/** Of a file below `folder`, its place in the order. */
const placeIn = (folder: string, order: readonly string[], path: string): number => {
  const parts = path.slice(folder.length).split("/");
  return order.indexOf(parts.length > 1 ? (parts[0] ?? "") : "");
};

/**
 * A folder that has a `mod.ts`, and lies in no other such, is used through its faces: that one and those of folders in it.
 * These beside them are for those who load no more than one file.
 */
const furtherFaces: Readonly<Record<string, readonly string[]>> = {
  // Options, for commands that load the rest where another node is meant.
  "operator/": ["ways.ts"],
  "ipam/": ["main.ts"],
  // The plugin inside of the agent, apart from the piece that its process loads.
  "cni/": ["hosted.ts"],
  // Readers of JSON, which the plugins load, and nothing with them.
  "shared/schema/": ["json.ts", "json-fault.ts", "json-fields.ts", "near.ts"],
  "agent/commands/": ["own-program.ts", "agent/agent-command.ts", "doctor/runtime-list.ts"],
  // One function, where there are to be no certificates.
  "agent/certificates/": ["trusted-authorities.ts"],
  "agent/datapath/bridge/": ["gateway-bridge.ts"],
  "agent/datapath/hns/": ["endpoint-records.ts", "windows-host/powershell.windows.ts"],
  "agent/datapath/ovs/": ["linux/clean-up.ts", "pipeline/vocabulary.ts"],
};

const roomsWithFace = typescript
  .filter(({ path }) => path.endsWith("/mod.ts"))
  .map(({ path }) => path.slice(0, -"mod.ts".length))
  .filter((folder, _, all) => !all.some((other) => folder !== other && folder.startsWith(other)));

interface Ban {
  readonly pattern: RegExp;
  readonly instead: string;
  /** Rooms or files in which the ban holds; absent: everywhere. */
  readonly within?: readonly string[];
  /** The exceptions, by name: files, and folders with a slash behind. */
  readonly except?: readonly string[];
}

/** Rooms and files that a plugin process loads at its start, where each import costs milliseconds. */
const execPath = ["main.ts", "cni/", "ipam/", "shared/"];

/** Files of host-local's directory: read when a network is taken over or given back. */
const hostLocal = ["directory", "export", "import", "lock.linux"].map((name) => `ipam/host-local/${name}.ts`);

/** A database that is damaged, or looks strange: loaded where that has been seen. */
const recovery = [
  ...["rebuild", "replacement", "database-file.linux", "database-file.windows", "work-directory"].map(
    (name) => `ipam/recovery/${name}.ts`,
  ),
  "ipam/store/strange-files.ts",
];

/** What lives long or talks to people: nothing on the way of a plugin imports it, as a test of its own sees to. */
const services = [
  ...[
    ...["server", "channel", "kubernetes", "policy", "terminal", "access", "https", "certificates", "metrics"],
    ...["documents", "archive"],
  ].map((room) => `shared/${room}/`),
  ...["read-document", "record-file", "mod"].map((name) => `shared/schema/${name}.ts`),
  "shared/os/atomic-file.ts",
  ...["ipam/service/", "ipam/cli/", "ipam/history/", "cli.ts"],
];

const bans: readonly Ban[] = [
  {
    pattern: /process\.platform/,
    instead: "shared/os/platform.ts",
    within: ["main.ts", "cni/", "ipam/", "agent/", "controller/", "operator/", "shared/"],
    except: ["shared/os/platform.ts"],
  },
  { pattern: /process\.stdout\.write/, instead: "the PluginIo of the call (16 to 21 ms at the first use)" },
  {
    pattern: /console\.\w+\(/,
    instead: "the Logger or the io that was passed in",
    within: ["cni/", "ipam/", "agent/", "controller/", "operator/", "shared/"],
    // The one place where the plugin meets its process.
    except: ["shared/cni/plugin-process.ts"],
  },
  {
    pattern: /\bexecSync\(|child_process/,
    instead: "runProgram, or Bun.spawn on the exec'd path",
    within: ["cni/", "ipam/", "agent/", "controller/", "operator/", "shared/"],
  },
  {
    pattern: /^import (?!type).* from "(node:(?!sqlite)|@grpc|execa|yaml)/m,
    instead: "a Bun call, or await import() where it is needed",
    within: execPath,
    // Loaded by await import() only.
    except: [
      "shared/os/log-file.ts",
      "shared/os/plain-file.ts",
      "shared/os/directory.windows.ts",
      ...hostLocal,
      ...recovery,
      ...services,
    ],
  },
  {
    pattern: /\bBuffer\b/,
    instead: "Uint8Array with TextEncoder and TextDecoder (0.2 ms at the first touch)",
    within: ["main.ts", "cni/", "shared/"],
    except: services,
  },
  {
    pattern: /(instanceof Error|Error\.isError\(\w+\)) \? \(?\w+\.(message|stack \?\? \w+\.message)\b/,
    instead: "reasonOf or traceOf of shared/reason.ts",
  },
  {
    pattern: /\bString\((caught|cause|error)\)|: (caught|cause|error)\}/,
    instead: "reasonOf or traceOf of shared/reason.ts",
    within: ["main.ts", "cni/", "ipam/", "agent/", "controller/", "operator/", "shared/"],
    except: ["shared/reason.ts"],
  },
  {
    pattern: /\bneigh flush\b/,
    instead: "forgetNeighbours (ip fails where the kernel drops one in between)",
    except: ["test/support/forget-neighbours.ts"],
  },
  { pattern: /\bretry: (?!0\b)\d/, instead: "mending what fails now and then", except: ["test/tidy/tidy.test.ts"] },
  {
    pattern: /innerHTML|outerHTML|insertAdjacentHTML|\beval\(|new Function\(/,
    instead: "text through the framework, which escapes it",
    within: ["ui/"],
  },
  {
    pattern: /https?:\/\/|\bBun\.|\bprocess\.|"node:/,
    instead: "what a browser has, and nothing from elsewhere",
    within: ["ui/"],
  },
  { pattern: /^export \* /m, instead: "exports by name" },
  {
    pattern: /^export default /m,
    instead: "an export by name",
    except: ["vitest.config.mts", "test/mutants/vitest.config.mts"],
  },
  { pattern: /^(export )?(const )?enum /m, instead: "an object `as const`" },
  {
    pattern: /\b(it|test|describe)\.(only|todo|skip)\(/,
    instead: "a test that runs",
    except: ["test/tidy/tidy.test.ts"],
  },
  { pattern: /\.(skipIf|runIf)\(/, instead: "describeWith(), or skip(condition, reason) of the test's context" },
  { pattern: /\b(TODO|FIXME|XXX)\b/, instead: "doing it, or an issue", except: ["test/tidy/tidy.test.ts"] },
];

const applies = (ban: Ban, path: string): boolean =>
  (ban.within === undefined || (ban.within.some((start) => path.startsWith(start)) && !isTest(path))) &&
  !(ban.except ?? []).some((name) => (name.endsWith("/") ? path.startsWith(name) : path === name)) &&
  path !== "test/tidy/tidy.test.ts";

describe("the repository's own rules", () => {
  test.each(bans)("no $pattern: $instead", (ban) => {
    const offenders = typescript.filter(
      ({ path, text }) => applies(ban, path) && ban.pattern.test(withoutComments(text)),
    );
    expect(offenders.map(({ path }) => path)).toEqual([]);
  });

  test("imports go down only", () => {
    const upward = product.flatMap((source) => {
      const room = roomOf(source.path);
      return importsOf(source)
        .filter(
          (target) =>
            /\.tsx?$/.test(target) && roomOf(target) !== room && !(below[room] ?? []).includes(roomOf(target)),
        )
        .map((target) => `${source.path} imports ${target}`);
    });
    expect(upward).toEqual([]);
  });

  test.each([
    ["agent/", agentRooms],
    ["agent/datapath/", dataPathRooms],
    ["controller/", controllerRooms],
  ])("in %s imports go down only", (folder, order) => {
    const inside = product.filter(({ path }) => path.startsWith(folder));
    expect(inside.filter(({ path }) => placeIn(folder, order, path) < 0).map(({ path }) => path)).toEqual([]);
    const upward = inside.flatMap((source) =>
      importsOf(source)
        .filter((target) => target.startsWith(folder) && target.endsWith(".ts"))
        .filter((target) => placeIn(folder, order, target) > placeIn(folder, order, source.path))
        .map((target) => `${source.path} imports ${target}`),
    );
    expect(upward).toEqual([]);
  });

  test.each(roomsWithFace)("%s is used through its faces, also by the tests beside the product", (folder) => {
    const more = furtherFaces[folder] ?? [];
    const around = typescript
      .filter(({ path }) => !path.startsWith(folder) && !path.startsWith("test/") && !path.startsWith("build/"))
      .flatMap((source) =>
        importsOf(source)
          .filter((target) => target.startsWith(folder) && !target.endsWith("/mod.ts"))
          .filter((target) => !more.includes(target.slice(folder.length)))
          .map((target) => `${source.path} imports ${target}`),
      );
    expect(around).toEqual([]);
  });

  test("the allocator is used through its public faces", () => {
    const faces = ["ipam/mod.ts", "ipam/main.ts", "ipam/service/mod.ts"];
    const around = product.flatMap((source) =>
      importsOf(source)
        .filter((target) => roomOf(target) === "ipam" && roomOf(source.path) !== "ipam" && !faces.includes(target))
        .map((target) => `${source.path} imports ${target}`),
    );
    expect(around).toEqual([]);
  });

  test("what lives long is imported up front by its like only, never on the way of a plugin", () => {
    const within = (path: string): boolean => services.some((folder) => path.startsWith(folder));
    const early = product
      .filter(({ path }) => !within(path) && !["agent", "controller", "operator"].includes(roomOf(path)))
      .flatMap((source) => staticImportsOf(source).map((target) => ({ path: source.path, target })))
      .filter(({ target }) => within(target));
    expect(early).toEqual([]);
    // The rule would see one.
    const text = 'import { a } from "../shared/server/a.ts";\nconst b = await import("./service/b.ts");';
    expect(staticImportsOf({ path: "ipam/x.ts", text, lines: [] })).toEqual(["shared/server/a.ts"]);
  });

  test("files end at 400 lines", () => {
    expect(
      typescript.filter(({ lines }) => lines.length > 401).map(({ path, lines }) => `${path}: ${lines.length}`),
    ).toEqual([]);
  });

  test("functions end at 70 lines", () => {
    const long = product.flatMap((source) =>
      functionsOf(source)
        .filter(({ length }) => length > 70)
        .map(({ name, line, length }) => `${source.path}:${line} ${name}: ${length}`),
    );
    expect(long).toEqual([]);
  });

  test("the function rule sees functions", () => {
    const body = Array.from({ length: 80 }, () => "    x();");
    const lines = [
      "export async function long(",
      "): Promise<void> {",
      "}",
      "class A {",
      "  async #b(c: D): Promise<E> {",
      ...body,
      "  }",
      "}",
    ];
    const source: Source = { path: "a.ts", text: lines.join("\n"), lines };
    expect(functionsOf(source)).toEqual([{ name: "b", line: 5, length: 82 }]);
  });

  test("one first heading per document", () => {
    const headings = ({ text }: Source): number => text.replace(/^```[\s\S]*?^```/gm, "").match(/^# /gm)?.length ?? 0;
    expect(
      sources("*.md")
        .filter((page) => headings(page) !== 1)
        .map(({ path }) => path),
    ).toEqual([]);
  });

  test("links between documents lead somewhere", () => {
    const known = new Set(sources(".").map(({ path }) => path));
    const broken = sources("*.md").flatMap(({ path, text }) =>
      [...text.matchAll(/\]\((?!https?:|#)([^)#]+)/g)]
        .map((match) => pathFrom(path, match[1] ?? ""))
        .filter((target) => !known.has(target))
        .map((target) => `${path} leads to ${target}`),
    );
    expect(broken).toEqual([]);
  });

  test("links between documents lead to headings that are there", () => {
    const pages = new Map(sources("*.md").map((page) => [page.path, anchorsOf(page)]));
    const broken = sources("*.md").flatMap(({ path, text }) =>
      [...text.matchAll(/\]\((?!https?:)([^)#]*\.md)?#([^)]+)\)/g)]
        .map(([, page, anchor = ""]) => ({ page: page === undefined ? path : pathFrom(path, page), anchor }))
        .filter(({ page, anchor }) => !pages.get(page)?.has(anchor))
        .map(({ page, anchor }) => `${path} leads to ${page}#${anchor}`),
    );
    expect(broken).toEqual([]);
    // The rule would see one.
    expect([...anchorsOf({ path: "a.md", text: "# A `pipette` page\n", lines: [] })]).toEqual(["a-pipette-page"]);
  });

  test("every package stands in docs/dependencies.md, and no other", () => {
    const manifest = JSON.parse(sources("package.json")[0]?.text ?? "{}") as Record<string, Record<string, string>>;
    const wanted = [...Object.keys(manifest["dependencies"] ?? {}), ...Object.keys(manifest["devDependencies"] ?? {})];
    const page = sources("docs/dependencies.md")[0]?.text ?? "";
    const listed = [...page.matchAll(/^\| `([^`]+)` \|/gm)].map((match) => match[1]);
    expect(listed.sort()).toEqual(wanted.sort());
  });

  test("every folder of test/ stands in test/README.md, and no other", () => {
    const folders = new Set(typescript.flatMap(({ path }) => /^test\/([^/]+)\//.exec(path)?.[1] ?? []));
    const listed = [...(sources("test/README.md")[0]?.text ?? "").matchAll(/^\| `([^`]+)` \|/gm)].map(
      ([, name]) => name,
    );
    expect(listed.sort()).toEqual([...folders].sort());
  });

  test("the lock file names no download address", () => {
    expect(sources("package-lock.json")[0]?.text).not.toContain('"resolved"');
  });
});

/** Of what a document at `path` links to. */
const pathFrom = (path: string, link: string): string => new URL(link, `file:///${path}`).pathname.slice(1);

/** What a link can name of a page, as the usual viewers make it of its headings. */
function anchorsOf({ text }: Source): ReadonlySet<string> {
  const prose = text.replace(/^```[\s\S]*?^```/gm, "");
  const headings = [...prose.matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) => heading);
  return new Set(
    headings.map((heading) =>
      heading
        .toLowerCase()
        .replace(/[^\w\- ]/g, "")
        .replaceAll(" ", "-"),
    ),
  );
}

/** Comments may name what the code may not do. */
function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\//g, "").replace(/^\s*\/\/.*$/gm, "");
}
