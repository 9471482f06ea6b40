import { readFile } from "node:fs/promises";
import { nextTurn } from "../shared/async/next-turn.ts";
import { writeAtomicallySlowly } from "../shared/os/atomic-file.ts";
import type { Namespace, NetworkPolicy, Pod } from "../shared/policy/mod.ts";
import { parseJson } from "../shared/schema/json.ts";
import { isObject } from "../shared/schema/json-fields.ts";

/** What policies are computed from. */
export interface Inputs {
  readonly namespaces: Iterable<Namespace>;
  readonly pods: Iterable<Pod>;
  readonly policies: Iterable<NetworkPolicy>;
}

/**
 * One file with all inputs, so that a controller that starts anew can serve at once what was known before, and say so. The
 * first line names the format, and the sum of all that follows: a file that is broken, or of another release's format,
 * is nothing to serve.
 */
const format = "pipette-policy-inputs/1";
/** Objects that are written without letting others do something in between. */
const slice = 1_000;

/** @throws {CniError} code 5 */
export async function writeSnapshot(path: string, { namespaces, pods, policies }: Inputs): Promise<void> {
  const parts: string[] = [];
  let lines: string[] = [];
  const sum = new Bun.CryptoHasher("sha256");
  const flush = (): void => {
    const part = lines.map((line) => `${line}\n`).join("");
    sum.update(part);
    parts.push(part);
    lines = [];
  };
  for (const [kind, objects] of Object.entries({ namespaces, pods, policies }))
    for (const object of objects) {
      lines.push(JSON.stringify([kind, object], bigintAsText));
      if (lines.length < slice) continue;
      flush();
      await nextTurn();
    }
  flush();
  const head = JSON.stringify({ format, sha256: sum.digest("hex") });
  await writeAtomicallySlowly(path, [`${head}\n`, ...parts].join(""), () => true);
}

/** `undefined` where there is none. @throws {Error} for one that is not to be served, with the reason */
export async function readSnapshot(path: string): Promise<Inputs | undefined> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (caught) {
    if (caught instanceof Error && "code" in caught && caught.code === "ENOENT") return undefined;
    throw caught;
  }
  const end = text.indexOf("\n") + 1;
  const head = parseJson(text.slice(0, end));
  if (!isObject(head) || head["format"] !== format) throw new Error("it is of another release");
  const body = text.slice(end);
  if (new Bun.CryptoHasher("sha256").update(body).digest("hex") !== head["sha256"]) throw new Error("it is damaged");
  const inputs: { namespaces: Namespace[]; pods: Pod[]; policies: NetworkPolicy[] } = {
    namespaces: [],
    pods: [],
    policies: [],
  };
  // By the sum it is what was written, so its shape is that of this format.
  for (const line of body.split("\n")) {
    if (line === "") continue;
    const [kind, object] = JSON.parse(line, textAsBigint) as [keyof typeof inputs, never];
    inputs[kind].push(object);
  }
  return inputs;
}

/** Addresses hold numbers of up to 128 bits. No key of a label has such a sign. */
const mark = "$bigint";

const bigintAsText = (_: string, value: unknown): unknown =>
  typeof value === "bigint" ? { [mark]: value.toString() } : value;

const textAsBigint = (_: string, value: unknown): unknown =>
  isObject(value) && typeof value[mark] === "string" ? BigInt(value[mark]) : value;
