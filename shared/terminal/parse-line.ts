import { parseArgs } from "node:util";
import { didYouMean } from "../schema/near.ts";
import type { AnyCommandLine, Command, OptionSpec } from "./command.ts";

/** A command line that asks for the help, cannot be read, or fits. */
export type ParsedLine =
  | { readonly t: "help" }
  | { readonly t: "wrong"; readonly problem: string }
  | { readonly t: "line"; readonly line: AnyCommandLine };

/** Parses what follows a command's name. Anything that the table does not have is refused. */
export function parseLine(command: Command, args: readonly string[]): ParsedLine {
  const known = Object.entries(command.options);
  const types = known.map(
    ([name, { value, short }]) =>
      [
        name,
        { type: value === undefined ? "boolean" : "string", ...(short === undefined ? {} : { short }) } as const,
      ] as const,
  );
  const { tokens } = parseArgs({
    args: [...args],
    options: { ...Object.fromEntries(types), help: { type: "boolean", short: "h" } },
    // Not strict, because we report the mistakes in our own words.
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  if (tokens.some((token) => token.kind === "option" && token.name === "help")) return { t: "help" };
  const values = new Map<string, string[]>();
  const operands: string[] = [];
  for (const token of tokens) {
    if (token.kind === "positional") operands.push(token.value);
    if (token.kind !== "option") continue;
    const named = Object.hasOwn(command.options, token.name) ? command.options[token.name] : undefined;
    const spec = token.rawName.startsWith("--") || named?.short !== undefined ? named : undefined;
    const problem = wrongOption(command, token, spec);
    if (problem !== undefined) return { t: "wrong", problem };
    const before = values.get(token.name);
    if (before !== undefined && spec?.repeats === undefined && spec?.value !== undefined)
      return { t: "wrong", problem: `"${token.rawName}" is there twice` };
    values.set(token.name, [...(before ?? []), token.value ?? ""]);
  }
  const problem = missingOption(command, values) ?? wrongOperands(command, operands);
  if (problem !== undefined) return { t: "wrong", problem };
  const options = known.map(([name, spec]) => [name, givenValue(spec, values.get(name))] as const);
  return { t: "line", line: { options: Object.fromEntries(options), operands } };
}

/** Whether the kind of value is a closed list. */
export const isList = (of: OptionSpec["of"]): of is readonly string[] => Array.isArray(of);

interface OptionToken {
  readonly rawName: string;
  readonly value: string | undefined;
  readonly inlineValue: boolean | undefined;
}

function wrongOption(command: Command, { rawName, value, inlineValue }: OptionToken, spec: OptionSpec | undefined) {
  const written = inlineValue === true && spec?.value === undefined ? `${rawName}=${value}` : rawName;
  if (spec === undefined || (spec.value === undefined && value !== undefined)) {
    const known = [...Object.keys(command.options), "help"].map((name) => `--${name}`);
    return `"${written}" is no option of it${didYouMean(rawName, known)}, wanted ${known.join(", ")}`;
  }
  if (spec.value === undefined) return undefined;
  // An option is not taken as another option's value, since that is most likely a mistake.
  if (value === undefined || value === "" || (inlineValue !== true && value.startsWith("--")))
    return `"${rawName}" has no value, wanted ${spec.value}`;
  if (isList(spec.of) && !spec.of.includes(value)) return `"${rawName}" is "${value}", wanted ${orList(spec.of)}`;
  const wrong = spec.rule?.wrong(value);
  return wrong === undefined ? undefined : `"${rawName}" is ${wrong}, wanted ${spec.rule?.wanted}`;
}

function missingOption({ options }: Command, values: ReadonlyMap<string, unknown>): string | undefined {
  const missing = Object.entries(options).find(([name, { required }]) => required === true && !values.has(name));
  return missing === undefined ? undefined : `"--${missing[0]}" is missing, wanted ${missing[1].value}`;
}

function wrongOperands({ operands = [] }: Command, given: readonly string[]): string | undefined {
  const spare = given[operands.length];
  if (spare !== undefined)
    return `"${spare}" is one word too many, wanted ${operands.length === 0 ? "nothing but options" : operands.map(({ name }) => name).join(" ")}`;
  const missing = operands.slice(given.length).find(({ optional }) => optional === undefined);
  if (missing !== undefined) return `${missing.name} is missing, wanted ${missing.help}`;
  for (const [i, { name, of, mayBeEmpty }] of operands.entries()) {
    const value = given[i];
    if (value === "" && mayBeEmpty === undefined) return `${name} is empty`;
    if (value !== undefined && isList(of) && !of.includes(value)) return `${name} is "${value}", wanted ${orList(of)}`;
  }
  return undefined;
}

function givenValue(
  spec: OptionSpec,
  given: readonly string[] | undefined,
): string | readonly string[] | boolean | undefined {
  if (spec.value === undefined) return given !== undefined;
  return spec.repeats === true ? (given ?? []) : given?.[0];
}

/** `a, b or c`. */
export const orList = (words: readonly string[]): string =>
  words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`;
