import { type OptionSpec, whereOptions } from "../command.ts";
import { isList } from "../parse-line.ts";
import type { Place, Word } from "./command-tree.ts";

/** A script for zsh, sourced after `compinit` or put as `_pipette` into a directory of `$fpath`. */
export function zshCompletion(program: string, places: readonly Place[]): string {
  const paths = places.map(({ path }) => path).filter((path) => path !== "");
  return `#compdef ${program}
# zsh completion for ${program}, made by "${program} completion zsh"
# What the node knows, in the place that the line names.
_pipette_ask() {
  local -a found place
  integer i
  for ((i = 2; i < CURRENT; i++)); do
    case \${words[i]} in
      ${whereOptions.map((name) => `(${name})`).join("|")}) place+=("\${words[i]}" "\${(Q)words[i+1]}") ;;
      ${whereOptions.map((name) => `(${name}=*)`).join("|")}) place+=("\${(Q)words[i]}") ;;
    esac
  done
  found=("\${(@f)$("\${(Q)words[1]}" ipam names "\${place[@]}" -- "$1" "\${(Q)PREFIX}" 2>/dev/null)}")
  found=("\${(@)found:#}")
  compadd -a -- found
}
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
  if (!isList(of)) return `_pipette_ask ${of.ask}`;
  return `choices=(${of.join(" ")}); _describe value choices`;
}

const describe = (what: string, words: readonly Word[]): string =>
  `choices=(${words.map(({ word, help }) => quoted(`${word.replaceAll(":", "\\:")}:${help}`)).join(" ")}); _describe ${what} choices`;

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
