import { parseJson } from "../../../../shared/schema/json.ts";
import { isObject } from "../../../../shared/schema/json-fields.ts";
import type { Row } from "./script.ts";

/** What a command said: the rows of each listing under the place of its statement, or what failed, and where. */
export type Answer =
  | { readonly t: "tables"; readonly tables: ReadonlyMap<number, readonly Row[]> }
  | { readonly t: "failed"; readonly at: number; readonly message: string; readonly id: string }
  /** No whole answer of ours: `is` says what came in its place. */
  | { readonly t: "none"; readonly is: string };

/**
 * Reads the output of a script of `renderScript`. Only what stands between two of this call's own markers
 * counts: a program that prints nothing and exits 0, one that was killed, and half an answer all fail here.
 */
export function readAnswer(stdout: string, marker: string): Answer {
  const start = stdout.indexOf(marker);
  const end = stdout.lastIndexOf(marker);
  if (start < 0) return { t: "none", is: stdout.trim() === "" ? "nothing" : `only ${brief(stdout)}` };
  if (end === start) return { t: "none", is: `half an answer, ${brief(stdout.slice(start + marker.length))}` };
  const text = stdout.slice(start + marker.length, end);
  let value: unknown;
  try {
    value = parseJson(text);
  } catch {
    return { t: "none", is: `no JSON but ${brief(text)}` };
  }
  return shaped(value) ?? { t: "none", is: `JSON of another shape, ${brief(text)}` };
}

function shaped(value: unknown): Answer | undefined {
  if (!isObject(value)) return undefined;
  const { error, at, id, tables } = value;
  if (typeof error === "string" && typeof at === "number")
    return { t: "failed", at, message: error.trim(), id: typeof id === "string" ? id : "" };
  if (!isObject(tables)) return undefined;
  const read = new Map<number, readonly Row[]>();
  for (const [place, list] of Object.entries(tables)) {
    const rows = listOf(list)?.map(rowOf);
    if (rows === undefined || !/^\d+$/.test(place) || !rows.every((row) => row !== undefined)) return undefined;
    read.set(Number(place), rows);
  }
  return { t: "tables", tables: read };
}

function rowOf(value: unknown): Row | undefined {
  if (!isObject(value)) return undefined;
  const row: Record<string, string | readonly string[]> = {};
  for (const [name, field] of Object.entries(value)) {
    const read = typeof field === "string" ? field : listOf(field);
    if (typeof read === "string") row[name] = read;
    // An absent list comes as one empty text.
    else if (read?.every((entry) => typeof entry === "string")) row[name] = read.filter((entry) => entry !== "");
    else return undefined;
  }
  return row;
}

/** PowerShell 5.1 writes an array that its pipeline has wrapped as `{"value":[…],"Count":n}`. */
function listOf(value: unknown): readonly unknown[] | undefined {
  if (Array.isArray(value)) return value;
  return isObject(value) && Array.isArray(value["value"]) && value["Count"] === value["value"].length
    ? value["value"]
    : undefined;
}

/** For a message: one line, cut short. */
export function brief(text: string): string {
  const line = text.trim().replace(/\s+/g, " ");
  return JSON.stringify(line.length <= 200 ? line : `${line.slice(0, 197)}...`);
}
