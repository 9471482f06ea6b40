import { CniCode, CniError } from "../errors.ts";
import { show } from "../schema/json-fields.ts";
import type { Pod } from "./types.ts";

/**
 * Reads CNI_ARGS: `K=V;K=V`, each pair with exactly one `=`.
 * @throws {CniError} code 4 for a pair of another form
 */
export function parseArgs(text: string): ReadonlyMap<string, string> {
  const args = new Map<string, string>();
  if (text === "") return args;
  const pairs = text.split(";");
  for (const pair of pairs) {
    const equals = pair.indexOf("=");
    if (equals < 1 || pair.includes("=", equals + 1)) {
      throw new CniError(
        CniCode.invalidEnvironment,
        // The text is not quoted, because it may be a secret: base64 often ends in "=".
        `Cannot read CNI_ARGS: part ${pairs.indexOf(pair) + 1} has ${equals < 1 ? "no KEY=" : `more than one "=" (key ${show(pair.slice(0, equals))})`}, wanted KEY=VALUE`,
      );
    }
    args.set(pair.slice(0, equals), pair.slice(equals + 1));
  }
  return args;
}

/**
 * The pod of the sandbox, if the runtime named it. Never fails, because a DEL must not depend on CNI_ARGS; a pair that
 * cannot be read is ignored.
 */
export function podOf(text: string): Pod | undefined {
  const name = lastValue(text, "K8S_POD_NAME=");
  if (name === "") return undefined;
  return { name, namespace: lastValue(text, "K8S_POD_NAMESPACE="), uid: lastValue(text, "K8S_POD_UID=") };
}

/** Of the last pair that begins so; empty where there is none. Each ADD looks for three, and makes no pairs for them. */
function lastValue(text: string, start: string): string {
  let at = text.lastIndexOf(start);
  // Not within another key or value.
  while (at > 0 && text[at - 1] !== ";") at = text.lastIndexOf(start, at - 1);
  if (at < 0) return "";
  const end = text.indexOf(";", at);
  return text.slice(at + start.length, end < 0 ? undefined : end);
}
