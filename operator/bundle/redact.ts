/**
 * What is secret in a text that goes to somebody else: values under keys that sound secret, tokens and keys by their
 * shape, and what is known to be secret on the node it comes from. Too much is left out rather than too little: whoever
 * reads a bundle looks for causes, and a secret is none.
 */

/** In the place of what was left out. */
export const leftOut = "[left out]";

const secretWords =
  "token|passw(?:or)?d|passphrase|secret|psk|pre-?shared|private[_-]?key|client-key|api[_-]?key|credential|authorization|bearer";

/** Whether the value under a key is nobody's business: `client-key-data`, `K8S_TOKEN`. Its length is bounded first. */
export const isSecretKey = (key: string): boolean =>
  key.length > 200 || new RegExp(secretWords, "i").test(key) || key.toUpperCase() === "CNI_ARGS";

/**
 * By shape, each pattern linear: its repeats are bounded, and none begins where the one before it may go on.
 */
const shapes: readonly (readonly [RegExp, string])[] = [
  // Keys of TLS, SSH, WireGuard in PEM.
  [/-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[^-]{0,20000}(?:-----END [A-Z ]{0,40}PRIVATE KEY-----)?/g, leftOut],
  // JSON Web Tokens: a service account's.
  [/\beyJ[\w-]{8,4096}\.[\w-]{8,8192}\.[\w-]{0,4096}/g, leftOut],
  // On the same line: what begins the next one may be a key, whose value would be left.
  [/\b(Bearer|Basic)[ \t]{1,4}[\w.~+/=-]{6,8192}/gi, `$1 ${leftOut}`],
  // Users in URLs.
  [/(\b[a-z][a-z0-9+.-]{1,20}:\/\/)[^\s/@"']{1,400}@/gi, `$1${leftOut}@`],
  // CNI_ARGS of a call: pairs that Kubernetes does not define, as the log has them.
  [/\bCNI_ARGS=[^\s"']{0,4096}/g, `CNI_ARGS=${leftOut}`],
];

/** Of a list up to its end: texts, also those whose quotes are escaped in a line of a log, and what lies between. */
const listValue = String.raw`\[(?:\\{1,3}"[^"\n]{0,20000}"|"(?:[^"\\\n]|\\.){0,20000}"?|[^\]"]){0,20000}\]?`;

/** "key": "value", key=value, key: value, key: [values]. The key's own quotes may be escaped within a line of a log. */
const pairs: readonly [RegExp, string] = [
  new RegExp(
    `((?:${secretWords})[\\w.-]{0,64}\\\\{0,3}"?\\s{0,4}[:=]\\s{0,4})(?!"\\[left out\\]")(${listValue}|\\\\{0,3}"(?:[^"\\\\\\n]|\\\\.){0,20000}"?|'(?:[^'\\n]|''){0,20000}'?|[^\\s,;}\\]]{1,20000})`,
    "gi",
  ),
  `$1"${leftOut}"`,
];

/** A line that begins with such a key, as YAML and files of variables have it, also in a list or a remark. */
const keyedLine = new RegExp(
  `^([ \\t]{0,200}(?:[#-][ \\t]{0,8}|export[ \\t]{1,8}){0,4})("?[\\w.-]{0,64}(?:${secretWords})[\\w.-]{0,64}"?[ \\t]{0,4}[:=][ \\t]{0,4})(.*)$`,
  "is",
);

/** Where a line's text begins; a remark's own sign is none of it. */
const indentOf = (line: string): number => /^[ \t#]*/.exec(line)?.[0].length ?? 0;

/** Whether a line belongs to the value of a key above it. A list may stand as deep as its key. */
function isBelow(line: string, before: string, value: string): boolean {
  if (line.trim() === "") return value.trim() !== "";
  const indent = indentOf(line);
  return (
    indent > before.length || (value.trim() === "" && indent === before.length && line.slice(indent).startsWith("- "))
  );
}

/** Shorter ones would stand in other words. */
const shortestSecret = 6;

export class Redactor {
  readonly #known: readonly string[];
  #count = 0;

  /** @param known values that are secret wherever they stand: contents of token files and keys */
  constructor(known: Iterable<string> = []) {
    this.#known = [...new Set([...known].map((one) => one.trim()))]
      .filter((one) => one.length >= shortestSecret)
      .toSorted((a, b) => b.length - a.length);
  }

  /** How often something was left out. */
  get count(): number {
    return this.#count;
  }

  text(text: string): string {
    let clean = text;
    for (const secret of this.#known) {
      const parts = clean.split(secret);
      this.#count += parts.length - 1;
      clean = parts.join(leftOut);
    }
    return this.#shaped(clean);
  }

  /** The same of a document, which stays one. */
  json(value: unknown, levels = 64): unknown {
    if (levels === 0) return leftOut;
    if (typeof value === "string") return this.text(value);
    if (Array.isArray(value)) return value.map((one) => this.json(one, levels - 1));
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, inner]) => {
        if (!isSecretKey(key) || typeof inner === "boolean" || inner === null)
          return [key, this.json(inner, levels - 1)];
        this.#count++;
        return [key, leftOut];
      }),
    );
  }

  #shaped(text: string): string {
    let clean = text;
    for (const shape of shapes) clean = this.#replaced(clean, shape);
    return this.#replaced(this.#keyed(clean), pairs);
  }

  #replaced(text: string, [pattern, instead]: readonly [RegExp, string]): string {
    return text.replace(pattern, (...found: readonly unknown[]) => {
      this.#count++;
      return instead.replace("$1", () => String(found[1] ?? ""));
    });
  }

  /**
   * A value without quotes at the beginning of a line goes on to its end, with blanks and commas, and on the lines below
   * that are indented more deeply. Quotes and lists have their own ends.
   */
  #keyed(text: string): string {
    const lines = text.split("\n");
    const clean: string[] = [];
    for (let i = 0; i < lines.length; i++) {
      const line = lines[i] ?? "";
      const [, before = "", key = "", value = ""] = keyedLine.exec(line) ?? [];
      const hasOwnEnd = /^["'[]/.test(value) && !value.startsWith(leftOut);
      let next = i + 1;
      if (key !== "" && !hasOwnEnd) while (next < lines.length && isBelow(lines[next] ?? "", before, value)) next++;
      if (key === "" || hasOwnEnd || (value.trim() === "" && next === i + 1)) {
        clean.push(line);
        continue;
      }
      this.#count++;
      clean.push(`${before}${key}"${leftOut}"`);
      i = next - 1;
    }
    return clean.join("\n");
  }
}
