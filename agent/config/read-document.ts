import { brief, printable } from "../../shared/printable.ts";
import { reasonOf } from "../../shared/reason.ts";
import { parseJson } from "../../shared/schema/json.ts";
import { type ReadYaml, readYaml } from "./read-yaml.ts";
import { misfit, type Shape, type Shaped, type ShapeProblem } from "./yaml-shape.ts";

/** A megabyte of YAML keeps the agent from its pods for seconds, the same as JSON for milliseconds. */
const mostYamlChars = 1024 * 1024;
/** Of what a parser says, which quotes what it stumbled over, however long it is. */
const mostQuotedChars = 300;

/** As `readYaml`, for files that may be large: one that is JSON in order is read at once, a large one has to be. */
export function readDocument(
  text: string,
  file: string,
  shape: Shape,
  contradictions: (shaped: Shaped) => readonly ShapeProblem[],
): ReadYaml {
  const json = readJson(text, shape, contradictions);
  if (json.t === "ok") return json;
  if (text.length > mostYamlChars)
    return { t: "wrong", problems: [`${file}: ${json.is}, wanted JSON in order where there is more than 1 MiB`] };
  // Whatever is wrong with it, the other reader knows the place.
  return readYaml(text, file, shape, contradictions);
}

function readJson(
  text: string,
  shape: Shape,
  contradictions: (shaped: Shaped) => readonly ShapeProblem[],
): { readonly t: "ok"; readonly value: unknown } | { readonly t: "wrong"; readonly is: string } {
  let value: unknown;
  try {
    value = parseJson(text);
  } catch (caught) {
    const is = reasonOf(caught);
    return { t: "wrong", is: brief(printable(is), mostQuotedChars) };
  }
  const fault = misfit(value, shape);
  if (fault !== undefined) return { t: "wrong", is: `${fault} is missing, unknown or not what it should be` };
  const [problem] = contradictions({ value, offsets: new Map(), problems: [] });
  return problem === undefined ? { t: "ok", value } : { t: "wrong", is: problem.text };
}
