import type { OptionSpec } from "../command.ts";
import type { Place, Word } from "./command-tree.ts";

/** A script for zsh, sourced after `compinit` or put as `_pipette` into a directory of `$fpath`. */
export function zshCompletion(program: string, places: readonly Place[]): string {
  const paths = places.map(({ path }) => path).filter((path) => path !== "");
  return `#compdef ${program}
# zsh completion for ${program}, made by "${program} completion zsh"
_${program}() {
  local place= word option
  local -a choices
  for word in \${words[2,CURRENT-1]}; do
    case $place/$word in
      ${paths.map((path) => path).join("|")}) place+=/$word ;;
    esac
  done
  option=\${words[CURRENT-1]}
  # --name=value is one word here.
  if [[ \${words[CURRENT]} == --*=* ]]; then
    option=\${words[CURRENT]%%=*}
    compset -P '*='
  fi
  case "$place $option" in
${places.flatMap(valueCases).join("\n")}
  esac
  case $PREFIX in
    -*) case $place in
${places.map(({ path, options }) => `      ${path === "" ? "''" : path}) ${describe("option", options)} ;;`).join("\n")}
    esac ;;
    *) case $place in
${places.map(({ path, commands, operand }) => `      ${path === "" ? "''" : path}) ${commands.length > 0 ? describe("command", commands) : offer(operand)} ;;`).join("\n")}
    esac ;;
  esac
}
# Sourced, it has to announce itself; as a file of $fpath it is the function's first run.
if [[ $funcstack[1] == _${program} ]]; then _${program} "$@"; else compdef _${program} ${program}; fi
`;
}

const valueCases = ({ path, values }: Place): readonly string[] =>
  values.map(({ option, of }) => `    '${path} ${option}') ${offer(of)}; return ;;`);

function offer(of: OptionSpec["of"]): string {
  if (of === undefined) return "_message value";
  if (of === "file") return "_files";
  if (of === "directory") return "_files -/";
  return `choices=(${of.join(" ")}); _describe value choices`;
}

const describe = (what: string, words: readonly Word[]): string =>
  `choices=(${words.map(({ word, help }) => quoted(`${word.replaceAll(":", "\\:")}:${help}`)).join(" ")}); _describe ${what} choices`;

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
