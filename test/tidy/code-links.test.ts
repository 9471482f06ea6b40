import { expect, test } from "vitest";
import { isTest, type Source, sources } from "./sources.ts";

/** A link of a document to a name in a source, such as `` [`addPod`](../agent/attach/add.ts) ``. */
interface CodeLink {
  readonly page: string;
  readonly name: string;
  readonly path: string;
}

const codeLinks = ({ path: page, text }: Source): CodeLink[] =>
  [...text.matchAll(/\[`#?([\w$.]+)(?:\(\))?`\]\(([^)#]+\.ts)\)/g)]
    .map(([, name = "", link = ""]) => ({ page, name, path: new URL(link, `file:///${page}`).pathname.slice(1) }))
    // A link with the file's own name shows no name of the code.
    .filter(({ name }) => !name.endsWith(".ts"));

/** Whether a source makes this name: a function, a class, a type, a constant or a member; `Class.member` wants both. */
const defines = (text: string, name: string): boolean =>
  name.split(".").every((part) => {
    const declared = `\\b(?:function\\*?|class|interface|type|const|let) ${part}\\b`;
    const member = `^ +(?:(?:static|override|readonly|async|private|get|set) )*\\*?#?${part}[?!]?(?:<[^>]*>)?(?:\\(|:| =)`;
    return new RegExp(`${declared}|${member}`, "m").test(text);
  });

/** Links to names that are not where they lead. */
function astray(pages: readonly Source[], code: readonly Source[]): string[] {
  const texts = new Map(code.map(({ path, text }) => [path, text]));
  return pages
    .flatMap(codeLinks)
    .filter(({ path, name }) => !defines(texts.get(path) ?? "", name))
    .map(({ page, name, path }) => `${page} links to ${name}, and ${path} has none`);
}

const source = (path: string, text: string): Source => ({ path, text, lines: text.split("\n") });

test("names that documents link to stand in the files that the links lead to", () => {
  expect(astray(sources("*.md"), sources("*.ts"))).toEqual([]);
  expect(sources("docs/code-tour.md").flatMap(codeLinks).length).toBeGreaterThan(20);
});

/** A path of this repository, or the name of a test, with as much of its path as tells it from others. */
const namedPaths = /`((?:agent|build|cni|conf|docs|ipam|shared|test)(?:\/[a-z0-9_.-]+)+|[a-z0-9./-]+\.test\.ts)\/?`/g;

test("files and folders that documents name are there", () => {
  const known = sources(".").map(({ path }) => path);
  const isThere = (path: string): boolean =>
    known.some((one) => one === path || one.startsWith(`${path}/`) || (isTest(path) && one.endsWith(`/${path}`)));
  const missing = sources("*.md").flatMap(({ path, text }) =>
    [...text.matchAll(namedPaths)]
      .filter(([, named = ""]) => !isThere(named))
      .map(([, named]) => `${path} names ${named}`),
  );
  expect(missing).toEqual([]);
});

test("the rule sees functions, classes, members and types", () => {
  const code = source(
    "a/b.ts",
    [
      "export async function added(): Promise<void> {}",
      "export const made = (): number => 1;",
      "interface Kind {",
      "  readonly list: string;",
      "  find(name: string): void;",
      "}",
      "class Loop {",
      "  async #run(once: boolean): Promise<void> {}",
      "}",
    ].join("\n"),
  );
  const page = (names: readonly string[]): Source =>
    source("docs/tour.md", names.map((name) => `[\`${name}\`](../a/b.ts)`).join("\n"));
  expect(
    astray([page(["added", "added()", "made", "Kind", "Kind.list", "Kind.find", "Loop", "Loop.run"])], [code]),
  ).toEqual([]);
  const wrong = ["removed", "add", "Loop.stop", "once"];
  expect(astray([page(wrong)], [code])).toEqual(
    wrong.map((name) => `docs/tour.md links to ${name}, and a/b.ts has none`),
  );
  expect(astray([source("docs/tour.md", "[`added`](../a/none.ts)")], [code])).toHaveLength(1);
  // Files by their own names are left to the rule about links.
  expect(astray([source("docs/tour.md", "[`b.ts`](../a/b.ts)")], [code])).toEqual([]);
});
