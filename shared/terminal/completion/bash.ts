import { type OptionSpec, whereOptions } from "../command.ts";
import { isList } from "../parse-line.ts";
import type { Place } from "./command-tree.ts";

/** A script that bash sources: completes commands, options, and values that are files, directories or of a list. */
export function bashCompletion(program: string, places: readonly Place[]): string {
  const paths = places.map(({ path }) => path).filter((path) => path !== "");
  return `# bash completion for ${program}, made by "${program} completion bash"
# What the node knows, in the place that the line names; the names must not be taken apart.
_pipette_ask() {
  local i where=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case \${COMP_WORDS[i]} in
      ${whereOptions.join("|")})
        if [[ \${COMP_WORDS[i+1]-} == = ]]; then where+=("\${COMP_WORDS[i]}" "\${COMP_WORDS[i+2]-}")
        else where+=("\${COMP_WORDS[i]}" "\${COMP_WORDS[i+1]-}")
        fi ;;
    esac
  done
  mapfile -t COMPREPLY < <("\${COMP_WORDS[0]}" ipam names "\${where[@]}" -- "$1" "$cur" 2>/dev/null)
}
_${program}() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} place= word
  # bash takes --name=value apart at the "=".
  if [[ $cur == = ]]; then cur=
  elif [[ $prev == = ]]; then prev=\${COMP_WORDS[COMP_CWORD-2]}
  fi
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case $place/$word in
      ${paths.join("|")}) place+=/$word ;;
    esac
  done
  COMPREPLY=()
  case "$place $prev" in
${places.flatMap(valueCases).join("\n")}
  esac
  case $cur in
    -*) case $place in
${places.map(({ path, options }) => `      ${path === "" ? "''" : path}) ${offerWords(options.map(({ word }) => word))} ;;`).join("\n")}
    esac ;;
    *) case $place in
${places.map(({ path, commands, operand }) => `      ${path === "" ? "''" : path}) ${commands.length > 0 ? offerWords(commands.map(({ word }) => word)) : offer(operand)} ;;`).join("\n")}
    esac ;;
  esac
}
complete -F _${program} ${program}
`;
}

const valueCases = ({ path, values }: Place): readonly string[] =>
  values.map(({ option, of }) => `    '${path} ${option}') ${offer(of)}; return ;;`);

function offer(of: OptionSpec["of"]): string {
  if (of === undefined) return ":";
  if (of === "file") return 'compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$cur")';
  if (of === "directory") return 'compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$cur")';
  return isList(of) ? offerWords(of) : `_pipette_ask ${of.ask}`;
}

const offerWords = (words: readonly string[]): string =>
  `mapfile -t COMPREPLY < <(compgen -W '${words.join(" ")}' -- "$cur")`;
