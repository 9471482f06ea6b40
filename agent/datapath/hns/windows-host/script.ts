import { assert } from "../../../../shared/assert.ts";

/** What a parameter of a cmdlet may be. A boolean goes to a switch as well as to a real one. */
export type Argument = string | number | boolean | readonly string[];
export type Arguments = Readonly<Record<string, Argument>>;

export interface Call {
  readonly cmdlet: string;
  readonly args?: Arguments;
}

/**
 * One pipeline, as data: a cmdlet, a filter for its objects (properties equal to a value, ignoring case), and a cmdlet
 * for those. Objects are always filtered by value, because most cmdlets take a name for a pattern.
 */
export interface Statement extends Call {
  /** Takes the objects of the first cmdlet, and gives those that `where` chooses from. */
  readonly through?: Call;
  readonly where?: Readonly<Record<string, string>>;
  readonly into?: Call;
}

/** A statement whose objects are returned with these properties; `[]` behind a name marks a list. */
export interface Listing extends Statement {
  readonly fields: readonly string[];
}

/** One object: each property as text, the way PowerShell writes it whatever the language; an absent one is empty. */
export type Row = Readonly<Record<string, string | readonly string[]>>;

/** The beginning of every command: the first failure ends it, and the output is UTF-8. */
const prelude =
  "$ErrorActionPreference='Stop';$ProgressPreference='SilentlyContinue';[Console]::OutputEncoding=[Text.Encoding]::UTF8;";

/**
 * The text of one command. It answers `<marker>{"tables":{"0":[…],…}}<marker>`, with the rows of each listing
 * under its place, or `<marker>{"at":…,"error":…,"id":…}<marker>` with the place of the statement that failed.
 */
export function renderScript(statements: readonly (Statement | Listing)[], marker: string): string {
  const lines = statements.map((statement, at) => `$s=${at};${renderStatement(statement, at)}`);
  return [
    `${prelude}$m=${quote(marker)};$s=0;$t=@{};`,
    `try{${lines.join("\n")}`,
    "$a=@{'tables'=$t}}catch{",
    "$a=@{'at'=$s;'error'=[string]$_.Exception.Message;'id'=[string]$_.FullyQualifiedErrorId}}",
    "[Console]::Out.Write($m+(ConvertTo-Json -Compress -Depth 6 -InputObject $a)+$m)",
  ].join("\n");
}

function renderStatement(statement: Statement | Listing, at: number): string {
  const line = renderPipeline(statement);
  if (!("fields" in statement)) return `$null=@(${line});`;
  return `$t['${at}']=@(${line}|ForEach-Object{@{${statement.fields.map(renderField).join(";")}}});`;
}

/** The pipeline alone, as a person would type it: the documentation shows these. */
export function renderPipeline({ through, where = {}, into, ...first }: Statement): string {
  const chosen = Object.entries(where).map(
    ([property, value]) => `Where-Object -Property ${quote(property)} -EQ -Value ${quote(value)}`,
  );
  const [middle, last] = [through, into].map((call) => (call === undefined ? [] : [renderCall(call)]));
  return [renderCall(first), ...(middle ?? []), ...chosen, ...(last ?? [])].join("|");
}

function renderCall({ cmdlet, args = {} }: Call): string {
  return [word(cmdlet), ...Object.entries(args).map(([name, value]) => renderArgument(name, value))].join(" ");
}

function renderArgument(name: string, value: Argument): string {
  if (typeof value === "boolean") return `-${word(name)}:$${value}`;
  if (typeof value === "string") return `-${word(name)} ${quote(value)}`;
  if (typeof value === "number") {
    assert(Number.isSafeInteger(value), `a number for PowerShell is whole: ${value}`);
    return `-${word(name)} ${value}`;
  }
  return `-${word(name)} @(${value.map(quote).join(",")})`;
}

function renderField(field: string): string {
  if (!field.endsWith("[]")) return `'${word(field)}'=[string]$_.${field}`;
  const name = word(field.slice(0, -2));
  return `'${name}'=@($_.${name}|ForEach-Object{[string]$_})`;
}

/** Names of cmdlets, parameters and properties are constants of ours; anything else is a quoted value. */
function word(text: string): string {
  assert(/^[A-Za-z][A-Za-z0-9-]*$/.test(text), `a name in a script is a plain word: ${JSON.stringify(text)}`);
  return text;
}

/**
 * A value as PowerShell's literal string, in which nothing is expanded. Its reader takes the typographic
 * quotes U+2018 to U+201B for the plain one, so each of the five is doubled.
 * @throws {Error} for a control character or half a surrogate pair: no name on Windows has one
 */
export function quote(text: string): string {
  assert(
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is refused
    !/[\u0000-\u001f\u007f]/.test(text) && text.isWellFormed(),
    `a value in a script is printable text: ${JSON.stringify(text)}`,
  );
  return `'${text.replace(/['\u2018-\u201b]/g, "$&$&")}'`;
}
