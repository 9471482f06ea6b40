/**
 * Reads the part of PowerShell that the agent's scripts are made of, by PowerShell's rules and not by the writer's:
 * a value that its writer quoted badly falls apart here, or becomes another value.
 */
export type Value = string | number | boolean | readonly string[];

export interface ReadCall {
  readonly cmdlet: string;
  readonly args: Readonly<Record<string, Value>>;
}

export interface ReadStatement {
  readonly at: number;
  readonly calls: readonly ReadCall[];
  /** Absent: the statement's objects are thrown away. */
  readonly fields?: readonly string[];
}

export interface ReadScript {
  readonly marker: string;
  readonly statements: readonly ReadStatement[];
}

interface Token {
  readonly kind: "word" | "string" | "variable" | "sign" | "type";
  readonly text: string;
}

const singleQuotes = "'\u2018\u2019\u201a\u201b";

function tokensOf(text: string): Token[] {
  const tokens: Token[] = [];
  let at = 0;
  while (at < text.length) {
    const rest = text.slice(at);
    const char = rest[0] ?? "";
    if (singleQuotes.includes(char)) {
      const [value, length] = readString(rest);
      tokens.push({ kind: "string", text: value });
      at += length;
      continue;
    }
    const [kind, match] =
      (
        [
          ["space", /^[ \t\n]+/],
          ["variable", /^\$[A-Za-z_]+(\.[A-Za-z]+)*/],
          ["type", /^\[string\]/],
          ["word", /^-?[A-Za-z0-9][A-Za-z0-9-]*/],
          ["sign", /^(@\(|@\{|[(){}[\];|,=:])/],
        ] as const
      )
        .map(([name, pattern]) => [name, pattern.exec(rest)?.[0]] as const)
        .find(([, found]) => found !== undefined) ?? [];
    if (kind === undefined || match === undefined)
      throw new SyntaxError(`Unexpected token ${JSON.stringify(rest.slice(0, 40))}`);
    if (kind !== "space") tokens.push({ kind, text: match });
    at += match.length;
  }
  return tokens;
}

/** Any of the five quotes opens, any closes, and two in a row are the second of them. */
function readString(text: string): [value: string, length: number] {
  let value = "";
  for (let at = 1; at < text.length; at++) {
    const char = text[at] ?? "";
    if (!singleQuotes.includes(char)) value += char;
    else if (singleQuotes.includes(text[at + 1] ?? "none")) value += text[++at];
    else return [value, at + 1];
  }
  throw new SyntaxError("The string is missing the terminator: '.");
}

const frame =
  /^\$ErrorActionPreference='Stop';\$ProgressPreference='SilentlyContinue';\[Console\]::OutputEncoding=\[Text\.Encoding\]::UTF8;\$m='(#[0-9a-f-]{36}#)';\$s=0;\$t=@\{\};\ntry\{(.*)\n\$a=@\{'tables'=\$t\}\}catch\{\n\$a=@\{'at'=\$s;'error'=\[string\]\$_\.Exception\.Message;'id'=\[string\]\$_\.FullyQualifiedErrorId\}\}\n\[Console\]::Out\.Write\(\$m\+\(ConvertTo-Json -Compress -Depth 6 -InputObject \$a\)\+\$m\)$/s;

/** @throws {SyntaxError} where PowerShell would find one, or the script is none of the agent's */
export function readScript(text: string): ReadScript {
  const [, marker, body] = frame.exec(text) ?? [];
  if (marker === undefined || body === undefined) throw new SyntaxError("The script has another frame");
  return { marker, statements: new Parser(tokensOf(body)).statements() };
}

class Parser {
  #at = 0;
  readonly #tokens: readonly Token[];

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  statements(): ReadStatement[] {
    const statements: ReadStatement[] = [];
    while (this.#at < this.#tokens.length) {
      this.#expect("$s", "=");
      const at = Number(this.#next("word"));
      this.#expect(";");
      statements.push(this.#statement(at));
      this.#expect(";");
    }
    return statements;
  }

  #statement(at: number): ReadStatement {
    const isListing = this.#next("variable") === "$t";
    if (isListing) {
      this.#expect("[");
      if (Number(this.#next("string")) !== at) throw new SyntaxError("a table stands under another place");
      this.#expect("]");
    }
    this.#expect("=", "@(");
    const calls = [this.#call()];
    let fields: string[] | undefined;
    while (this.#take("|")) {
      if (this.#peek()?.text === "ForEach-Object") fields = this.#fields();
      else calls.push(this.#call());
    }
    this.#expect(")");
    return { at, calls, ...(fields === undefined ? {} : { fields }) };
  }

  #call(): ReadCall {
    const cmdlet = this.#next("word");
    const args: Record<string, Value> = {};
    while (this.#peek()?.kind === "word" && this.#peek()?.text.startsWith("-")) {
      const name = this.#next("word").slice(1);
      if (name === "EQ") args[name] = true;
      else if (this.#take(":")) args[name] = this.#next("variable") === "$true";
      else args[name] = this.#value();
    }
    return { cmdlet, args };
  }

  #value(): Value {
    const token = this.#peek();
    if (token?.kind === "string") return this.#next("string");
    if (token?.kind === "word" && /^\d+$/.test(token.text)) return Number(this.#next("word"));
    this.#expect("@(");
    const values: string[] = [];
    if (this.#take(")")) return values;
    do values.push(this.#next("string"));
    while (this.#take(","));
    this.#expect(")");
    return values;
  }

  /** `ForEach-Object{@{'A'=[string]$_.A;'B'=@($_.B|ForEach-Object{[string]$_})}}` */
  #fields(): string[] {
    const fields: string[] = [];
    this.#expect("ForEach-Object", "{", "@{");
    do {
      const name = this.#next("string");
      this.#expect("=");
      if (this.#take("@(")) {
        this.#expect(`$_.${name}`, "|", "ForEach-Object", "{", "[string]", "$_", "}", ")");
        fields.push(`${name}[]`);
      } else {
        this.#expect("[string]", `$_.${name}`);
        fields.push(name);
      }
    } while (this.#take(";"));
    this.#expect("}", "}");
    return fields;
  }

  #peek(): Token | undefined {
    return this.#tokens[this.#at];
  }

  #take(sign: string): boolean {
    if (this.#peek()?.kind !== "sign" || this.#peek()?.text !== sign) return false;
    this.#at++;
    return true;
  }

  #next(kind: Token["kind"]): string {
    const token = this.#tokens[this.#at++];
    if (token?.kind !== kind) throw new SyntaxError(`Unexpected ${token?.text ?? "end"}, wanted a ${kind}`);
    return token.text;
  }

  #expect(...texts: readonly string[]): void {
    for (const text of texts) {
      const token = this.#tokens[this.#at++];
      if (token?.text !== text || token.kind === "string")
        throw new SyntaxError(`Unexpected ${token?.text}, wanted ${text}`);
    }
  }
}
