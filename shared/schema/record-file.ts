import { CniCode } from "../errors.ts";
import { readSmallFile } from "../os/plain-file.ts";
import { reasonOf } from "../reason.ts";
import { parseJson } from "./json.ts";
import type { Schema } from "./schema.ts";
import { type ValidateOptions, validate } from "./validate.ts";

/** A record that Pipette keeps as JSON, as it was found. */
export type ReadRecord<T> =
  | { readonly t: "ok"; readonly value: T }
  | { readonly t: "absent" }
  /** `is` says why it cannot be used, in words that continue a sentence; `code` is for a `CniError`. */
  | { readonly t: "wrong"; readonly is: string; readonly code: number };

/** The size of a record: ten thousand nodes are 3 MiB. A larger one is neither read nor written. */
export const maxRecordBytes = 16 * 1024 * 1024;

/** Reads a file that this or another release wrote; unknown keys of a later release are ignored. */
export function readRecord<T>(
  path: string,
  schema: Schema<T>,
  options: Pick<ValidateOptions, "wrongOptional"> = {},
): ReadRecord<T> {
  let text: string;
  try {
    text = readSmallFile(path, maxRecordBytes);
  } catch (caught) {
    if (caught instanceof Error && "code" in caught && caught.code === "ENOENT") return { t: "absent" };
    return { t: "wrong", is: reasonOf(caught), code: CniCode.io };
  }
  let value: unknown;
  try {
    value = parseJson(text);
  } catch (caught) {
    return { t: "wrong", is: reasonOf(caught), code: CniCode.decode };
  }
  const read = validate(schema, value, { ...options, unknownKeys: "ignored", maxIssues: 1 });
  return read.t === "ok" ? read : { t: "wrong", is: read.issues[0]?.text ?? "", code: CniCode.io };
}
