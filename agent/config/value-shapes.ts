import { paths } from "../../shared/paths.ts";
import type { Shape } from "./yaml-shape.ts";

/** Shapes of single values that several sections have. */

export const path: Shape = {
  t: "string",
  wanted: "an absolute path",
  wrong: (text) => (paths.isAbsolute(text) && !text.includes("\0") ? undefined : "relative"),
};

export const oneOf = (values: readonly string[]): Shape => ({
  t: "string",
  wanted: `one of ${values.map((value) => `"${value}"`).join(", ")}`,
  wrong: (text) => (values.includes(text) ? undefined : "another"),
});
