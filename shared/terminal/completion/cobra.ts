import type { Command, CommandGroup, OptionSpec } from "../command.ts";
import { isList } from "../parse-line.ts";
import { printable } from "../printable.ts";
import { loadTree, type Place, placesOf, type Word } from "./command-tree.ts";

/** What a shell does besides, as cobra numbers it: complete no files, or files where nothing else is offered. */
const directive = { noFiles: 4, files: 0 } as const;

/**
 * What `kubectl_complete-NAME` prints: a word and its help to a line, and a last line that says what to do besides
 * (kubectl 1.26 and later ask it).
 * @param args as typed behind the plugin's name; the last one is being typed, and may be empty
 */
export async function cobraCompletion(root: Command | CommandGroup, args: readonly string[]): Promise<string> {
  const places = placesOf(await loadTree(root));
  const before = args.slice(0, -1);
  const current = args.at(-1) ?? "";
  const { offered, isFile } = offerAt(placeAt(places, before), before.at(-1) ?? "", current);
  const lines = offered
    .filter(({ word }) => word.startsWith(current))
    .map(({ word, help }) => (help === "" ? word : `${word}\t${printable(help)}`));
  return [...lines, `:${isFile ? directive.files : directive.noFiles}`, ""].join("\n");
}

/** As far as the words are names of commands. */
function placeAt(places: readonly Place[], words: readonly string[]): Place | undefined {
  let found = places.find(({ path }) => path === "");
  for (const word of words) found = places.find(({ path }) => path === `${found?.path}/${word}`) ?? found;
  return found;
}

function offerAt(
  place: Place | undefined,
  last: string,
  current: string,
): { readonly offered: readonly Word[]; readonly isFile: boolean } {
  if (place === undefined) return { offered: [], isFile: false };
  const value = place.values.find(({ option }) => option === last);
  if (value !== undefined) return valuesOf(value.of);
  if (current.startsWith("-")) return { offered: place.options, isFile: false };
  return place.commands.length > 0 ? { offered: place.commands, isFile: false } : valuesOf(place.operand);
}

const valuesOf = (of: OptionSpec["of"]): ReturnType<typeof offerAt> =>
  isList(of)
    ? { offered: of.map((word) => ({ word, help: "" })), isFile: false }
    : { offered: [], isFile: of === "file" || of === "directory" };
