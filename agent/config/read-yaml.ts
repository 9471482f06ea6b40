import { LineCounter, parseDocument } from "yaml";
import { maxErrorChars } from "../../shared/errors.ts";
import { brief, printable } from "../../shared/printable.ts";
import { readShape, type Shape, type Shaped, type ShapeProblem } from "./yaml-shape.ts";

/** What a document says, or every fault of it as `file:line:column: "path" is value, wanted …`, in the file's order. */
export type ReadYaml =
  | { readonly t: "ok"; readonly value: unknown }
  | { readonly t: "wrong"; readonly problems: readonly string[] };

/**
 * Reads YAML 1.2, and so JSON. Nothing else is touched.
 * @param file for the messages
 * @param contradictions finds faults that no single value shows; asked once every value has its type
 */
export function readYaml(
  text: string,
  file: string,
  shape: Shape,
  contradictions: (shaped: Shaped) => readonly ShapeProblem[] = () => [],
): ReadYaml {
  const lines = new LineCounter();
  const doc = parseDocument(text, { lineCounter: lines, prettyErrors: false, logLevel: "silent", version: "1.2" });
  const place = (offset: number): string => {
    const { line, col } = lines.linePos(offset);
    return `${file}:${line}:${col}`;
  };
  if (doc.errors.length > 0) {
    const problems = doc.errors.map((error) => `${place(error.pos[0])}: ${faultOf(error.message)}, wanted YAML 1.2`);
    return { t: "wrong", problems: shown(file, problems) };
  }
  const shaped = readShape(doc, shape);
  const found = shaped.problems.length > 0 ? shaped.problems : contradictions(shaped);
  if (found.length === 0) return { t: "ok", value: shaped.value };
  const sorted = [...found].sort((a, b) => a.offset - b.offset);
  return {
    t: "wrong",
    problems: shown(
      file,
      sorted.map(({ offset, text }) => `${place(offset)}: ${text}`),
    ),
  };
}

/** A file that is no configuration at all has a fault in every line; the first are enough to see that. */
const mostProblems = 100;

/** Keys and values are quoted as they stand there, which may be anything. */
function shown(file: string, problems: readonly string[]): readonly string[] {
  const first = problems.slice(0, mostProblems).map((problem) => brief(printable(problem), maxErrorChars));
  const more = problems.length - first.length;
  return more === 0 ? first : [...first, `${file}: ${more} more faults, wanted none`];
}

/** The first line of what the parser says; where it could not go deeper, it says so in the language's own words. */
const faultOf = (text: string): string =>
  text.startsWith("Maximum call stack") ? "it is nested too deep" : (text.split("\n", 1)[0] ?? "");
